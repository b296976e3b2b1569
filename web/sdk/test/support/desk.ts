import { afterEach } from "vitest";
import { type Hub, type HubOptions, connectHub, memoryStorage } from "../../src/index.js";
import type { Channel, Locks, Visibility } from "../../src/hub/ports.js";
import { ManualClock, until } from "./clock.js";
import type { Server } from "./server.js";

/** A page that tests hide and show. */
export class Page implements Visibility {
  private shown = true;
  private readonly listeners = new Set<() => void>();

  visible(): boolean {
    return this.shown;
  }

  subscribe(onChange: () => void): () => void {
    this.listeners.add(onChange);
    return () => this.listeners.delete(onChange);
  }

  show(shown: boolean): void {
    this.shown = shown;
    for (const call of this.listeners) call();
  }
}

/** A browser: what its tabs share. */
export class Browser {
  readonly storage = memoryStorage();
  private readonly channels = new Map<string, Set<(message: unknown) => void>>();
  private readonly held = new Map<string, Promise<void>>();

  readonly locks: Locks = {
    request: async (name, { signal }, hold) => {
      while (this.held.has(name)) {
        const gone = new Promise<void>((_, reject) =>
          signal.addEventListener("abort", () => reject(new Error("given up"))),
        );
        await Promise.race([this.held.get(name), gone]);
      }
      if (signal.aborted) throw new Error("given up");
      const holding = hold().finally(() => this.held.delete(name));
      this.held.set(name, holding);
      await holding;
    },
  };

  channel = (name: string): Channel => {
    const others = this.channels.get(name) ?? new Set();
    this.channels.set(name, others);
    let mine: ((message: unknown) => void) | undefined;
    return {
      post: (message) => {
        const copy = structuredClone(message);
        for (const call of others) if (call !== mine) queueMicrotask(() => call(copy));
      },
      subscribe: (onMessage) => {
        mine = onMessage;
        others.add(onMessage);
        return () => others.delete(onMessage);
      },
      close: () => {
        if (mine) others.delete(mine);
      },
    };
  };
}

const open = new Set<Hub>();

afterEach(async () => {
  for (const hub of open) await hub.close();
  open.clear();
});

let ids = 0;

/** What tests hold of a client besides the client. */
export interface Desk {
  readonly hub: Hub;
  readonly clock: ManualClock;
  readonly page: Page;
}

/** Opens a client of a member; it is closed after the test. */
export function openHub(server: Server, options: Partial<HubOptions> = {}): Desk {
  const clock = (options.clock as ManualClock | undefined) ?? new ManualClock();
  const page = (options.visibility as Page | undefined) ?? new Page();
  const browser = new Browser();
  const hub = connectHub({
    url: "https://hub.example",
    getToken: () => "ada",
    fetch: server.fetch,
    storage: browser.storage,
    locks: browser.locks,
    channel: browser.channel,
    random: () => 0.5,
    newId: () => `op${++ids}`,
    ...options,
    clock,
    visibility: page,
  });
  open.add(hub);
  return { hub, clock, page };
}

/** Opens a client and waits until everything was observed once. */
export async function readyHub(server: Server, options: Partial<HubOptions> = {}): Promise<Desk> {
  const desk = openHub(server, options);
  await desk.hub.ensure();
  const { hub } = desk;
  await until(() => hub.sync().status === "reconciled" && hub.badge().display !== null);
  return desk;
}
