import type { Clock } from "./ports.js";

/** A wait that can be ended before its time. */
export class Pause {
  readonly #clock: Clock;
  #end: (() => void) | undefined;
  #ended = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Resolves after milliseconds, when somebody wakes it, or at once when nothing waits any more.
   */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        this.#end = undefined;
        cancel();
        resolve();
      };
      const cancel = this.#clock.after(ms, end);
      this.#end = end;
      if (this.#ended) end();
    });
  }

  wake(): void {
    this.#end?.();
  }

  /** Ends this wait and all that follow. */
  end(): void {
    this.#ended = true;
    this.wake();
  }
}
