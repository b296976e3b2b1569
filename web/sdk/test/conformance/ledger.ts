import {
  type Level,
  type Message,
  type Notification,
  type ScopeType,
  RefusedError,
  baseOf,
  countAbove,
  levelAt,
  markRead,
  markUnread,
  present,
  totals,
} from "../../src/core/index.js";
import {
  type Row,
  chooseFollow,
  followsByItself,
  join,
  mergeMarks,
  settle,
  startEpoch,
} from "./membership.js";

/** An entry of a log: it is never taken out. */
export interface Entry extends Message {
  live: boolean;
  trimmed: boolean;
  /** A tombstone whose message is elsewhere now. */
  moved: boolean;
  /** Tells messages apart: the same in both entries of a broadcast reply, and after a move. */
  readonly message: number;
  readonly author: string;
  mentions: readonly string[];
  mentionsEveryone: boolean;
  /** The second from which it is no more, 0 for never. */
  readonly expires: number;
  twin?: { readonly scope: Log; readonly seq: number };
}

interface Activity {
  readonly actor: string;
  readonly low: boolean;
  readonly recipients: readonly string[];
}

/** One scope with all that ever was in it. */
export interface Log {
  readonly id: string;
  readonly type: ScopeType;
  readonly shared: boolean;
  readonly parent?: Log;
  /** The seq of a thread's root in its parent, 0 for none. */
  readonly root: number;
  readonly owner: string;
  archived: boolean;
  busy: boolean;
  replaced: boolean;
  readonly entries: Entry[];
  readonly activities: Activity[];
  readonly rows: Map<string, Row>;
}

/** A refusal by its code, for what the rules of counting are never asked about. */
export class Refusal extends Error {
  constructor(readonly code: string) {
    super(code);
  }
}

export function headOf(s: Log): number {
  return s.entries.findLast((e) => e.contentRevision)?.contentRevision ?? 0;
}

/** What is new of a draft beyond its place: everything of an entry that the log does not give. */
export type Draft = Pick<
  Entry,
  "message" | "author" | "notifyPrincipal" | "mentions" | "mentionsEveryone" | "expires"
> & { readonly recipients?: readonly string[] };

/**
 * One workspace as plain tables, for checking the rules of `core`: every count is found by looking
 * at everything there ever was, and every change of a row is made by `core`.
 */
export class Ledger {
  readonly logs = new Map<string, Log>();
  readonly blocks = new Map<string, Set<string>>();
  now = 0;
  private messages = 0;

  open(id: string | undefined): Log {
    const s = this.logs.get(id ?? "");
    if (!s) throw new Refusal("not_found");
    if (s.replaced) throw new Refusal("scope_replaced");
    return s;
  }

  newLog(id: string, type: ScopeType, more: Partial<Log> = {}): Log {
    const s: Log = {
      id,
      type,
      shared: false,
      root: 0,
      owner: "",
      archived: false,
      busy: false,
      replaced: false,
      entries: [],
      activities: [],
      rows: new Map(),
      ...more,
    };
    this.logs.set(id, s);
    return s;
  }

  nextMessage(): number {
    return ++this.messages;
  }

  /** The entry at a seq that is retained. */
  entry(s: Log, seq: number): Entry | undefined {
    const e = s.entries[seq - 1];
    return e?.trimmed ? undefined : e;
  }

  ground(s: Log, member: string) {
    const parentEpoch = s.parent?.rows.get(member)?.epoch ?? 0;
    return { head: headOf(s), latestActivity: s.activities.length, parentEpoch };
  }

  /** Puts a message at the end of the log; a readable one makes people follow a thread first. */
  append(s: Log, draft: Draft, readable: boolean): Entry {
    const contentRevision = headOf(s) + 1;
    const e: Entry = {
      ...draft,
      id: `${s.id}/${s.entries.length + 1}`,
      seq: s.entries.length + 1,
      live: true,
      trimmed: false,
      moved: false,
      ...(readable ? { contentRevision } : {}),
    };
    if (readable && s.parent) {
      const root = this.entry(s.parent, s.root);
      if (root && !root.moved) this.followFrom(s, root.author, contentRevision);
      for (const m of [e.author, ...e.mentions]) this.followFrom(s, m, contentRevision);
    }
    s.entries.push(e);
    return e;
  }

  /** Makes a member follow a thread from a revision on, unless they do, or chose not to. */
  followFrom(s: Log, member: string, first: number): void {
    const row = s.rows.get(member);
    if (!followsByItself(row, s.parent?.rows.get(member))) return;
    s.rows.set(member, startEpoch(row, this.ground(s, member), first));
  }

  twinOf(e: Entry): { scope: Log; entry: Entry } | undefined {
    const entry = e.twin && this.entry(e.twin.scope, e.twin.seq);
    return entry?.live ? { scope: e.twin!.scope, entry } : undefined;
  }

  /** Replaces whom an entry names. Those whom it newly names follow from it on. */
  rename(s: Log, e: Entry, mentions: readonly string[], everyone: boolean): void {
    const before = e.mentions;
    e.mentions = mentions;
    e.mentionsEveryone = everyone;
    if (!s.parent || !e.contentRevision) return;
    for (const m of mentions) if (!before.includes(m)) this.followFrom(s, m, e.contentRevision);
  }

  /** Makes a live entry, with its twin, a tombstone. */
  drop(s: Log, e: Entry): void {
    const twin = this.twinOf(e);
    this.bury(s, e);
    if (twin) this.bury(twin.scope, twin.entry);
  }

  private bury(s: Log, e: Entry): void {
    e.live = false;
    for (const t of this.logs.values()) if (t.parent === s && t.root === e.seq) t.archived = true;
  }

  join(s: Log, member: string, effective: number | undefined, read: number): boolean {
    const row = s.rows.get(member);
    const command = { read, shared: s.shared, ...(effective ? { effective } : {}) };
    return this.change(s, member, join(row, this.ground(s, member), command));
  }

  follow(s: Log, member: string, following: boolean): boolean {
    const before = s.rows.get(member);
    const reach = this.isInReach(s, member);
    const row = reach ? before! : startEpoch(before, this.ground(s, member));
    return this.change(s, member, chooseFollow(row, following));
  }

  read(s: Log, member: string, revision: number, version: number | undefined): boolean {
    return this.change(s, member, markRead(s.rows.get(member)!, headOf(s), revision, version));
  }

  mark(s: Log, member: string, from: number, version: number | undefined): boolean {
    return this.change(s, member, markUnread(s.rows.get(member)!, headOf(s), from, version));
  }

  /** Stores a row; it tells whether it is another one. */
  change(s: Log, member: string, row: Row): boolean {
    const before = s.rows.get(member);
    s.rows.set(member, row);
    const changed = !before || JSON.stringify(before) !== JSON.stringify(row);
    if (changed) this.settle(s);
    return changed;
  }

  /** In a session where nothing is unread, the cursor stands at the head. */
  settle(s: Log): void {
    if (s.type !== "session" || s.replaced) return;
    const { unread } = this.counts(s, s.owner);
    s.rows.set(s.owner, settle(s.rows.get(s.owner)!, headOf(s), unread));
  }

  /** Appends a session to another one of the same owner, and retires it. */
  merge(from: Log, to: Log): void {
    const source = from.rows.get(from.owner)!;
    const base = baseOf(source);
    let begins = source.fromRevision > 0 ? headOf(to) + 1 : 0;
    for (const e of from.entries) {
      if (e.trimmed) continue;
      const revision = e.contentRevision ?? 0;
      const { contentRevision: _, ...rest } = e;
      const arrives = revision > base ? headOf(to) + 1 : 0;
      if (arrives > 0 && revision < source.fromRevision) begins = arrives + 1;
      const place = { id: `${to.id}/${to.entries.length + 1}`, seq: to.entries.length + 1 };
      to.entries.push({ ...rest, ...place, ...(arrives > 0 ? { contentRevision: arrives } : {}) });
    }
    to.rows.set(to.owner, mergeMarks(source, to.rows.get(to.owner)!, begins));
    from.replaced = true;
    from.rows.clear();
    this.settle(to);
  }

  /** Begins a session as a copy of what is live in another one, which nobody has to read. */
  fork(from: Log, id: string): void {
    const to = this.newSession(id, from.owner);
    for (const e of from.entries) {
      if (!e.live || e.trimmed) continue;
      const { contentRevision: _, ...rest } = e;
      to.entries.push({
        ...rest,
        id: `${id}/${to.entries.length + 1}`,
        seq: to.entries.length + 1,
      });
    }
  }

  newSession(id: string, owner: string): Log {
    const s = this.newLog(id, "session", { owner });
    s.rows.set(owner, startEpoch(undefined, this.ground(s, owner)));
    return s;
  }

  isInReach(s: Log, member: string): boolean {
    const row = s.rows.get(member);
    if (!row?.joined || !s.parent) return row?.joined === true;
    const above = s.parent.rows.get(member);
    return above?.joined === true && above.epoch === row.parentEpoch;
  }

  isPresent(s: Log, member: string): boolean {
    const seen = (log: Log) => log.rows.get(member)?.visible === true;
    return this.isInReach(s, member) && seen(s) && (!s.parent || seen(s.parent));
  }

  /** Raw counts, found by looking at everything. */
  counts(s: Log, member: string) {
    const row = s.rows.get(member)!;
    const blocked = this.blocks.get(member) ?? new Set<string>();
    const live = s.entries.filter((e) => e.live && !e.trimmed);
    const activity = s.activities.filter(
      (a, i) =>
        i >= row.activityRead &&
        !a.low &&
        a.actor !== member &&
        !blocked.has(a.actor) &&
        (s.type !== "task" || a.recipients.includes(member)),
    ).length;
    return { ...countAbove(live, baseOf(row), s.type, member, blocked), activity };
  }

  levelNow(s: Log, member: string): Level {
    const parent: Notification | undefined = s.parent?.rows.get(member);
    return levelAt(this.now, s.rows.get(member)!, parent);
  }

  /** A row as it is served. */
  serve(s: Log, member: string) {
    const row = s.rows.get(member)!;
    const raw = this.counts(s, member);
    const level = this.levelNow(s, member);
    const archived = s.archived || s.parent?.archived === true;
    const counts = this.isPresent(s, member) && !archived;
    const { manualUnread } = row;
    const shown = present({ counts, level, manualUnread, busy: s.busy }, raw);
    return { row, ...raw, level, counts, ...shown };
  }

  /** What a member is shown, added up. */
  badge(member: string) {
    const mine = [...this.logs.values()].filter((s) => s.rows.has(member));
    return totals(mine.map((s) => this.serve(s, member)));
  }
}

/** The code of a refusal; anything else is thrown again. */
export function codeOf(error: unknown): string {
  if (error instanceof RefusedError || error instanceof Refusal) return error.code;
  throw error;
}
