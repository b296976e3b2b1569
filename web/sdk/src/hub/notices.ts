import { maxIdle } from "../limits.js";

/**
 * Who wants to be told of what, and whether anything changed since. Values are made when they are
 * asked for and kept until something that they are about is touched; one that comes out equal stays
 * the same object, and nobody is told. Those who are told are told once for all that happened.
 */
export class Notices {
  readonly #stamps = new Map<string, number>();
  readonly #entries = new Map<string, Entry>();
  #clock = 1;
  #everything = 0;
  #planned = false;
  #stopped = false;

  /**
   * Returns the value of a key, which is about some topics. It is made anew when one of them was
   * touched since it was made.
   */
  get<T extends object>(key: string, topics: readonly string[], make: () => T): T {
    let entry = this.#entries.get(key);
    if (!entry) {
      entry = { topics, make, at: 0, value: undefined, listeners: new Set() };
      this.#entries.set(key, entry);
    }
    return this.#fresh(entry) as T;
  }

  /** Calls back after the value has become another one, until the returned function is called. */
  subscribe(
    key: string,
    topics: readonly string[],
    make: () => object,
    onChange: () => void,
  ): () => void {
    const value = this.get(key, topics, make);
    const entry = this.#entries.get(key)!;
    if (entry.listeners.size === 0) entry.told = value; // who subscribes has seen what there is
    const listener = { call: onChange };
    entry.listeners.add(listener);
    return () => entry.listeners.delete(listener);
  }

  /** Something about the topics has changed; without any, something about all. */
  touch(...topics: readonly string[]): void {
    this.#clock++;
    if (topics.length === 0) this.#everything = this.#clock;
    for (const topic of topics) this.#stamps.set(topic, this.#clock);
    if (this.#planned || this.#stopped) return;
    this.#planned = true;
    queueMicrotask(() => {
      this.#planned = false;
      this.#flush();
    });
  }

  /** Tells nobody any more. */
  stop(): void {
    this.#stopped = true;
  }

  #fresh(entry: Entry): object {
    const touched = entry.topics.some((topic) => (this.#stamps.get(topic) ?? 0) > entry.at);
    if (entry.value && this.#everything <= entry.at && !touched) return entry.value;
    const value = entry.make();
    entry.at = this.#clock;
    if (!entry.value || !isSame(entry.value, value)) entry.value = value;
    return entry.value;
  }

  #flush(): void {
    if (this.#stopped) return;
    const due: { call: () => void }[] = [];
    const crowded = this.#entries.size > maxIdle;
    for (const [key, entry] of this.#entries) {
      if (entry.listeners.size === 0) {
        if (crowded) this.#entries.delete(key);
        continue;
      }
      if (entry.told !== (entry.told = this.#fresh(entry))) due.push(...entry.listeners);
    }
    for (const listener of due) {
      try {
        listener.call();
      } catch (error) {
        queueMicrotask(() => {
          throw error; // a listener's fault is its own
        });
      }
    }
  }
}

interface Entry {
  readonly topics: readonly string[];
  readonly make: () => object;
  readonly listeners: Set<{ call: () => void }>;
  at: number;
  value: object | undefined;
  told?: object;
}

/** Whether two plain values have equal parts, one level of objects deep. */
function isSame(a: object, b: object): boolean {
  const x = Object.entries(a);
  const y = b as Record<string, unknown>;
  return (
    x.length === Object.keys(b).length &&
    x.every(([name, part]) => {
      const other = y[name];
      if (Object.is(part, other)) return true;
      const objects = part && other && typeof part === "object" && typeof other === "object";
      return Boolean(objects) && JSON.stringify(part) === JSON.stringify(other);
    })
  );
}
