import { useEffect, useState } from "preact/hooks";
import { threadButton } from "../view/threads.js";
import type { App } from "../work/app.js";

/** The button below a message that a thread hangs on. It listens to that thread alone. */
export function ThreadLink(props: { app: App; channelId: string; rootId: string }) {
  const { app, channelId, rootId } = props;
  const target = { kind: "thread", channelId, rootId } as const;
  const [snapshot, setSnapshot] = useState(() => app.hub.snapshot(target));
  useEffect(
    () => app.hub.subscribe(target, () => setSnapshot(app.hub.snapshot(target))),
    [channelId, rootId],
  );
  const row = app.channels.peek().find((channel) => channel.id === rootId);
  const place = app.threads.peek().get(channelId)?.find((p) => p.id === rootId);
  const sent = app.drafts.peek().filter((d) => d.scope === rootId && !d.error).length;
  const button = threadButton(row?.replyCount ?? place?.contentRevision ?? 0, sent, snapshot);
  return (
    <button
      type="button"
      class="thread-link"
      aria-label={button.name}
      onClick={() => app.openThread(channelId, rootId, "link")}
    >
      {button.dot && <span class="dot" />}
      {button.label}
    </button>
  );
}
