import type { Channel, UnreadSnapshot } from "@tidemark/sdk";
import type { Person } from "./people.js";

/** A scope with what is known of its unread. */
export interface Known {
  readonly channel: Channel;
  readonly snapshot: UnreadSnapshot;
}

/** A conversation of the sidebar with the threads that belong to it. */
export interface Conversation extends Known {
  readonly threads: readonly Known[];
  /** The other one of a one-to-one dm; null for everything else. */
  readonly peer: Person | null;
}

/** A row as it is drawn. Ordinary unread is the label's weight, what is directed is the dot. */
export interface Row {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly peer: Person | null;
  readonly strong: boolean;
  readonly dot: boolean;
  readonly muted: boolean;
  readonly archived: boolean;
  /** Threads with unread replies, for the popover; also of a muted row. */
  readonly threads: readonly ThreadGroup[];
  /** It has observed unread state, and takes part in what lies out of view. */
  readonly unread: boolean;
  /** What assistive technology hears of it after the name; empty for nothing. */
  readonly says: string;
}

/** The unread replies of one thread. */
export interface ThreadGroup {
  readonly id: string;
  readonly name: string;
  readonly replies: number;
}

/** What the row of a conversation shows. */
export function rowOf(c: Conversation): Row {
  const { channel, snapshot } = c;
  const { muted } = snapshot;
  const unread = snapshot.observedCount ?? 0;
  const attention = snapshot.attentionCount ?? 0;
  const manual = snapshot.manual !== "none";
  const threads = groupsOf(c.threads);
  const dm = channel.type === "dm";
  const solo = isSolo(channel);
  const task = channel.type === "task";
  const signal = task && channel.shown && channel.shownUnread === 0 && !manual;
  const all = snapshot.level === "all";
  const ordinary = dm ? unread > 0 : all && unread > attention;
  const anything = unread > 0 || threads.length > 0 || signal;
  const strong = solo ? anything || manual : manual || (!muted && ordinary);
  const directed = attention > 0 || (dm && unread > 0) || threads.length > 0 || signal;
  const dot = !solo && !muted && directed;
  return {
    id: channel.id,
    kind: channel.type,
    name: channel.name || channel.id,
    peer: c.peer,
    strong,
    dot,
    muted,
    archived: channel.archived,
    threads,
    unread: !muted && (strong || dot),
    says: wordsOf(unread, attention, threads.length, manual, muted),
  };
}

/** A chat of one person with agents. */
export function isSolo(channel: Channel): boolean {
  return channel.type === "session";
}

function groupsOf(threads: readonly Known[]): readonly ThreadGroup[] {
  return threads.flatMap(({ channel, snapshot }) => {
    const { observedCount, attentionCount, manual, level } = snapshot;
    // A thread that is muted by itself, or followed no more, counts by what names the member.
    const replies = (level === "mentions" ? attentionCount : observedCount) ?? 0;
    if (replies === 0 && manual === "none") return [];
    return [{ id: channel.id, name: channel.name || channel.id, replies }];
  });
}

function wordsOf(
  unread: number,
  attention: number,
  threads: number,
  manual: boolean,
  mute: boolean,
): string {
  const words: string[] = [];
  if (unread > 0) words.push(`${unread} unread`);
  if (attention > 0 && attention !== unread) words.push(`${attention} for you`);
  if (threads > 0) words.push(`${threads} ${threads === 1 ? "thread" : "threads"} with replies`);
  if (manual) words.push("marked as unread");
  if (mute) words.push("muted");
  return words.join(", ");
}

/** A part of the sidebar. */
export interface Section {
  readonly id: "favourite" | "channels" | "dms" | "tasks" | "sessions";
  readonly name: string;
  readonly rows: readonly Row[];
}

const order: readonly { id: Section["id"]; name: string; types: readonly string[] }[] = [
  { id: "channels", name: "Channels", types: ["channel"] },
  { id: "dms", name: "Direct messages", types: ["dm"] },
  { id: "tasks", name: "Tasks", types: ["task"] },
  { id: "sessions", name: "Agent sessions", types: ["session"] },
];

/**
 * The sections of the sidebar: the favourite dm apart, then one of each type, by name. A query
 * keeps the rows whose names hold it. Sections without rows are left out.
 */
export function sectionsOf(
  all: readonly Conversation[],
  favourite: string | null,
  query = "",
): readonly Section[] {
  const wanted = query.trim().toLocaleLowerCase();
  const rows = all
    .filter((c) => !c.channel.archived && c.channel.type !== "thread")
    .map(rowOf)
    .filter((row) => row.name.toLocaleLowerCase().includes(wanted))
    .sort((a, b) => a.name.localeCompare(b.name) || (a.id < b.id ? -1 : 1));
  const apart = rows.filter((row) => row.id === favourite && row.kind === "dm");
  const sections: Section[] = [
    { id: "favourite", name: "Favourite", rows: apart },
    ...order.map(({ id, name, types }) => ({
      id,
      name,
      rows: rows.filter((row) => types.includes(row.kind) && !apart.includes(row)),
    })),
  ];
  return sections.filter((section) => section.rows.length > 0);
}
