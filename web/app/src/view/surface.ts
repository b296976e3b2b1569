/** Where the focus is. Inside is anywhere in the workspace of the channel that is shown. */
export type Focus = "list" | "composer" | "thread" | "thread-tab" | "inside" | "elsewhere";

/**
 * How the channel came to be shown: by choosing it, by a link to a message or a thread, or by the
 * page putting back what was there.
 */
export type Visit = "plain" | "link" | "restored";

/** What the side pane shows. */
export type SideView =
  | { readonly kind: "thread"; readonly channelId: string; readonly rootId: string }
  | { readonly kind: "members"; readonly channelId: string }
  | { readonly kind: "media"; readonly channelId: string };

export interface Screen {
  readonly channelId: string;
  readonly focus: Focus;
  readonly visit: Visit;
  /** The tab that is selected in the side pane; null where the pane is hidden or collapsed. */
  readonly side: SideView | null;
  /** A thread that takes the place of the main conversation. */
  readonly mainThread: string | null;
}

/** Which lists somebody may be reading in. Whether they do is for the dwell to say. */
export interface Surfaces {
  readonly main: boolean;
  readonly thread: boolean;
}

/**
 * A list is read where the focus is in it or in its composer. A thread in the side pane is read
 * besides while the focus is anywhere in the channel that somebody went to by choice.
 */
export function surfacesOf(s: Screen): Surfaces {
  const inMain = s.focus === "list" || s.focus === "composer";
  const { side } = s;
  const owned = side?.kind === "thread" && side.channelId === s.channelId;
  if (!owned) return { main: inMain, thread: false };
  const inThread = s.focus === "thread" || s.focus === "thread-tab";
  const shared = s.visit === "plain" && s.mainThread === null && s.focus !== "elsewhere";
  return { main: inMain, thread: inThread || shared };
}
