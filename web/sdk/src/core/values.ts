import type { Revision } from "./state.js";
import type { Message } from "./window.js";

export type ScopeType = "channel" | "dm" | "thread" | "task" | "session";

/** What makes a scope show a dot: everything, what is directed at the member, or nothing. */
export type Level = "all" | "mentions" | "none";

/** From where a member counts in a scope. */
export interface Reach {
  /** The first revision that may count. */
  readonly effective: Revision;
  /** Inclusive. */
  readonly readRevision: Revision;
  readonly manualUnread: boolean;
  /** Where a manual mark begins, 0 for nowhere. */
  readonly fromRevision: Revision;
}

/** The revision above which entries count: a mark that begins somewhere can only show more. */
export function baseOf(r: Omit<Reach, "effective"> & Partial<Pick<Reach, "effective">>): Revision {
  const marked = r.manualUnread && r.fromRevision > 0;
  const read = marked ? Math.min(r.readRevision, r.fromRevision - 1) : r.readRevision;
  return Math.max(read, (r.effective ?? 1) - 1);
}

/**
 * Whether a live message counts for a member once it is above the base. It counts neither for its
 * author nor for whom it was sent on behalf of, except in a session, where its kind has decided; in
 * a task it counts for its recipients.
 */
export function isCountable(m: Message, type: string, member: string): boolean {
  if (!m.contentRevision) return false;
  if (type === "session") return true;
  if (m.author === member || m.notifyPrincipal === member) return false;
  return type !== "task" || m.recipients?.includes(member) === true;
}

/** Whether a message that counts is directed at the member. */
export function isDirected(m: Message, type: string, member: string): boolean {
  return type === "dm" || m.mentionsEveryone === true || m.mentions?.includes(member) === true;
}

/** Raw counts of one member in one scope. */
export interface Counts {
  readonly unread: number;
  readonly attention: number;
  readonly activity: number;
}

/** Counts messages above a base, those of blocked authors apart. */
export function countAbove(
  messages: readonly Message[],
  base: Revision,
  type: string,
  member: string,
  blocked?: ReadonlySet<string>,
): Omit<Counts, "activity"> {
  let unread = 0;
  let attention = 0;
  for (const m of messages) {
    const counts = (m.contentRevision ?? 0) > base && isCountable(m, type, member);
    if (!counts || blocked?.has(m.author ?? "")) continue;
    unread++;
    if (isDirected(m, type, member)) attention++;
  }
  return { unread, attention };
}

/** A level that may end; until and now are of one clock, 0 for no end. */
export interface Notification {
  readonly level: Level | "inherit";
  readonly until: number;
}

/** The level in force: one that has ended is `all`, one that inherits is the parent's. */
export function levelAt(now: number, own: Notification, parent?: Notification): Level {
  if (own.until !== 0 && now >= own.until) return "all";
  if (own.level !== "inherit") return own.level;
  return parent ? levelAt(now, parent) : "all";
}

/** What decides whether and how a scope takes part. */
export interface Standing {
  /** The member has the scope, and it is not archived. */
  readonly counts: boolean;
  readonly level: Level;
  readonly manualUnread: boolean;
  /** A session that is at work: it adds nothing for now. */
  readonly busy?: boolean;
}

/** The dot, and the number beside it: 0 for a dot alone, and without a dot. */
export interface Presented {
  readonly shown: boolean;
  readonly shownUnread: number;
}

/** Applies a level to counts. */
export function present(s: Standing, c: Counts): Presented {
  const { level } = s;
  if (!s.counts || level === "none") return { shown: false, shownUnread: 0 };
  const shownUnread = s.busy ? 0 : level === "all" ? c.unread : c.attention;
  const signal = c.activity > 0 && level === "all";
  return { shown: s.manualUnread || shownUnread > 0 || signal, shownUnread };
}

/** The sum over the scopes that are shown. */
export interface Totals {
  readonly messages: number;
  readonly conversations: number;
  readonly attention: number;
}

/** Folds what scopes add; attention is the raw count of each. */
export function totals(all: Iterable<Presented & { readonly attention: number }>): Totals {
  let messages = 0;
  let conversations = 0;
  let attention = 0;
  for (const s of all) {
    if (!s.shown) continue;
    messages += s.shownUnread;
    conversations++;
    attention += s.attention;
  }
  return { messages, conversations, attention };
}
