import type { Reading } from "./capability.js";
import { type Clock, type Visibility, pageVisibility, systemClock } from "./hub/ports.js";
import { dwellTime } from "./limits.js";

/** How a list of messages stands on the screen at one moment. */
export interface Surface {
  /** The list, its composer, or what else belongs to it has the focus. */
  readonly focused: boolean;
  /** Something lies above it: a dialog, another pane, another tab. */
  readonly covered: boolean;
  /** The messages that are laid out in full within the view, no others (not overscan rows). */
  readonly messageIds: readonly string[];
  /** The newest message that is laid out, if its lower edge is within the view; else null. */
  readonly bottom: string | null;
}

/**
 * Earns reading by looking: rows are observed once they have been in full view for 300 ms without a
 * break, in a list that has the focus, that nothing covers, that has stopped moving, on a page that
 * is visible.
 *
 *     moving --settled--> still --300 ms--> observed
 *       ^------ update, moved, visibility ------'
 */
export class Dwell {
  #surface: Surface = { focused: false, covered: false, messageIds: [], bottom: null };
  #moving = true;
  #cancel: (() => void) | undefined;
  #disposed = false;
  readonly #unsubscribe: () => void;
  readonly #reading: Reading;
  readonly #clock: Clock;
  readonly #visibility: Visibility;
  readonly #failed: ((error: unknown) => void) | undefined;

  /**
   * The reading is the caller's to dispose of. Failed is told when a reading could not be saved.
   */
  constructor(
    reading: Reading,
    options: {
      readonly clock?: Clock;
      readonly visibility?: Visibility;
      readonly failed?: (error: unknown) => void;
    } = {},
  ) {
    this.#reading = reading;
    this.#clock = options.clock ?? systemClock;
    this.#visibility = options.visibility ?? pageVisibility();
    this.#failed = options.failed;
    this.#unsubscribe = this.#visibility.subscribe(() => this.#restart());
  }

  /** Says how the list stands now: after its content, the focus or what covers it has changed. */
  update(surface: Surface): void {
    this.#surface = surface;
    this.#restart();
  }

  /** Says that the list moves: it scrolls, or its pane does. Nothing is earned until it settles. */
  moved(): void {
    this.#moving = true;
    this.#restart();
  }

  /** Says that the list has stopped moving, also where that has changed no row. */
  settled(): void {
    this.#moving = false;
    this.#reading.settled();
    this.#restart();
  }

  dispose(): void {
    this.#disposed = true;
    this.#unsubscribe();
    this.#restart();
  }

  #restart(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const { focused, covered, messageIds, bottom } = this.#surface;
    const stands = focused && !covered && !this.#moving && this.#visibility.visible();
    if (this.#disposed || !stands || (messageIds.length === 0 && bottom === null)) return;
    this.#cancel = this.#clock.after(dwellTime, () => {
      this.#cancel = undefined;
      const ids = bottom === null ? messageIds : [...new Set([...messageIds, bottom])];
      const at = { bottom: bottom !== null };
      this.#reading.observe(ids, at).catch((error: unknown) => this.#failed?.(error));
    });
  }
}
