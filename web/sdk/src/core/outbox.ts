import {
  type Answer,
  type Change,
  type Loss,
  type Operation,
  type Reason,
  RefusedError,
  conflictCode,
  isIntended,
  isUncertain,
  noChange,
  verdictOf,
} from "./operation.js";
import type { Revision, State, Version } from "./state.js";
import { clockFloor, clockSlack, giveUpAfter, maxOperations, maxRemembered } from "../limits.js";

/** What may be shown of a scope: what the server said, with the operations on top. */
export interface View extends State {
  readonly scope: string;
  /** The operation that brings about the version; empty when the server has said it. */
  readonly after: string;
  /** The version that the server has said. */
  readonly base: Version;
  /** The number of operations on top. */
  readonly pending: number;
}

/** Makes a read of what was seen, through a revision, inclusive. Id and time are the caller's. */
export function newRead(id: string, seen: View, revision: Revision, createdAt: number): Operation {
  const flips = seen.manualUnread && revision >= seen.fromRevision;
  return operation(id, seen, "read", revision, flips, createdAt);
}

/** Makes a manual mark on what was seen, which begins at a revision, or nowhere with 0. */
export function newUnread(id: string, seen: View, from: Revision, createdAt: number): Operation {
  const flips = !seen.manualUnread || seen.fromRevision !== from;
  return operation(id, seen, "unread", from, flips, createdAt);
}

/** A read of what was seen that names a version at which no mark can be in force. */
export function withoutMark(op: Operation, base: Version): Operation {
  return { ...op, after: "", expectedVersion: Math.max(base, 1) - 1, flips: false };
}

function writing(op: Operation): Change {
  return { ...noChange, put: [op] };
}

function operation(
  id: string,
  seen: View,
  kind: Operation["kind"],
  revision: Revision,
  flips: boolean,
  createdAt: number,
): Operation {
  const { scope, version: expectedVersion, after } = seen;
  return { id, scope, kind, revision, expectedVersion, after, flips, attempts: 0, createdAt };
}

/**
 * The operations of one namespace on one server that are not decided, oldest first. Methods that
 * return a Change alter nothing: the change is written, and only then applied.
 */
export class Outbox {
  #ops: Operation[];
  readonly #flight = new Set<string>();
  #done: string[] = [];
  #grouped: Map<string, Operation[]> | undefined; // by scope, made when it is needed

  constructor(ops: readonly Operation[] = []) {
    this.#ops = [...ops];
  }

  /** Oldest first. */
  get operations(): readonly Operation[] {
    return this.#ops;
  }

  /** Takes over what other writers of the same storage have left there. */
  reload(ops: readonly Operation[]): void {
    this.#ops = [...ops];
    this.#grouped = undefined;
    for (const id of this.#flight) if (!this.#find(id)) this.#flight.delete(id);
  }

  /**
   * Puts the operations of a scope on top of what the server said. One changes the mark only where
   * the version that it names is in force, so that nothing is shown which the server would not do.
   */
  view(scope: string, said: State): View {
    const v = { ...said, scope, after: "", base: said.version, pending: 0 };
    const holds = new Set([""]);
    for (const op of this.#of(scope)) {
      v.pending++;
      const marks = op.kind === "unread";
      if (!marks) v.readRevision = Math.max(v.readRevision, op.revision);
      if (holds.has(op.after) && op.expectedVersion === v.version) {
        const from = marks ? op.revision : 0;
        const changes = v.manualUnread !== marks || v.fromRevision !== from;
        if (changes && (marks || op.revision >= v.fromRevision)) {
          Object.assign(v, { manualUnread: marks, fromRevision: from, after: op.id });
          v.version++;
        }
        holds.add(op.id);
      } else if (op.flips && this.#isStarted(op) && isIntended(op, v)) {
        // Its event came before its answer, or another device did the same: the server has said it.
        holds.add(op.id);
      }
    }
    return v;
  }

  #of(scope: string): readonly Operation[] {
    if (!this.#grouped) {
      this.#grouped = new Map();
      for (const op of this.#ops) {
        const list = this.#grouped.get(op.scope);
        if (list) list.push(op);
        else this.#grouped.set(op.scope, [op]);
      }
    }
    return this.#grouped.get(scope) ?? [];
  }

  #isStarted(op: Operation): boolean {
    return this.#flight.has(op.id) || op.attempts > 0;
  }

  /**
   * Plans to take an operation in. The id is that of the one that stands for it: its own, or that
   * of a waiting read that is raised to cover it. Base is the version that the server had said when
   * the state was seen. Throws RefusedError.
   */
  add(op: Operation, base: Version): { change: Change; id: string } {
    const before = this.#find(op.after);
    if (op.after && before?.expectedVersion !== op.expectedVersion - 1) {
      if (this.#done.includes(op.after)) op = { ...op, after: "" };
      else if (op.kind === "unread") throw new RefusedError("stale");
      else op = withoutMark(op, base);
    }
    const waiting = this.#of(op.scope).at(-1);
    if (waiting && this.#folds(waiting, op)) {
      if (waiting.revision >= op.revision) return { change: noChange, id: waiting.id };
      const raised = { ...waiting, revision: op.revision, createdAt: op.createdAt };
      return { change: writing(raised), id: waiting.id };
    }
    if (this.#ops.length >= maxOperations) throw new RefusedError("full");
    return { change: writing(op), id: op.id };
  }

  /** Whether two reads differ in the revision only, so that the higher one does what both do. */
  #folds(a: Operation, b: Operation): boolean {
    const does = (op: Operation) => `${op.kind} ${op.expectedVersion} ${op.flips} ${op.after}`;
    return !this.#flight.has(a.id) && a.kind === "read" && does(a) === does(b);
  }

  /**
   * The oldest operation that may be sent: the first of its scope, not under way, not held back.
   */
  next(held: (scope: string) => boolean): Operation | undefined {
    const seen = new Set<string>();
    for (const op of this.#ops) {
      if (seen.has(op.scope)) continue;
      seen.add(op.scope);
      if (!this.#flight.has(op.id) && !held(op.scope)) return op;
    }
    return undefined;
  }

  /** Notes that an operation is being sent, and plans what has to be known if no answer comes. */
  begin(id: string): Change {
    const op = this.#find(id);
    if (!op) return noChange;
    this.#flight.add(id);
    if (op.kind === "read" || op.attempts === 2) return noChange;
    return writing({ ...op, attempts: op.attempts + 1 });
  }

  /**
   * Plans what an answer to an operation means. One that is gone already is settled. Sent is the
   * revision that was sent: where another tab has raised the operation since, it goes out again.
   */
  settle(id: string, a: Answer, sent?: Revision): Change {
    this.#flight.delete(id);
    const op = this.#find(id);
    if (!op || (sent !== undefined && op.revision > sent)) return noChange;
    const verdict = verdictOf(a);
    if (verdict === "accepted") {
      return op.flips && !isIntended(op, a.state!) ? this.#without(op) : this.#fulfilled(op);
    }
    if (verdict === "rejected") {
      const change = this.#without(op);
      // A mark whose answer was lost is refused the second time, because it is there: no loss. But
      // a state does not say whose mark it is, so that nothing may build on it.
      const there = op.attempts > 1 && a.code === conflictCode && a.state;
      if (there && isIntended(op, a.state!)) return change;
      const loss: Loss = { operation: op, reason: "refused", answer: a };
      return { ...change, lost: [loss, ...change.lost] };
    }
    return op.attempts === 1 && !isUncertain(a) ? writing({ ...op, attempts: 0 }) : noChange;
  }

  /**
   * Plans to give up what is too old at a time in milliseconds since 1970. Of an operation from the
   * future, or from before the clock was ever set, the age counts from now on.
   */
  expire(now: number): Change {
    const misdated = (op: Operation): boolean =>
      op.createdAt - now >= clockSlack || (op.createdAt < clockFloor && now >= clockFloor);
    const old = (op: Operation): boolean => !misdated(op) && now - op.createdAt >= giveUpAfter;
    const rest = this.#ops.map((op) => (misdated(op) ? { ...op, createdAt: now } : op));
    return this.#drop("too_old", old, rest);
  }

  /** Plans to drop what was meant for a scope that is no more. */
  supersede(scope: string): Change {
    return this.#drop("superseded", (op) => op.scope === scope);
  }

  #drop(reason: Reason, which: (op: Operation) => boolean, ops = this.#ops): Change {
    const rest = new Outbox(ops);
    const remove: string[] = [];
    const lost: Loss[] = [];
    for (const was of this.#ops) {
      const op = rest.#find(was.id); // or it went with one that it builds on
      if (!op || !which(was)) continue;
      const step = rest.#without(op);
      rest.apply(step);
      remove.push(...step.remove);
      lost.push({ operation: op, reason }, ...step.lost);
    }
    return { ...noChange, put: rest.#ops.filter((op) => op !== this.#find(op.id)), remove, lost };
  }

  /** Removes an operation that came out as it was meant to: what builds on it stands. */
  #fulfilled(op: Operation): Change {
    const put = this.#ops.filter((x) => x.after === op.id).map((x) => ({ ...x, after: "" }));
    return { put, remove: [op.id], lost: [], done: op.flips ? [op.id] : [] };
  }

  /**
   * Removes an operation that did not come out. What builds on it was made by somebody who saw what
   * never was: a read keeps its revision and names the older version, a mark is lost.
   */
  #without(op: Operation): Change {
    const broken = new Set([op.id]);
    const put: Operation[] = [];
    const remove = [op.id];
    const lost: Loss[] = [];
    for (const later of this.#ops) {
      if (!later.after || !broken.has(later.after)) continue;
      broken.add(later.id);
      if (later.kind === "unread") {
        remove.push(later.id);
        lost.push({ operation: later, reason: "dependent" });
      } else {
        put.push({ ...later, after: "", expectedVersion: op.expectedVersion, flips: false });
      }
    }
    return { put, remove, lost, done: [] };
  }

  /** Notes what came out as it was meant to, here or in another tab. */
  remember(done: readonly string[]): void {
    this.#done = [...this.#done, ...done].slice(-maxRemembered);
  }

  /** Carries out a change that has been written. */
  apply(c: Change): void {
    this.#grouped = undefined;
    const removed = new Set(c.remove);
    this.#ops = this.#ops.filter((op) => !removed.has(op.id));
    for (const id of c.remove) this.#flight.delete(id);
    for (const op of c.put) {
      const i = this.#ops.findIndex((x) => x.id === op.id);
      if (i < 0) this.#ops.push(op);
      else this.#ops[i] = op;
    }
    this.remember(c.done);
  }

  #find(id: string): Operation | undefined {
    return this.#ops.find((op) => op.id === id);
  }
}
