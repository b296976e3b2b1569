import { delay } from "../core/delay.js";
import { EventReader, type ServerEvent } from "./events.js";
import { Pause } from "./pause.js";
import type { Clock } from "./ports.js";
import { type RequestError, type Transport, asRequestError } from "./transport.js";
import { firstSilence } from "../limits.js";

/** What a stream is for. */
export interface Listener {
  /** The path to open, which may be another one each time. */
  path(): string;
  /** A stream began. Forgets says that it could not go on where the last one ended. */
  greeted(forgets: boolean): void;
  event(name: string, data: unknown): void;
  /** The stream ended. Greeted says that it had begun; why is undefined where it just ended. */
  ended(greeted: boolean, why: RequestError | undefined): void;
}

/**
 * Keeps a stream open, and opens it again where it ended:
 *
 *     open -> hello -> events … -> silent for 2.5 heartbeats, broken, expired -> wait -> open
 *
 * It waits longer after each failure, and not at all after `reopen` and `hurry`.
 */
export class Stream {
  #last = "";
  #failures = 0;
  #abort: AbortController | undefined;
  readonly #pause: Pause;
  #again = false;
  #stopped = false;

  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #listener: Listener;

  constructor(transport: Transport, clock: Clock, random: () => number, listener: Listener) {
    this.#transport = transport;
    this.#clock = clock;
    this.#pause = new Pause(clock);
    this.#random = random;
    this.#listener = listener;
  }

  /** Runs until stop; it resolves then. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      this.#again = false;
      let greeted = false;
      let why: RequestError | undefined;
      try {
        await this.#follow(() => (greeted = true));
      } catch (error) {
        why = asRequestError(error);
      }
      if (this.#again && !this.#stopped) continue;
      this.#listener.ended(greeted, why);
      if (this.#stopped) return;
      this.#failures = greeted ? 1 : this.#failures + 1;
      await this.#pause.wait(Math.max(delay(this.#failures, this.#random()), why?.wait ?? 0));
    }
  }

  /** Opens the stream anew, by the path that the listener names then. */
  reopen(): void {
    this.#again = true;
    this.#abort?.abort();
    this.#pause.wake();
  }

  /** Ends a wait. */
  hurry(): void {
    this.#pause.wake();
  }

  stop(): void {
    this.#stopped = true;
    this.#abort?.abort();
    this.#pause.end();
  }

  async #follow(greeted: () => void): Promise<void> {
    const abort = new AbortController();
    this.#abort = abort;
    let heartbeat = firstSilence;
    let quiet = this.#clock.after(heartbeat, () => abort.abort());
    const heard = () => {
      quiet();
      quiet = this.#clock.after(heartbeat, () => abort.abort());
    };
    try {
      await this.#transport.authorize(); // the path needs the namespace
      const body = await this.#transport.stream(this.#listener.path(), this.#last, abort.signal);
      const reader = body.getReader();
      abort.signal.addEventListener("abort", () => void reader.cancel().catch(() => {}));
      const decoder = new TextDecoder();
      const events = new EventReader((e) => {
        const hello = this.#take(e);
        if (!hello) return;
        heartbeat = hello.heartbeatSeconds > 0 ? hello.heartbeatSeconds * 2500 : heartbeat;
        greeted();
      });
      while (!abort.signal.aborted) {
        const { done, value } = await reader.read();
        if (done) return;
        heard();
        events.feed(decoder.decode(value, { stream: true }));
      }
    } finally {
      quiet();
      abort.abort();
    }
  }

  /** Takes in an event; what a greeting says is returned. */
  #take(e: ServerEvent): { heartbeatSeconds: number } | undefined {
    const data: unknown = JSON.parse(e.data);
    if (e.event === "hello") {
      const { heartbeatSeconds = 0, resumed = false } = data as {
        heartbeatSeconds?: number;
        resumed?: boolean;
      };
      const forgets = !resumed && this.#last !== "";
      if (!resumed) this.#last = "";
      this.#listener.greeted(forgets);
      return { heartbeatSeconds };
    }
    if (e.event === "expired") this.#abort?.abort();
    else this.#listener.event(e.event, data);
    if (e.id) this.#last = e.id;
    return undefined;
  }
}
