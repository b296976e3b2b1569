import type { Change, Operation } from "../core/operation.js";

/** Time: milliseconds since 1970, and timers that can be taken back. */
export interface Clock {
  now(): number;
  /** Calls back once, after the delay in milliseconds. The returned function takes it back. */
  after(delay: number, call: () => void): () => void;
}

/** Whether the page can be seen by somebody. */
export interface Visibility {
  visible(): boolean;
  /** Calls back when that changes, until the returned function is called. */
  subscribe(onChange: () => void): () => void;
}

/** Exclusive locks among the tabs of one origin, as `navigator.locks` has them. */
export interface Locks {
  request(
    name: string,
    options: { signal: AbortSignal },
    hold: () => Promise<void>,
  ): Promise<unknown>;
}

/** What tabs tell each other. */
export interface Channel {
  post(message: unknown): void;
  /** Calls back for what others post, until the returned function is called. */
  subscribe(onMessage: (message: unknown) => void): () => void;
  close(): void;
}

/**
 * Where operations outlive the page. A key stands for one member on one server; nothing of one key
 * is ever seen under another.
 */
export interface Storage {
  load(key: string): Promise<readonly Operation[]>;
  /**
   * Lets plan look at what there is and writes the change that it returns, all of it or nothing,
   * with nobody else writing in between. It rejects when nothing was written.
   */
  write(
    key: string,
    plan: (operations: readonly Operation[]) => Change,
  ): Promise<{ operations: readonly Operation[]; change: Change }>;
  close(): void;
}

/** The clock of the platform. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(delay, call) {
    const timer = setTimeout(call, delay);
    return () => clearTimeout(timer);
  },
};

/** The visibility of this page; of something that is no page, always visible. */
export function pageVisibility(page: Document | undefined = globalThis.document): Visibility {
  return {
    visible: () => !page || page.visibilityState === "visible",
    subscribe(onChange) {
      page?.addEventListener("visibilitychange", onChange);
      return () => page?.removeEventListener("visibilitychange", onChange);
    },
  };
}

/** Locks where the platform has none: this is then the only tab. */
export const noLocks: Locks = { request: (_name, _options, hold) => hold() };

/** A channel to the other tabs of the origin, or to nobody where the platform has none. */
export function tabChannel(name: string): Channel {
  if (typeof BroadcastChannel === "undefined") {
    return { post: () => {}, subscribe: () => () => {}, close: () => {} };
  }
  const channel = new BroadcastChannel(name);
  return {
    post: (message) => channel.postMessage(message),
    subscribe(onMessage) {
      const listener = (event: MessageEvent) => onMessage(event.data);
      channel.addEventListener("message", listener);
      return () => channel.removeEventListener("message", listener);
    },
    close: () => channel.close(),
  };
}
