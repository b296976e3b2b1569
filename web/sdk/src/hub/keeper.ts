import { type Change, type Loss, isEmpty } from "../core/operation.js";
import { Outbox, type View } from "../core/outbox.js";
import type { State } from "../core/state.js";
import type { Channel, Storage } from "./ports.js";
import { maxLosses } from "../limits.js";

/** What a tab tells the others after it has changed the outbox. */
interface News {
  readonly done: readonly string[];
  readonly lost: readonly Loss[];
  /** What the server answered, by scope. */
  readonly answers: readonly Answered[];
}

/** An answer of the server about one scope. */
export interface Answered {
  readonly scope: string;
  readonly body: unknown;
}

/**
 * The outbox of one member on one server, in memory as it is on disk. Changes are planned on what
 * the disk has, written, and then shown (SE-093); one after the other, in this tab and among tabs.
 */
export class Keeper {
  /** What waits on disk is known. */
  restored = false;
  /** Operations that will never be done, oldest first. */
  lost: readonly Loss[] = [];
  /** How many there have been, those that are not kept any more included. */
  lostCount = 0;
  /** Why the last write failed; undefined after one that did not. */
  failure: Error | undefined;
  /** As it is on disk, to look at; changes go through commit. */
  readonly outbox = new Outbox();
  #key = "";
  #channel: Channel | undefined;
  #turns: Promise<unknown> = Promise.resolve();
  #closed = false;

  readonly #storage: Storage;
  readonly #changed: (answers: readonly Answered[]) => void;

  /**
   * Changed is called whenever the outbox is another one, with what the server answered besides, in
   * the same moment.
   */
  constructor(storage: Storage, changed: (answers: readonly Answered[]) => void) {
    this.#storage = storage;
    this.#changed = changed;
  }

  /** Reads what an earlier page has left. The key stays; calling again does nothing. */
  async restore(key: string, openChannel: () => Channel): Promise<void> {
    if (this.restored || this.#closed) return;
    this.outbox.reload(await this.#storage.load(key));
    if (this.#closed) return;
    this.#key = key;
    const channel = openChannel();
    this.#channel = channel;
    this.restored = true;
    channel.subscribe((message) => this.#hear(message as News));
    this.#changed([]);
  }

  view(scope: string, said: State): View {
    return this.outbox.view(scope, said);
  }

  get size(): number {
    return this.outbox.operations.length;
  }

  /**
   * Plans a change, writes it and shows it, with what the server answered. It rejects, with nothing
   * shown, when the plan throws or the disk takes nothing.
   */
  commit(plan: (outbox: Outbox) => Change, answers: readonly Answered[] = []): Promise<void> {
    if (this.#closed) return Promise.reject(new Error("closed"));
    const turn = this.#turns.then(() => this.#take(plan, answers));
    this.#turns = turn.catch(() => {});
    return turn;
  }

  /** Resolves when everything that was begun is written; nothing begins any more. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#turns;
    this.#channel?.close();
    this.#storage.close();
  }

  async #take(plan: (outbox: Outbox) => Change, answers: readonly Answered[]): Promise<void> {
    if (!this.restored) throw new Error("not ready: the server has not told whose the token is");
    let change: Change;
    try {
      ({ change } = await this.#storage.write(this.#key, (operations) => {
        this.outbox.reload(operations);
        return plan(this.outbox);
      }));
    } catch (error) {
      this.failure = error instanceof Error ? error : new Error(String(error));
      this.#changed([]);
      throw error;
    }
    this.failure = undefined;
    this.outbox.apply(change);
    this.#note(change.lost);
    this.#changed(answers);
    if (!isEmpty(change) || answers.length > 0) {
      this.#channel?.post({ done: change.done, lost: change.lost, answers } satisfies News);
    }
  }

  #note(lost: readonly Loss[]): void {
    this.lost = [...this.lost, ...lost].slice(-maxLosses);
    this.lostCount += lost.length;
  }

  /** Takes in that another tab has changed the outbox. */
  #hear(news: News): void {
    const turn = this.#turns.then(async () => {
      if (this.#closed) return;
      this.outbox.reload(await this.#storage.load(this.#key));
      this.outbox.remember(news.done);
      this.#note(news.lost);
      this.#changed(news.answers);
    });
    this.#turns = turn.catch(() => {});
  }
}
