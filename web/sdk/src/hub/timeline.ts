import { delay } from "../core/delay.js";
import type { Revision, Seq } from "../core/state.js";
import { type Message, type Page, Window } from "../core/window.js";
import { scopePath } from "./paths.js";
import type { Clock } from "./ports.js";
import { type RequestError, type Transport, asRequestError } from "./transport.js";
import { pageLimit } from "../limits.js";

/** The messages of a scope at one moment. It never changes; another one takes its place. */
export interface TimelineSnapshot {
  /** Ascending by seq. */
  readonly messages: readonly Message[];
  /** The newest messages are there, and the last load did not fail. */
  readonly loaded: boolean;
  /** There are older messages to load. */
  readonly earlier: boolean;
  /** Why the last load failed; null when it did not. It is tried again. */
  readonly error: string | null;
}

/** What a feed needs of the client that it belongs to. */
export interface FeedHost {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: () => number;
  /** The outbox is known: only then it is known what is shown, and pages are asked for. */
  ready(): boolean;
  /** The messages of a scope are others. First says that its tail has become known. */
  changed(scope: string, first: boolean): void;
}

/**
 * The end of a scope's messages, shared by all who look at it, loaded as far as it is needed:
 *
 *     newest page -> live messages -> (gap, interruption) -> pages after the end -> live …
 */
export class Feed {
  readonly window: Window;
  /** How many look at it. */
  users = 0;
  error: RequestError | undefined;
  #busy = false;
  #failures = 0;
  #retry: (() => void) | undefined;
  #closed = false;
  #cached: TimelineSnapshot | undefined;
  #older: Promise<void> | undefined;

  readonly #host: FeedHost;

  constructor(
    host: FeedHost,
    readonly scope: string,
  ) {
    this.#host = host;
    this.window = new Window(scope);
  }

  get snapshot(): TimelineSnapshot {
    const { messages, synced, earlier } = this.window;
    const error = this.error?.message ?? null;
    this.#cached ??= Object.freeze({ messages, loaded: synced && !error, earlier, error });
    return this.#cached;
  }

  /** A message, if it is there. */
  find(id: string): Message | undefined {
    return this.window.messages.find((m) => m.id === id);
  }

  /** The newest revision at or before a seq, 0 where none is loaded. */
  revisionAt(seq: Seq): Revision {
    const { messages, through } = this.window;
    if (messages.at(-1)?.seq === seq) return through;
    return messages.findLast((m) => m.seq <= seq && m.contentRevision)?.contentRevision ?? 0;
  }

  /** Takes in what the stream tells. */
  hear(op: string, message: Message): void {
    if (op === "added") this.window.added(message);
    else if (op === "edited") this.window.edited(message);
    else if (op === "removed") this.window.removed(message.id);
    this.#changed(false);
    this.load();
  }

  /** The stream ended or began: messages may have come that nobody told of. */
  interrupted(): void {
    this.window.interrupted();
    this.load();
  }

  /** Loads what is missing, if it is not being loaded. */
  load(): void {
    if (this.#busy || this.#closed || this.#retry || !this.#host.ready()) return;
    const { synced, needsAfter } = this.window;
    if (synced && needsAfter === undefined) return;
    this.#busy = true;
    void this.#loadOnce(needsAfter || undefined).then(
      () => {
        this.#busy = false;
        this.#failures = 0;
        this.load();
      },
      (error: unknown) => {
        this.#busy = false;
        this.#failed(asRequestError(error));
      },
    );
  }

  /** Loads what is missing now, though a load has failed a moment ago. */
  hurry(): void {
    this.#retry?.();
    this.#retry = undefined;
    this.load();
  }

  /** Loads a page of older messages. It rejects when that failed. */
  loadEarlier(): Promise<void> {
    const first = this.window.messages[0]?.seq ?? 0;
    if (!this.window.earlier || first <= 1) return Promise.resolve();
    this.#older ??= this.#page(`&before=${first}`)
      .then((page) => {
        if (this.window.messages[0]?.seq === first) this.window.before(page);
        this.#changed(false);
      })
      .finally(() => (this.#older = undefined));
    return this.#older;
  }

  close(): void {
    this.#closed = true;
    this.#retry?.();
  }

  async #loadOnce(after: Seq | undefined): Promise<void> {
    const { asked } = this.window;
    const page = await this.#page(after === undefined ? "" : `&after=${after}`);
    if (this.#closed) return;
    this.error = undefined;
    let first = false;
    if (after === undefined) first = this.window.latest(asked, page);
    else this.window.catchUp(asked, after, page);
    this.#changed(first);
  }

  async #page(query: string): Promise<Page> {
    const path = scopePath(
      this.#host.transport,
      this.scope,
      `/messages?limit=${pageLimit}${query}`,
    );
    const { messages, page } = await this.#host.transport.send<{
      messages: readonly Message[];
      page: { hasMore: boolean; readThroughRevision?: Revision };
    }>("GET", path);
    return { messages, ...page };
  }

  #failed(why: RequestError): void {
    if (this.#closed) return;
    this.error = why;
    this.#failures++;
    const wait = Math.max(why.wait, delay(this.#failures, this.#host.random()));
    this.#retry = this.#host.clock.after(wait, () => {
      this.#retry = undefined;
      this.load();
    });
    this.#changed(false);
  }

  #changed(first: boolean): void {
    this.#cached = undefined;
    this.#host.changed(this.scope, first);
  }
}
