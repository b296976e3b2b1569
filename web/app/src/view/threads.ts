import type { UnreadSnapshot } from "@tidemark/sdk";

/** The button below a message that a thread hangs on. */
export interface ThreadButton {
  readonly label: string;
  readonly dot: boolean;
  /** What assistive technology calls it. */
  readonly name: string;
}

/**
 * Total is what the server counted, sent the replies of this client that are not in it yet. Unread
 * replies change neither.
 */
export function threadButton(total: number, sent: number, s: UnreadSnapshot): ThreadButton {
  const replies = total + sent;
  const label = replies === 1 ? "1 reply" : `${replies} replies`;
  const unread = s.observedCount ?? 0;
  const dot = unread > 0 || s.manual !== "none";
  if (!dot) return { label, dot, name: `${label}. Open thread` };
  const what = unread > 0 ? `${unread} unread` : "marked as unread";
  let how = what;
  if (s.manual === "local") how = `${what}, known on this device only`;
  else if (s.freshness !== "observed") how = `${what} when last connected`;
  return { label, dot, name: `${label}, ${how}. Open thread` };
}
