import { useEffect, useRef, useState } from "preact/hooks";
import { namedIn } from "../view/people.js";
import type { App } from "../work/app.js";

/** Where something is written. Enter sends, Shift+Enter begins a line. */
export function Composer(props: { app: App; scope: string; main: boolean; hint: string }) {
  const { app, scope, main, hint } = props;
  const [text, setText] = useState("");
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (!main || app.visit.value !== "plain") return;
    box.current?.focus();
  }, []);
  const send = () => {
    const trimmed = text.trim();
    if (!trimmed) return;
    setText("");
    void app.send(scope, trimmed);
  };
  const { mentions, everyone } = namedIn(text, app.people.value.keys());
  const named = everyone ? ["everyone"] : mentions.map((id) => app.person(id).name);
  return (
    <form
      class="composer"
      data-region={main ? "composer" : "thread"}
      onSubmit={(e) => {
        e.preventDefault();
        send();
      }}
    >
      <textarea
        ref={box}
        rows={1}
        value={text}
        placeholder={hint}
        aria-label={hint}
        onInput={(e) => setText(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
          e.preventDefault();
          send();
        }}
      />
      <button type="submit" class="primary" disabled={!text.trim()}>
        Send
      </button>
      <p class="hint" aria-live="polite">
        {named.length > 0 ? `Names ${named.join(", ")}` : ""}
      </p>
    </form>
  );
}
