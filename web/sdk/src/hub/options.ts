import {
  type Channel,
  type Clock,
  type Locks,
  type Storage,
  type Visibility,
  noLocks,
  pageVisibility,
  systemClock,
  tabChannel,
} from "./ports.js";
import { databaseStorage } from "./storage.js";
import type { GetToken } from "./transport.js";

/** How to reach a hub, and what the client may use besides; what is left out is the platform's. */
export interface HubOptions {
  /** The server's address, without a path below it unless the hub is mounted there. */
  readonly url: string;
  /** Gives the member's token. It is asked again whenever the server takes the last one no more. */
  readonly getToken: GetToken;
  readonly fetch?: typeof fetch;
  readonly clock?: Clock;
  /** Where what waits outlives the page; IndexedDB by default, which has to be there then. */
  readonly storage?: Storage;
  /** Lets one tab send for all; `navigator.locks` by default. */
  readonly locks?: Locks;
  /** Opens a channel to the other tabs; BroadcastChannel by default. */
  readonly channel?: (name: string) => Channel;
  readonly visibility?: Visibility;
  /** From 0 up to 1; spreads attempts. */
  readonly random?: () => number;
  /** Names an operation as nobody else does. */
  readonly newId?: () => string;
}

/** The options with everything in them. */
export type Ports = Required<HubOptions>;

/** Fills in what the platform has. It throws when there is nowhere to keep what waits. */
export function portsOf(options: HubOptions): Ports {
  const url = new URL(options.url, globalThis.location?.href).href.replace(/\/+$/, "");
  return {
    fetch: (input, init) => globalThis.fetch(input, init),
    clock: systemClock,
    locks: globalThis.navigator?.locks ?? noLocks,
    channel: tabChannel,
    visibility: pageVisibility(),
    random: Math.random,
    newId: () => crypto.randomUUID(),
    ...options,
    storage: options.storage ?? platformStorage(),
    url,
  };
}

function platformStorage(): Storage {
  if (typeof indexedDB === "undefined") {
    throw new Error("there is no IndexedDB: pass storage, for example memoryStorage()");
  }
  return databaseStorage(indexedDB);
}
