import type { Badge, Reading, SyncState, Target, Unread, UnreadSnapshot } from "@tidemark/sdk";

const snapshot: UnreadSnapshot = {
  observedCount: null,
  attentionCount: null,
  exact: false,
  coverage: "unknown",
  freshness: "unknown",
  pending: true,
  manual: "none",
  syncedManualUnread: true,
  muted: false,
  level: "all",
  latestMessage: null,
  firstUnread: null,
};

/** An Unread that shows what a test puts there, and counts who listens and who reads. */
export class Board implements Unread {
  counts = new Map<string, number>();
  messages = 0;
  status: SyncState["status"] = "loading";
  listeners = new Set<() => void>();
  leases: string[] = [];
  #cache = new Map<string, UnreadSnapshot>();
  #badge: Badge | undefined;
  #sync: SyncState | undefined;

  /** Shows something else and tells everybody. */
  show(change: (board: Board) => void): void {
    change(this);
    this.#cache.clear();
    this.#badge = undefined;
    this.#sync = undefined;
    for (const call of this.listeners) call();
  }

  snapshot(target: Target): UnreadSnapshot {
    const key = JSON.stringify(target);
    const known = this.#cache.get(key);
    if (known) return known;
    const observedCount = this.counts.get(target.channelId) ?? null;
    const made = { ...snapshot, observedCount };
    this.#cache.set(key, made);
    return made;
  }

  subscribe = (_target: Target, call: () => void) => this.#listen(call);
  subscribeBadge = (call: () => void) => this.#listen(call);
  subscribeSync = (call: () => void) => this.#listen(call);

  badge(): Badge {
    const { messages } = this;
    const rest = { conversations: 0, attention: 0, hasUnread: messages > 0, complete: true };
    this.#badge ??= { ...rest, messages, display: messages };
    return this.#badge;
  }

  sync(): SyncState {
    this.#sync ??= { capability: "frontier-sync", status: this.status, error: null };
    return this.#sync;
  }

  reading(channelId: string, rootId?: string): Reading {
    const lease = rootId ? `${channelId}/${rootId}` : channelId;
    this.leases.push(lease);
    return {
      observe: () => Promise.resolve(),
      settled: () => {},
      dispose: () => void this.leases.splice(this.leases.indexOf(lease), 1),
    };
  }

  ensure = () => Promise.resolve();
  refresh = () => Promise.resolve();
  retrySync = () => Promise.resolve();
  follow = () => Promise.resolve();
  setLevel = () => Promise.resolve();
  following = () => "unknown" as const;
  markThrough = () => Promise.resolve({ durability: "saved", target: null } as const);
  markChannelRead = this.markThrough;
  markAllChannelsRead = this.markThrough;
  markUnread = this.markThrough;

  #listen(call: () => void): () => void {
    this.listeners.add(call);
    return () => this.listeners.delete(call);
  }
}
