import type { Level, ScopeType } from "../../src/core/index.js";
import { type Draft, type Entry, type Log, Ledger, Refusal, codeOf, headOf } from "./ledger.js";

/**
 * An operation of a history; README.md of the cases has the table. What is not there is nothing.
 */
export interface HistoryOp {
  readonly type: string;
  readonly scope?: string;
  readonly to?: string;
  readonly member?: string;
  readonly other?: string;
  readonly kind?: ScopeType;
  readonly history?: string;
  readonly parent?: string;
  readonly rootSeq?: number;
  readonly seq?: number;
  readonly seqs?: readonly number[];
  readonly throughSeq?: number;
  readonly author?: string;
  readonly notifyPrincipal?: string;
  readonly mentions?: readonly string[];
  readonly mentionsEveryone?: boolean;
  readonly recipients?: readonly string[];
  readonly broadcast?: boolean;
  readonly unreadable?: boolean;
  readonly baseline?: boolean;
  readonly expiresAt?: number;
  readonly observedRevision?: number;
  readonly countMoved?: boolean;
  readonly readRevision?: number;
  readonly expectedVersion?: number;
  readonly fromRevision?: number;
  readonly effectiveFrom?: number;
  readonly activityReadSeq?: number;
  readonly scopes?: readonly {
    readonly scope: string;
    readonly readRevision: number;
    readonly expectedVersion?: number;
  }[];
  readonly service?: boolean;
  readonly notification?: Level | "inherit";
  readonly until?: number;
  readonly lowSignal?: boolean;
  readonly active?: boolean;
  readonly thinking?: boolean;
  readonly seconds?: number;
}

/** What an operation came to. */
export interface HistoryAnswer {
  readonly result: string;
  readonly code?: string;
  readonly seq?: number;
  readonly contentRevision?: number;
  readonly items?: readonly HistoryAnswer[];
}

const acts: Record<string, (w: Ledger, op: HistoryOp) => boolean | HistoryAnswer> = {
  create,
  post,
  edit,
  delete: remove,
  rewind,
  trim,
  move,
  clock: expire,
  expire,
  join: joinScope,
  leave: (w, op) => reshape(w, op, { joined: false }),
  hide: (w, op) => reshape(w, op, { visible: false }),
  show: (w, op) => reshape(w, op, { visible: true }),
  read,
  readAll,
  unread,
  level,
  follow: followThread,
  unfollow: followThread,
  archive: (w, op) => archive(w.open(op.scope), true),
  unarchive: (w, op) => archive(w.open(op.scope), false),
  block,
  unblock: block,
  activity,
  readActivity,
  run,
  merge,
  fork,
};

/** Carries an operation out. */
export function apply(w: Ledger, op: HistoryOp): HistoryAnswer {
  try {
    const done = acts[op.type]!(w, op);
    if (typeof done !== "boolean") return done;
    return { result: done ? "applied" : "unchanged" };
  } catch (error) {
    return { result: "refused", code: codeOf(error) };
  }
}

function invalid(wrong: boolean | undefined): void {
  if (wrong) throw new Refusal("invalid_request");
}

function create(w: Ledger, op: HistoryOp): boolean {
  const { scope = "", kind = "channel", rootSeq: root = 0, member = "" } = op;
  const old = w.logs.get(scope);
  const shared = op.history === "shared";
  if (old) {
    const same =
      old.type === kind &&
      old.shared === shared &&
      (old.parent?.id ?? undefined) === op.parent &&
      old.root === root &&
      old.owner === member;
    if (!same) throw new Refusal("operation_mismatch");
    return false;
  }
  if (kind === "session") {
    invalid(member === "");
    w.newSession(scope, member);
    return true;
  }
  if (kind !== "thread") {
    w.newLog(scope, kind, { shared });
    return true;
  }
  const parent = w.open(op.parent);
  invalid(parent.type !== "channel" && parent.type !== "dm");
  const entry = w.entry(parent, root);
  if (root !== 0 && !entry?.live) throw new Refusal("not_found");
  for (const t of w.logs.values()) {
    if (root !== 0 && t.parent === parent && t.root === root)
      throw new Refusal("operation_mismatch");
  }
  const s = w.newLog(scope, "thread", { parent, root });
  if (entry) for (const m of [entry.author, ...entry.mentions]) w.followFrom(s, m, 1);
  return true;
}

function names(list: readonly string[] = []): string[] {
  return [...new Set(list)].sort();
}

function post(w: Ledger, op: HistoryOp): HistoryAnswer {
  const s = w.open(op.scope);
  const { author = "", observedRevision = 0, mentionsEveryone = false, expiresAt = 0 } = op;
  invalid(author === "" || (mentionsEveryone && s.type === "task"));
  invalid((op.broadcast && s.type !== "thread") || (op.recipients && s.type !== "task"));
  if (observedRevision > headOf(s)) throw new Refusal("revision_in_future");
  const draft: Draft = {
    message: w.nextMessage(),
    author,
    mentions: names(op.mentions),
    mentionsEveryone,
    expires: expiresAt,
    recipients: names(op.recipients),
    ...(op.notifyPrincipal ? { notifyPrincipal: op.notifyPrincipal } : {}),
  };
  const readable = !op.unreadable && !op.baseline;
  const e = w.append(s, draft, readable);
  if (op.broadcast) {
    const twin = w.append(s.parent!, draft, readable);
    e.twin = { scope: s.parent!, seq: twin.seq };
    twin.twin = { scope: s, seq: e.seq };
  }
  const row = s.rows.get(author);
  if (observedRevision > 0 && row && w.isInReach(s, author)) {
    const readRevision = Math.max(row.readRevision, observedRevision);
    w.change(s, author, { ...row, readRevision });
  }
  const { seq, contentRevision } = e;
  return { result: "applied", seq, ...(contentRevision ? { contentRevision } : {}) };
}

function edit(w: Ledger, op: HistoryOp): boolean {
  const s = w.open(op.scope);
  const e = w.entry(s, op.seq!);
  if (!e?.live) throw new Refusal("not_found");
  const { mentionsEveryone = false } = op;
  invalid(mentionsEveryone && s.type === "task");
  const mentions = names(op.mentions);
  const same = mentions.join() === e.mentions.join() && mentionsEveryone === e.mentionsEveryone;
  if (same) return false;
  w.rename(s, e, mentions, mentionsEveryone);
  const twin = w.twinOf(e);
  if (twin) w.rename(twin.scope, twin.entry, mentions, mentionsEveryone);
  return true;
}

function remove(w: Ledger, op: HistoryOp): boolean {
  const s = w.open(op.scope);
  const e = w.entry(s, op.seq!);
  if (!e) throw new Refusal("not_found");
  return dropAll(w, s, e.live ? [e] : []);
}

function dropAll(w: Ledger, s: Log, entries: readonly Entry[]): boolean {
  for (const e of entries) w.drop(s, e);
  if (entries.length > 0) w.settle(s);
  return entries.length > 0;
}

function rewind(w: Ledger, op: HistoryOp): boolean {
  const s = w.open(op.scope);
  return dropAll(
    w,
    s,
    s.entries.filter((e) => e.seq > op.throughSeq! && e.live && !e.trimmed),
  );
}

function trim(w: Ledger, op: HistoryOp): boolean {
  const s = w.open(op.scope);
  const due = s.entries.filter((e) => e.seq <= op.throughSeq! && !e.trimmed);
  for (const e of due) e.trimmed = true;
  if (due.length > 0) w.settle(s);
  return due.length > 0;
}

function expire(w: Ledger, op: HistoryOp): boolean {
  w.now += op.seconds ?? 0;
  if (op.type === "clock") return false;
  let changed = false;
  for (const s of w.logs.values()) {
    const due = (e: Entry) => e.live && !e.trimmed && e.expires !== 0 && e.expires <= w.now;
    // An entry may go with its twin before its own turn.
    const swept = s.entries.filter(due);
    for (const e of swept) if (e.live) w.drop(s, e);
    if (swept.length > 0) w.settle(s);
    changed ||= swept.length > 0;
  }
  return changed;
}

function move(w: Ledger, op: HistoryOp): boolean {
  const from = w.open(op.scope);
  const to = w.open(op.to);
  const seqs = [...new Set(op.seqs)].sort((a, b) => a - b);
  invalid(from === to || seqs.length === 0 || from.type === "session" || to.type === "session");
  invalid(to.type !== "task" && op.recipients !== undefined);
  for (const q of seqs) {
    const e = w.entry(from, q);
    if (!e?.live) throw new Refusal("not_found");
    const there = to.entries.some((x) => x.message === e.message && x.live);
    if (there) throw new Refusal("operation_mismatch");
    invalid(to.type === "task" && op.countMoved && !!e.contentRevision && e.mentionsEveryone);
  }
  for (const q of seqs) {
    const e = w.entry(from, q)!;
    const readable = op.countMoved === true && e.contentRevision !== undefined;
    const draft: Draft = {
      message: e.message,
      author: e.author,
      expires: e.expires,
      mentions: readable ? e.mentions : [],
      mentionsEveryone: readable && e.mentionsEveryone,
      recipients: names(op.recipients),
      ...(e.notifyPrincipal ? { notifyPrincipal: e.notifyPrincipal } : {}),
    };
    w.drop(from, e);
    e.moved = true;
    const twin = e.twin && w.entry(e.twin.scope, e.twin.seq);
    if (twin) twin.moved = true;
    w.append(to, draft, readable);
  }
  return true;
}

function joinScope(w: Ledger, op: HistoryOp): boolean {
  const s = w.open(op.scope);
  invalid(s.type === "thread" || s.type === "session");
  return w.join(s, op.member!, op.effectiveFrom, op.readRevision ?? 0);
}

function reshape(
  w: Ledger,
  op: HistoryOp,
  to: { readonly joined?: boolean; readonly visible?: boolean },
): boolean {
  const s = w.open(op.scope);
  invalid(op.type === "leave" && (s.type === "thread" || s.type === "session"));
  const row = s.rows.get(op.member!);
  if (!row) throw new Refusal("not_found");
  return w.change(s, op.member!, { ...row, ...to });
}

/**
 * The scope of an operation on read state: the member sees it, or a service acts and it is theirs.
 */
function reachable(w: Ledger, op: HistoryOp): Log {
  const s = w.open(op.scope);
  const member = op.member!;
  const reached = w.isPresent(s, member) || (op.service && w.isInReach(s, member));
  if (!reached) throw new Refusal("not_found");
  return s;
}

function read(w: Ledger, op: HistoryOp): boolean {
  invalid(op.expectedVersion === undefined && !op.service);
  return w.read(reachable(w, op), op.member!, op.readRevision ?? 0, op.expectedVersion);
}

function readAll(w: Ledger, op: HistoryOp): HistoryAnswer {
  const { member, service } = op;
  const items = op.scopes!.map((item) =>
    apply(w, { type: "read", ...item, member: member!, ...(service ? { service } : {}) }),
  );
  const changed = items.some((item) => item.result === "applied");
  return { result: changed ? "applied" : "unchanged", items };
}

function unread(w: Ledger, op: HistoryOp): boolean {
  invalid(op.expectedVersion === undefined && !op.service);
  return w.mark(reachable(w, op), op.member!, op.fromRevision ?? 0, op.expectedVersion);
}

function level(w: Ledger, op: HistoryOp): boolean {
  const { notification = "all", until = 0 } = op;
  invalid(notification === "inherit" && until !== 0);
  const s = reachable(w, op);
  return w.change(s, op.member!, { ...s.rows.get(op.member!)!, level: notification, until });
}

function followThread(w: Ledger, op: HistoryOp): boolean {
  const s = w.open(op.scope);
  invalid(s.type !== "thread");
  if (!w.isInReach(s.parent!, op.member!)) throw new Refusal("not_found");
  return w.follow(s, op.member!, op.type === "follow");
}

function archive(s: Log, archived: boolean): boolean {
  const changed = s.archived !== archived;
  s.archived = archived;
  return changed;
}

function block(w: Ledger, op: HistoryOp): boolean {
  const { member = "", other = "" } = op;
  invalid(member === "" || other === "" || member === other);
  const mine = w.blocks.get(member) ?? new Set();
  w.blocks.set(member, mine);
  if (op.type === "unblock") return mine.delete(other);
  const changed = !mine.has(other);
  mine.add(other);
  return changed;
}

function activity(w: Ledger, op: HistoryOp): boolean {
  const s = w.open(op.scope);
  invalid(s.type !== "task" && op.recipients !== undefined);
  s.activities.push({
    actor: op.member!,
    low: op.lowSignal === true,
    recipients: names(op.recipients),
  });
  return true;
}

function readActivity(w: Ledger, op: HistoryOp): boolean {
  const s = reachable(w, op);
  const row = s.rows.get(op.member!)!;
  const to = op.activityReadSeq ?? 0;
  if (to > s.activities.length) throw new Refusal("revision_in_future");
  return w.change(s, op.member!, { ...row, activityRead: Math.max(row.activityRead, to) });
}

function run(w: Ledger, op: HistoryOp): boolean {
  const s = w.open(op.scope) as Log & { run?: string };
  invalid(s.type !== "session");
  const state = `${op.active === true} ${op.thinking === true}`;
  const changed = (s.run ?? "false false") !== state;
  s.run = state;
  s.busy = op.active === true && op.thinking === true;
  return changed;
}

function merge(w: Ledger, op: HistoryOp): boolean {
  const from = w.open(op.scope);
  const to = w.open(op.to);
  const sessions = from.type === "session" && to.type === "session";
  invalid(from === to || !sessions || from.owner !== to.owner);
  w.merge(from, to);
  return true;
}

function fork(w: Ledger, op: HistoryOp): boolean {
  const from = w.open(op.scope);
  invalid(from.type !== "session");
  if (w.logs.has(op.to!)) throw new Refusal("operation_mismatch");
  w.fork(from, op.to!);
  return true;
}
