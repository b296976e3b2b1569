/** What is asked about or acted on. On the hub a thread's `rootId` is the id of its scope. */
export type Target =
  | { readonly kind: "channel"; readonly channelId: string }
  | { readonly kind: "thread"; readonly channelId: string; readonly rootId: string }
  | { readonly kind: "message"; readonly channelId: string; readonly messageId: string };

export type Level = "all" | "mentions" | "none";

/** What is known of a target at one moment. It never changes; another one takes its place. */
export interface UnreadSnapshot {
  /** null: unknown or denied, never an invented zero. */
  readonly observedCount: number | null;
  readonly attentionCount: number | null;
  /** The counts are the server's, or follow from what it said. */
  readonly exact: boolean;
  readonly coverage: "unknown" | "observed";
  readonly freshness: "unknown" | "observed" | "stale";
  /** Something that would decide it is still being looked up. */
  readonly pending: boolean;
  /** `local`: a mark of this device that the server has not taken yet. */
  readonly manual: "none" | "local" | "synced";
  /** Manual marks reach the member's other devices. */
  readonly syncedManualUnread: boolean;
  readonly muted: boolean;
  readonly level: Level;
  readonly latestMessage: { readonly id: string; readonly at: string } | null;
  /** The message before which the separator belongs; only while a reading lease is open. */
  readonly firstUnread: string | null;
}

/** The intent is saved on this device. That the server has taken it is told by `sync()`. */
export interface ReadMutationResult {
  readonly durability: "saved";
  readonly target: Target | null;
}

export interface SyncState {
  readonly capability: "unsupported" | "read-only" | "frontier-sync";
  readonly status: "loading" | "local" | "pending" | "accepted" | "reconciled" | "stale" | "error";
  /** For people. */
  readonly error: string | null;
}

export interface Badge {
  /** The sum of the numbers beside the dots. */
  readonly messages: number;
  readonly conversations: number;
  readonly attention: number;
  /** The one of them that the member chose to see; null while that is not known. */
  readonly display: number | null;
  readonly hasUnread: boolean;
  /** All scopes are in it. */
  readonly complete: boolean;
}

/**
 * One UI that shows messages of one target, for as long as somebody may read there. Dispose of it
 * when the UI is hidden, shows something else or goes away.
 */
export interface Reading {
  /**
   * Says that a person has had these messages before their eyes, laid out in full. With `bottom`
   * the newest of them is the newest that is laid out at all, and its lower edge was in view. Ids
   * that are not of the target are ignored. It resolves once what follows is saved, and rejects
   * when it could not be.
   */
  observe(messageIds: readonly string[], at: { readonly bottom: boolean }): Promise<void>;
  /**
   * Says that the list has stopped moving: what was observed while it loaded is looked at again.
   */
  settled(): void;
  dispose(): void;
}

/**
 * What is unread for one member, and what they do about it. UIs render snapshots and submit intent;
 * they hold no counters. Every function that changes something resolves once it is saved.
 */
export interface Unread {
  snapshot(target: Target): UnreadSnapshot;
  /** Calls back when the target's snapshot has changed, until the returned function is called. */
  subscribe(target: Target, onChange: () => void): () => void;
  /** Resolves when everything was observed once. Concurrent calls share the work. */
  ensure(): Promise<void>;
  /** Observes everything anew. */
  refresh(): Promise<void>;
  reading(channelId: string, rootId?: string): Reading;
  /** Reads everything up to a message, inclusive; it must be one that was loaded. */
  markThrough(target: Target, messageId: string): Promise<ReadMutationResult>;
  /** Reads what was there when it was called; what comes later stays unread. Threads stay as is. */
  markChannelRead(channelId: string): Promise<ReadMutationResult>;
  markAllChannelsRead(): Promise<ReadMutationResult>;
  /** Marks the target as unread until somebody reads it on purpose; a message: from there on. */
  markUnread(target: Target): Promise<ReadMutationResult>;
  following(channelId: string, rootId: string): "following" | "not-following" | "unknown";
  follow(channelId: string, rootId: string, following: boolean): Promise<void>;
  setLevel(
    channelId: string,
    level: Level | "inherit",
    options?: { readonly until?: string; readonly rootId?: string },
  ): Promise<void>;
  sync(): SyncState;
  /** Sends now what waits, and connects now. */
  retrySync(): Promise<void>;
  badge(): Badge;
  subscribeBadge(onChange: () => void): () => void;
}
