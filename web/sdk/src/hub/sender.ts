import { delay } from "../core/delay.js";
import { type Change, type Operation, noChange, replacedCode } from "../core/operation.js";
import type { Outbox } from "../core/outbox.js";
import { type Outcome, sendOne, sendReads } from "./delivery.js";
import type { Keeper } from "./keeper.js";
import { isSession } from "./paths.js";
import { Pause } from "./pause.js";
import type { Clock, Locks } from "./ports.js";
import { type RequestError, type Transport, asRequestError } from "./transport.js";
import { expiryCheck, maxBatch, maxSending } from "../limits.js";

/** How long something waits after failures in a row; until is a time of the clock. */
interface Hold {
  readonly failures: number;
  readonly until: number;
}

const noHold: Hold = { failures: 0, until: 0 };

/**
 * Sends what waits, while it holds the lock: one tab sends for all.
 *
 *     lock -> expire -> next -> note that it is sent -> send -> settle: done, lost, or later
 *
 * The operations of one scope go one after the other. No answer, 429 and 5xx are tried again, later
 * each time; 401 waits for another token; a refusal of the server ends the operation.
 */
export class Sender {
  /** Why the last attempt decided nothing; undefined when nothing went wrong since. */
  failure: RequestError | undefined;
  #all: Hold = noHold;
  readonly #scopes = new Map<string, Hold>();
  #flying = 0;
  #singly = false;
  readonly #pause: Pause;
  readonly #stopped = new AbortController();

  readonly #transport: Transport;
  readonly #keeper: Keeper;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #told: () => void;

  constructor(
    transport: Transport,
    keeper: Keeper,
    clock: Clock,
    random: () => number,
    told: () => void,
  ) {
    this.#transport = transport;
    this.#keeper = keeper;
    this.#clock = clock;
    this.#pause = new Pause(clock);
    this.#random = random;
    this.#told = told;
  }

  /** Sends until stop, whenever it holds the lock. */
  async run(locks: Locks, name: string): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      try {
        await locks.request(name, { signal }, () => this.#loop());
      } catch {
        await this.#pause.wait(delay(1, this.#random())); // the lock was refused, or taken away
      }
    }
  }

  /** Looks for something to send. */
  nudge(): void {
    this.#pause.wake();
  }

  /** Lets everything be attempted now. How often it failed is kept. */
  lift(): void {
    this.#all = { ...this.#all, until: 0 };
    for (const [scope, hold] of this.#scopes) this.#scopes.set(scope, { ...hold, until: 0 });
    this.nudge();
  }

  stop(): void {
    this.#stopped.abort();
    this.#pause.end();
  }

  async #loop(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      const now = this.#clock.now();
      if (this.#all.until <= now) {
        try {
          const due = this.#keeper.outbox.expire(now);
          if (due.remove.length + due.put.length > 0) {
            await this.#keeper.commit((outbox) => outbox.expire(now));
          }
          this.#fill();
        } catch (error) {
          this.#failed(asRequestError(error)); // the disk takes nothing
        }
      }
      await this.#pause.wait(this.#untilNext());
    }
  }

  #untilNext(): number {
    const now = this.#clock.now();
    if (this.#all.until > now) return this.#all.until - now;
    let next = expiryCheck;
    for (const { until } of this.#scopes.values())
      if (until > now) next = Math.min(next, until - now);
    return next;
  }

  /** Begins to send what may be sent now. */
  #fill(): void {
    while (this.#flying < maxSending) {
      const ops = this.#take();
      if (ops.length === 0) return;
      this.#flying++;
      void this.#deliver(ops).finally(() => {
        this.#flying--;
        this.nudge();
      });
    }
  }

  /** The operations of the next request: one, or reads that go together. */
  #take(): Operation[] {
    const { outbox } = this.#keeper;
    const now = this.#clock.now();
    const held = (scope: string) => (this.#scopes.get(scope)?.until ?? 0) > now;
    const ops: Operation[] = [];
    while (ops.length < maxBatch) {
      const op = outbox.next(held);
      if (!op) break;
      const alone = this.#singly || op.kind === "unread" || isSession(op.scope);
      if (alone && ops.length > 0) break;
      outbox.begin(op.id); // what it plans is written by deliver
      ops.push(op);
      if (alone) break;
    }
    return ops;
  }

  async #deliver(ops: readonly Operation[]): Promise<void> {
    const [op] = ops as [Operation];
    try {
      // What has to be known of a mark whose answer is never seen is on disk before it goes.
      if (op.kind === "unread") await this.#keeper.commit((outbox) => outbox.begin(op.id));
    } catch (error) {
      this.#unbegin(ops);
      this.#failed(asRequestError(error));
      return;
    }
    let outcomes: readonly Outcome[];
    if (ops.length > 1) {
      const sent = await sendReads(this.#transport, ops);
      this.#singly ||= sent.refused;
      ({ outcomes } = sent);
    } else {
      outcomes = [await sendOne(this.#transport, op)];
    }
    await this.#settle(ops, outcomes);
  }

  async #settle(ops: readonly Operation[], outcomes: readonly Outcome[]): Promise<void> {
    let why: RequestError | undefined;
    for (const { operation, answer, why: failure } of outcomes) {
      if (!failure) this.#scopes.delete(operation.scope);
      else if (answer.status === 500 && answer.code) this.#hold(operation.scope);
      else why = failure;
    }
    // Before the outbox changes, or what waits would be sent at once.
    if (why) this.#failed(why);
    else this.#recovered();
    try {
      const answers = outcomes
        .filter(({ answer }) => answer.state)
        .map(({ operation, body }) => ({ scope: operation.scope, body }));
      await this.#keeper.commit((outbox) => settleAll(outbox, outcomes), answers);
      for (const { operation, answer } of outcomes) {
        if (answer.code !== replacedCode) continue;
        await this.#keeper.commit((outbox) => outbox.supersede(operation.scope));
      }
    } catch (error) {
      this.#unbegin(ops); // they are sent once more
      this.#failed(asRequestError(error));
    }
  }

  /** Takes back that operations are under way. */
  #unbegin(ops: readonly Operation[]): void {
    for (const { id } of ops) this.#keeper.outbox.settle(id, { status: 0 });
  }

  #hold(scope: string): void {
    this.#scopes.set(scope, this.#longer(this.#scopes.get(scope) ?? noHold, 0));
  }

  #recovered(): void {
    this.#all = noHold;
    this.failure = undefined;
    this.#told();
  }

  #failed(why: RequestError): void {
    this.failure = why;
    this.#all = this.#longer(this.#all, why.wait);
    this.#told();
  }

  #longer(hold: Hold, wait: number): Hold {
    const now = this.#clock.now();
    if (hold.until > now) return { ...hold, until: Math.max(hold.until, now + wait) };
    const failures = hold.failures + 1;
    return { failures, until: now + Math.max(wait, delay(failures, this.#random())) };
  }
}

/** The operations of one request are of different scopes, so that what follows adds up. */
function settleAll(outbox: Outbox, outcomes: readonly Outcome[]): Change {
  const all = outcomes.map((o) => outbox.settle(o.operation.id, o.answer, o.operation.revision));
  return all.length === 1
    ? all[0]!
    : all.reduce(
        (sum, c) => ({
          put: [...sum.put, ...c.put],
          remove: [...sum.remove, ...c.remove],
          lost: [...sum.lost, ...c.lost],
          done: [...sum.done, ...c.done],
        }),
        noChange,
      );
}
