import type { Target, UnreadSnapshot } from "../capability.js";
import type { Revision, State } from "../core/state.js";
import { baseOf, countAbove, isCountable, isDirected } from "../core/values.js";
import type { Message } from "../core/window.js";
import type { Rows, Shown } from "./rows.js";
import type { Feed } from "./timeline.js";

/** What snapshots are made of. */
export interface Sources {
  readonly rows: Rows;
  /** Who looks; empty before the server has told. */
  readonly member: string;
  /** The stream is open. */
  readonly live: boolean;
  show(scope: string): Shown | undefined;
  feed(scope: string): Feed | undefined;
}

/**
 * What a read that the server has not taken leaves, where the loaded messages prove it: they reach
 * from the base to the head, and count to what the server counted at its own base. Undefined where
 * they do not; the server may know of things that messages do not tell, such as blocked authors.
 */
export function recount(
  said: State,
  shown: Shown,
  feed: Feed | undefined,
  member: string,
): { unread: number; attention: number } | undefined {
  const { row, view } = shown;
  const w = feed?.window;
  const whole = w?.synced && w.needsAfter === undefined && w.through >= view.contentRevision;
  if (!w || !whole || row.type === "task") return undefined;
  const lowest = w.messages.find((m) => m.contentRevision)?.contentRevision ?? Infinity;
  const above = (base: Revision) =>
    w.earlier && lowest > base + 1 ? undefined : countAbove(w.messages, base, row.type, member);
  const before = above(baseOf(said));
  if (before?.unread !== row.unread || before.attention !== row.attention) return undefined;
  return above(baseOf(view));
}

/** The scope that a target is about, if it belongs to the channel that the target names. */
export function scopeOf(target: Target, sources: Sources): string | undefined {
  const { rows } = sources;
  switch (target.kind) {
    case "channel":
      return rows.has(target.channelId) ? target.channelId : undefined;
    case "thread":
      return rows.row(target.rootId)?.parent === target.channelId ? target.rootId : undefined;
    case "message":
      return evidenceOf(target.channelId, target.messageId, sources)?.scope;
  }
}

/** A loaded message of a channel or of one of its threads, with the scope that it was found in. */
export function evidenceOf(
  channelId: string,
  messageId: string,
  sources: Sources,
): { scope: string; feed: Feed; message: Message } | undefined {
  const { rows } = sources;
  for (const scope of rows.ids()) {
    if (scope !== channelId && rows.row(scope)?.parent !== channelId) continue;
    const found = sources.feed(scope);
    const message = found?.find(messageId);
    if (found && message) return { scope, feed: found, message };
  }
  return undefined;
}

/** What is known of a target now; separator finds the first unread message of a reading lease. */
export function project(
  target: Target,
  sources: Sources,
  separator: (scope: string) => string | null,
): UnreadSnapshot {
  const scope = scopeOf(target, sources);
  const shown = scope === undefined ? undefined : sources.show(scope);
  if (scope === undefined || !shown) return unknown(sources);
  const { row, view } = shown;
  const { withheld } = sources.rows;
  const pending = !shown.exact;
  const manual = !view.manualUnread ? "none" : view.after ? "local" : "synced";
  const base = {
    coverage: "observed",
    freshness: sources.live ? "observed" : "stale",
    syncedManualUnread: true,
    muted: row.notification === "none",
    level: row.notification,
  } as const;
  if (target.kind !== "message") {
    return Object.freeze({
      ...base,
      observedCount: withheld ? null : shown.unread,
      attentionCount: withheld ? null : shown.attention,
      exact: shown.exact,
      pending,
      manual,
      latestMessage: row.latestMessage ? Object.freeze({ ...row.latestMessage }) : null,
      firstUnread: separator(scope),
    });
  }
  const message = sources.feed(scope)?.find(target.messageId);
  const revision = message?.contentRevision ?? 0;
  const isUnread =
    !!message && isCountable(message, row.type, sources.member) && revision > baseOf(view);
  const directed = !!message && isDirected(message, row.type, sources.member);
  const marked = view.fromRevision > 0 && view.fromRevision === revision;
  return Object.freeze({
    ...base,
    observedCount: isUnread ? 1 : 0,
    attentionCount: isUnread && directed ? 1 : 0,
    exact: true,
    pending: false,
    manual: marked ? manual : "none",
    latestMessage: message ? Object.freeze({ id: message.id, at: message.createdAt ?? "" }) : null,
    firstUnread: null,
  });
}

/** The snapshot of what is not known, or not the member's to see. */
function unknown({ rows, live }: Sources): UnreadSnapshot {
  return Object.freeze({
    observedCount: null,
    attentionCount: null,
    exact: false,
    coverage: "unknown",
    freshness: !rows.listed ? "unknown" : live ? "observed" : "stale",
    pending: !rows.listed,
    manual: "none",
    syncedManualUnread: true,
    muted: false,
    level: "all",
    latestMessage: null,
    firstUnread: null,
  });
}
