import type { Channel, UnreadSnapshot } from "@tidemark/sdk";
import type { Conversation } from "../../src/view/sidebar.js";

/** A snapshot of something that is known, with nothing unread. */
export function snapshot(more: Partial<UnreadSnapshot> = {}): UnreadSnapshot {
  return {
    observedCount: 0,
    attentionCount: 0,
    exact: true,
    coverage: "observed",
    freshness: "observed",
    pending: false,
    manual: "none",
    syncedManualUnread: true,
    muted: more.level === "none",
    level: "all",
    latestMessage: null,
    firstUnread: null,
    ...more,
  };
}

export function channel(id: string, type = "channel", more: Partial<Channel> = {}): Channel {
  return {
    id,
    type,
    name: id,
    parent: null,
    tags: [],
    archived: false,
    level: "all",
    replyCount: 0,
    lastActivityAt: null,
    shown: false,
    shownUnread: 0,
    ...more,
  };
}

/** A conversation with unread messages, of which some are directed at the member. */
export function talk(
  id: string,
  type: string,
  unread: number | null,
  attention: number | null = 0,
  more: Partial<UnreadSnapshot> & { threads?: Conversation["threads"] } = {},
): Conversation {
  const { threads = [], ...rest } = more;
  const snap = snapshot({ observedCount: unread, attentionCount: attention, ...rest });
  return { channel: channel(id, type), snapshot: snap, threads, peer: null };
}

export function thread(id: string, unread: number, more: Partial<UnreadSnapshot> = {}) {
  return {
    channel: channel(id, "thread", { parent: "c" }),
    snapshot: snapshot({ observedCount: unread, ...more }),
  };
}
