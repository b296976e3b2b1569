import type { Clock } from "../../src/hub/ports.js";

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  private time = Date.UTC(2026, 0, 1);
  private readonly timers = new Set<{ at: number; call: () => void }>();

  now(): number {
    return this.time;
  }

  after(delay: number, call: () => void): () => void {
    const timer = { at: this.time + delay, call };
    this.timers.add(timer);
    return () => this.timers.delete(timer);
  }

  /** Lets milliseconds pass; what is due is called in order, and may set timers itself. */
  pass(ms: number): void {
    const end = this.time + ms;
    for (;;) {
      const due = [...this.timers].filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      this.timers.delete(due);
      this.time = Math.max(this.time, due.at);
      due.call();
    }
    this.time = end;
  }
}

/** Lets everything happen that needs no time to pass. */
export async function quiet(turns = 12): Promise<void> {
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Lets things happen until something holds; it fails when it does not come to hold. */
export async function until(holds: () => boolean, what = String(holds)): Promise<void> {
  for (let i = 0; i < 500; i++) {
    if (holds()) return;
    await quiet(1);
  }
  throw new Error(`it does not come to hold: ${what}`);
}
