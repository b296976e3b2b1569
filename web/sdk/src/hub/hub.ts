import type {
  Badge,
  Level,
  ReadMutationResult,
  Reading,
  SyncState,
  Target,
  Unread,
  UnreadSnapshot,
} from "../capability.js";
import { type Loss, noChange } from "../core/operation.js";
import { type View, newRead, newUnread } from "../core/outbox.js";
import type { Revision } from "../core/state.js";
import { Lease, type LeaseHost } from "./lease.js";
import { type LinkListener, Link } from "./link.js";
import { Notices } from "./notices.js";
import { type HubOptions, portsOf } from "./options.js";
import { evidenceOf, project, scopeOf } from "./projection.js";
import { type Shown, type WireRow, foldBadge } from "./rows.js";
import { type Feed, type TimelineSnapshot } from "./timeline.js";
import { RequestError } from "./transport.js";

/** A scope in the list of a hub, for those who draw one. */
export interface Channel {
  readonly id: string;
  readonly type: string;
  readonly name: string;
  /** Of a thread. */
  readonly parent: string | null;
  readonly tags: readonly string[];
  readonly archived: boolean;
  readonly level: Level;
  readonly replyCount: number;
  readonly lastActivityAt: string | null;
  /** The dot, and the number beside it; 0 for a dot alone. */
  readonly shown: boolean;
  readonly shownUnread: number;
}

/**
 * The messages of one scope, for those who draw them. It is kept up to date until it is disposed.
 */
export interface Timeline {
  snapshot(): TimelineSnapshot;
  subscribe(onChange: () => void): () => void;
  loadEarlier(): Promise<void>;
  dispose(): void;
}

/** Unread of a hub, with what only a hub has. */
export interface Hub extends Unread {
  /** All scopes that the member has, in no order. */
  channels(): readonly Channel[];
  subscribeChannels(onChange: () => void): () => void;
  subscribeSync(onChange: () => void): () => void;
  timeline(scopeId: string): Timeline;
  /** Whose unread this is; undefined before the server has told. */
  member(): string | undefined;
  /** Reads and marks that will never be done, oldest first, with the reason. */
  losses(): readonly Loss[];
  /** Says that getToken has another token now. */
  renewed(): void;
  /** Ends everything; it resolves once what was begun is saved. */
  close(): Promise<void>;
}

/** A target that is not there, or is not the member's to see, or a message that was not loaded. */
export class UnknownTargetError extends Error {
  override name = "UnknownTargetError";
}

/** Connects to a hub. It begins to work at once, and needs nobody to wait for it. */
export function connectHub(options: HubOptions): Hub {
  return new HubUnread(options);
}

/** What changes with any scope. */
const anyTopic = "\0any";
const inside = (channel: string) => `\0in ${channel}`;

/** What Notices needs to know of a value that may change with any scope. */
function about<T extends object>(key: string, make: () => T): [string, readonly string[], () => T] {
  return [`\0${key}`, [anyTopic], make];
}

class HubUnread implements Hub {
  readonly #link: Link;
  readonly #notices = new Notices();
  readonly #sync = about("sync", () => this.#makeSync());
  readonly #badge = about("badge", () => this.#makeBadge());
  readonly #list = about("list", () => this.#makeChannels());
  readonly #leases = new Set<Lease>();
  readonly #observed = new Map<string, Set<Revision>>();
  readonly #choices = new Map<string, boolean>();
  #waiting: { resolve: () => void; reject: (why: Error) => void }[] = [];
  #dismissed = 0;

  constructor(options: HubOptions) {
    const listener: LinkListener = {
      changed: (...scopes) => this.#changed(scopes),
      tail: (scope) => this.#tail(scope),
      gone: (scope) => this.#gone(scope),
    };
    this.#link = new Link(portsOf(options), listener);
  }

  member(): string | undefined {
    return this.#link.transport.namespace?.member;
  }

  snapshot(target: Target): UnreadSnapshot {
    return this.#notices.get(...this.#topics(target));
  }

  subscribe(target: Target, onChange: () => void): () => void {
    return this.#notices.subscribe(...this.#topics(target), onChange);
  }

  ensure(): Promise<void> {
    if (this.#isReady) return Promise.resolve();
    if (this.#link.closed) return Promise.reject(new Error("closed"));
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  async refresh(): Promise<void> {
    await this.#link.load();
  }

  reading(channelId: string, rootId?: string): Reading {
    const scope = rootId ?? channelId;
    const link = this.#link;
    const permits = () => {
      const row = link.rows.row(scope);
      return row !== undefined && (rootId === undefined || row.parent === channelId);
    };
    const lease = new Lease(this.#leaseHost, link.use(scope), permits);
    this.#leases.add(lease);
    return lease;
  }

  async markThrough(target: Target, messageId: string): Promise<ReadMutationResult> {
    const named = evidenceOf(target.channelId, messageId, this.#link);
    const scope = target.kind === "message" ? named?.scope : scopeOf(target, this.#link);
    if (!named || named.scope !== scope)
      throw new UnknownTargetError(`unknown message ${messageId}`);
    const seen = this.#link.view(scope);
    return this.#read(target, seen, named.feed.revisionAt(named.message.seq));
  }

  async markChannelRead(channelId: string): Promise<ReadMutationResult> {
    const target = { kind: "channel", channelId } as const;
    const seen = this.#link.view(this.#scopeOrThrow(target));
    return this.#read(target, seen, seen.contentRevision);
  }

  async markAllChannelsRead(): Promise<ReadMutationResult> {
    const seen: View[] = [];
    for (const id of this.#link.rows.ids()) {
      const s = this.#link.show(id)!;
      if (s.unread > 0 || !s.exact || s.view.manualUnread) seen.push(s.view);
    }
    const { clock, newId } = this.#link.ports;
    const ops = seen.map((v) => newRead(newId(), v, v.contentRevision, clock.now()));
    await this.#link.keeper.commit((outbox) => ({
      ...noChange,
      // They are of different scopes, so that none builds on another.
      put: ops.flatMap((op, i) => outbox.add(op, seen[i]!.base).change.put),
    }));
    return { durability: "saved", target: null };
  }

  async markUnread(target: Target): Promise<ReadMutationResult> {
    const seen = this.#link.view(this.#scopeOrThrow(target));
    let from = 0;
    if (target.kind === "message") {
      const found = evidenceOf(target.channelId, target.messageId, this.#link);
      from = found?.message.contentRevision ?? 0;
      if (from === 0) throw new UnknownTargetError(`unknown readable message ${target.messageId}`);
    }
    if (!seen.manualUnread || seen.fromRevision !== from) {
      const { clock, newId } = this.#link.ports;
      const op = newUnread(newId(), seen, from, clock.now());
      await this.#link.keeper.commit((outbox) => outbox.add(op, seen.base).change);
    }
    return { durability: "saved", target };
  }

  following(channelId: string, rootId: string): "following" | "not-following" | "unknown" {
    const { rows } = this.#link;
    const row = rows.row(rootId);
    if (!row || row.parent !== channelId) return rows.listed ? "not-following" : "unknown";
    return row.follow === "stopped" ? "not-following" : "following";
  }

  async follow(_channelId: string, rootId: string, following: boolean): Promise<void> {
    await this.#link.transport.authorize();
    const path = this.#link.transport.path(`/scopes/${encodeURIComponent(rootId)}/follow`);
    await this.#link.transport.send("PUT", path, { following });
    this.#choices.set(rootId, following);
    this.#changed([rootId]);
  }

  async setLevel(
    channelId: string,
    level: Level | "inherit",
    options: { readonly until?: string; readonly rootId?: string } = {},
  ): Promise<void> {
    const { transport } = this.#link;
    await transport.authorize();
    const scope = encodeURIComponent(options.rootId ?? channelId);
    const path = transport.path(`/scopes/${scope}/members/${encodeURIComponent(this.member()!)}`);
    const body = { notification: level, ...(options.until ? { until: options.until } : {}) };
    await transport.send("PUT", path, body);
  }

  sync(): SyncState {
    return this.#notices.get(...this.#sync);
  }

  subscribeSync(onChange: () => void): () => void {
    return this.#notices.subscribe(...this.#sync, onChange);
  }

  async retrySync(): Promise<void> {
    this.#dismissed = this.#link.keeper.lostCount;
    this.#changed([]);
    this.#link.hurry();
  }

  losses(): readonly Loss[] {
    return this.#link.keeper.lost;
  }

  badge(): Badge {
    return this.#notices.get(...this.#badge);
  }

  subscribeBadge(onChange: () => void): () => void {
    return this.#notices.subscribe(...this.#badge, onChange);
  }

  channels(): readonly Channel[] {
    return this.#notices.get(...this.#list);
  }

  subscribeChannels(onChange: () => void): () => void {
    return this.#notices.subscribe(...this.#list, onChange);
  }

  timeline(scopeId: string): Timeline {
    const feed: Feed = this.#link.use(scopeId);
    let open = true;
    // The feed of the moment: another one may have been opened since this was first asked for.
    const make = () => this.#link.feed(scopeId)?.snapshot ?? feed.snapshot;
    return {
      snapshot: () => feed.snapshot,
      subscribe: (call) => this.#notices.subscribe(`\0of ${scopeId}`, [scopeId], make, call),
      loadEarlier: () => feed.loadEarlier(),
      dispose: () => {
        if (open) this.#link.release(feed);
        open = false;
      },
    };
  }

  renewed(): void {
    this.#link.hurry();
  }

  async close(): Promise<void> {
    for (const { reject } of this.#waiting.splice(0)) reject(new Error("closed"));
    for (const lease of this.#leases) lease.dispose();
    await this.#link.close();
    this.#notices.stop();
  }

  get #isReady(): boolean {
    return this.#link.rows.listed && this.#link.keeper.restored;
  }

  get #leaseHost(): LeaseHost {
    return {
      link: this.#link,
      changed: (lease) => this.#leaseChanged(lease),
      observed: (scope) => {
        let set = this.#observed.get(scope);
        if (!set) this.#observed.set(scope, (set = new Set()));
        return set;
      },
    };
  }

  #leaseChanged(lease: Lease): void {
    if (lease.ended && this.#leases.delete(lease)) this.#link.release(lease.feed);
    this.#changed([lease.scope]);
  }

  #tail(scope: string): void {
    for (const lease of this.#leases) if (lease.scope === scope) lease.tail();
  }

  /** Access was lost: what is being read there is not, also if it comes back (RL-028). */
  #gone(scope: string): void {
    this.#observed.delete(scope);
    for (const lease of this.#leases) if (lease.scope === scope) lease.dispose();
  }

  #separator(scope: string): string | null {
    let found: string | null = null;
    for (const lease of this.#leases) if (lease.scope === scope) found = lease.firstUnread;
    return found;
  }

  #changed(scopes: readonly string[]): void {
    if (scopes.length === 0) this.#notices.touch();
    else {
      const around = scopes.flatMap((scope) => {
        const parent = this.#link.rows.row(scope)?.parent;
        return parent ? [scope, inside(scope), inside(parent)] : [scope, inside(scope)];
      });
      this.#notices.touch(...around, anyTopic);
    }
    if (!this.#isReady) return;
    // A lease may have waited for its row: a tail that is known counts from here.
    for (const lease of this.#leases) lease.tail();
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  #topics(target: Target): [string, readonly string[], () => UnreadSnapshot] {
    const make = () => project(target, this.#link, (scope) => this.#separator(scope));
    const { channelId } = target;
    switch (target.kind) {
      case "channel":
        return [`c\0${channelId}`, [channelId], make];
      case "thread":
        return [`t\0${channelId}\0${target.rootId}`, [channelId, target.rootId], make];
      case "message":
        return [`m\0${channelId}\0${target.messageId}`, [channelId, inside(channelId)], make];
    }
  }

  #scopeOrThrow(target: Target): string {
    const scope = scopeOf(target, this.#link);
    if (scope === undefined)
      throw new UnknownTargetError(`unknown ${target.kind} of ${target.channelId}`);
    return scope;
  }

  async #read(target: Target, seen: View, through: Revision): Promise<ReadMutationResult> {
    if (through > seen.readRevision || seen.manualUnread) {
      const { clock, newId } = this.#link.ports;
      const op = newRead(newId(), seen, through, clock.now());
      await this.#link.keeper.commit((outbox) => outbox.add(op, seen.base).change);
    }
    return { durability: "saved", target };
  }

  #makeBadge(): Badge {
    const { rows, display } = this.#link;
    const all: Shown[] = [];
    if (this.#link.keeper.restored) for (const id of rows.ids()) all.push(this.#link.show(id)!);
    return foldBadge(all, display, rows);
  }

  #makeChannels(): readonly Channel[] {
    const all: Channel[] = [];
    for (const id of this.#link.rows.ids()) all.push(channelOf(id, this.#link.show(id)!));
    return Object.freeze(all);
  }

  #makeSync(): SyncState {
    const { keeper, live, trouble } = this.#link;
    const capability = "frontier-sync";
    const failure = keeper.failure ?? (isLasting(trouble) ? trouble : undefined);
    if (failure) return { capability, status: "error", error: failure.message };
    if (keeper.lostCount > this.#dismissed) {
      const { operation, reason } = keeper.lost.at(-1)!;
      const error = `a ${operation.kind} of ${operation.scope} was not taken: ${reason}`;
      return { capability, status: "error", error };
    }
    const error = trouble?.message ?? null;
    if (!this.#isReady) return { capability, status: "loading", error };
    if (keeper.size > 0) return { capability, status: "pending", error };
    return { capability, status: live ? "reconciled" : "stale", error };
  }
}

/** Whether somebody has to do something before it goes on. */
function isLasting(why: RequestError | undefined): boolean {
  return why !== undefined && (why.credentials || why.code === "namespace");
}

function channelOf(id: string, { row, shown, shownUnread }: Shown): Channel {
  const { type, name = "", tags = [], archived = false, replyCount = 0 } = row as WireRow;
  return Object.freeze({
    id,
    type,
    name,
    parent: row.parent ?? null,
    tags,
    archived,
    level: row.notification,
    replyCount,
    lastActivityAt: row.lastActivityAt ?? null,
    shown,
    shownUnread,
  });
}
