import { useState } from "preact/hooks";
import type { Account } from "../work/accounts.js";
import { wordsOf } from "../work/app.js";
import { Api } from "../work/api.js";

/** Asks for a token, and takes it once the server has taken it. */
export function SignIn(props: {
  base: string;
  back: (() => void) | null;
  done: (account: Account) => void;
}) {
  const [text, setText] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    setError(null);
    // A whole sign-in link is as good as the token in it.
    const link = new URLSearchParams(text.split("#")[1] ?? "");
    const token = link.get("token") ?? text.trim();
    try {
      await new Api(props.base, () => token).identify();
      props.done({ token, device: link.get("device") ?? "" });
    } catch (why) {
      setError(wordsOf(why));
      setBusy(false);
    }
  };
  return (
    <main class="sign-in">
      <form
        onSubmit={(e) => {
          e.preventDefault();
          void submit();
        }}
      >
        <h1>Tidemark</h1>
        <p>What have you not read yet? Sign in with a token, or with the whole of a link.</p>
        <label for="token">Token or link</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          autofocus
          value={text}
          aria-describedby="sign-in-error"
          onInput={(e) => setText(e.currentTarget.value)}
        />
        <p id="sign-in-error" class="bad" role="alert">
          {error && `The server did not take it: ${error}.`}
        </p>
        <div class="buttons">
          <button type="submit" class="primary" disabled={!text.trim() || busy}>
            Sign in
          </button>
          {props.back && (
            <button type="button" onClick={props.back}>
              Cancel
            </button>
          )}
        </div>
        <p class="quiet-text">
          <code>tidemark demo</code> prints links, <code>tidemark token</code> makes tokens.
        </p>
      </form>
    </main>
  );
}
