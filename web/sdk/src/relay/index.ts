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

export interface RelayAgentOptions {
  /** Where the agent listens, as `http://127.0.0.1:8490`. */
  readonly url: string;
  /** The token that it printed. */
  readonly token: string;
  readonly fetch?: typeof fetch;
}

export interface RelayChannel {
  readonly id: string;
  readonly name: string;
  readonly type: string;
}

/** The capability on a relay agent. */
export interface RelayAgent extends Unread {
  channels(): readonly RelayChannel[];
  /** Ends the connection; nothing is told afterwards. */
  close(): void;
}

/** The agent refused, in the words that it found. */
export class RelayAgentError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const nothing: UnreadSnapshot = Object.freeze({
  observedCount: null,
  attentionCount: null,
  exact: false,
  coverage: "unknown",
  freshness: "unknown",
  pending: false,
  manual: "none",
  syncedManualUnread: false,
  muted: false,
  level: "all",
  latestMessage: null,
  firstUnread: null,
});

interface Watched {
  readonly target: Target;
  snapshot: UnreadSnapshot;
  readonly told: Set<() => void>;
}

const keyOf = (t: Target): string =>
  JSON.stringify([
    t.kind,
    t.channelId,
    t.kind === "thread" ? t.rootId : t.kind === "message" ? t.messageId : "",
  ]);

/** Connects to the agent of a Nostr relay, and again whenever the connection ends. */
export function connectRelayAgent(options: RelayAgentOptions): RelayAgent {
  const ask = options.fetch ?? fetch;
  const base = options.url.replace(/\/$/, "") + "/v1/";
  const headers = { authorization: `Bearer ${options.token}`, "content-type": "application/json" };
  const end = new AbortController();
  const watched = new Map<string, Watched>();
  const badgeTold = new Set<() => void>();
  const followed = new Map<string, "following" | "not-following" | "unknown">();
  let stream = "";
  let channels: readonly RelayChannel[] = [];
  let sync: SyncState = { capability: "frontier-sync", status: "loading", error: null };
  const noBadge: Badge = {
    messages: 0,
    conversations: 0,
    attention: 0,
    display: null,
    hasUnread: false,
    complete: false,
  };
  let badge = noBadge;

  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const init: RequestInit = { method, headers, signal: end.signal };
    if (body !== undefined) init.body = JSON.stringify(body);
    const answer = await ask(base + path, init);
    if (answer.status === 204) return undefined as T;
    const doc = (await answer.json()) as T & { error?: { message: string } };
    if (!answer.ok) throw new RelayAgentError(answer.status, doc.error?.message ?? "refused");
    return doc;
  }
  const act = <T = ReadMutationResult>(path: string, body: unknown = {}): Promise<T> =>
    call<T>("POST", `unread/${path}`, body);

  let queued = false;
  /** Says which targets the stream carries, once for all that changed in one turn. */
  function carry(): void {
    if (queued) return;
    queued = true;
    queueMicrotask(() => {
      queued = false;
      if (!stream) return;
      const targets = [...watched.values()].map((w) => w.target);
      act("subscribe", { stream, targets }).catch(() => {}); // the next stream says it again
    });
  }

  function take(name: string, doc: unknown): void {
    if (name === "hello") {
      stream = (doc as { stream: string }).stream;
      carry();
    } else if (name === "roster") channels = doc as RelayChannel[];
    else if (name === "sync") sync = doc as SyncState;
    else if (name === "badge") {
      badge = Object.freeze(doc as Badge);
      for (const f of [...badgeTold]) f();
    } else if (name === "snapshots") {
      const told: (() => void)[] = [];
      for (const s of doc as { target: Target; snapshot: UnreadSnapshot }[]) {
        const w = watched.get(keyOf(s.target));
        if (!w) continue;
        w.snapshot = Object.freeze(s.snapshot);
        told.push(...w.told);
      }
      for (const f of told) f();
    }
  }

  async function follow(): Promise<void> {
    const answer = await ask(base + "unread/events", { headers, signal: end.signal });
    if (!answer.ok || !answer.body) throw new RelayAgentError(answer.status, "no stream");
    const reader = answer.body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const steps = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = steps.pop()!;
      for (const step of steps) {
        const [event = "", data = ""] = step.split("\ndata: ");
        take(event.slice("event: ".length), JSON.parse(data));
      }
    }
  }

  /** What was known is as old as the connection that ended. */
  function lost(): void {
    stream = "";
    sync = { ...sync, status: "stale" };
    badge = { ...badge, complete: false, display: null };
    for (const w of watched.values()) {
      if (w.snapshot.freshness !== "observed") continue;
      w.snapshot = Object.freeze({ ...w.snapshot, freshness: "stale" });
    }
    for (const w of watched.values()) for (const f of [...w.told]) f();
    for (const f of [...badgeTold]) f();
  }

  void (async () => {
    for (let failures = 0; !end.signal.aborted; failures++) {
      await follow().then(
        () => (failures = 0),
        () => {},
      );
      if (end.signal.aborted) return;
      lost();
      await new Promise((done) => setTimeout(done, Math.min(500 * 2 ** failures, 15_000)));
    }
  })();

  return {
    snapshot: (target) => watched.get(keyOf(target))?.snapshot ?? nothing,
    subscribe(target, onChange) {
      const key = keyOf(target);
      const w = watched.get(key) ?? { target, snapshot: nothing, told: new Set<() => void>() };
      watched.set(key, w);
      const told = (): void => onChange();
      w.told.add(told);
      carry();
      return () => {
        w.told.delete(told);
        if (w.told.size === 0 && watched.get(key) === w && watched.delete(key)) carry();
      };
    },
    ensure: () => act("ensure"),
    refresh: () => act("refresh"),
    retrySync: () => act("retry-sync"),
    reading(channelId, rootId): Reading {
      const lease = act<{ lease: string }>("reading", { channelId, rootId });
      lease.catch(() => {}); // observe tells
      let disposed = false;
      return {
        async observe(messageIds, { bottom }) {
          const { lease: id } = await lease;
          if (!disposed) await act(`reading/${id}/observe`, { messageIds, bottom });
        },
        settled: () => {},
        dispose() {
          if (disposed) return;
          disposed = true;
          lease.then(({ lease: id }) => call("DELETE", `unread/reading/${id}`)).catch(() => {});
        },
      };
    },
    markThrough: (target, messageId) => act("mark-through", { target, messageId }),
    markChannelRead: (channelId) => act("mark-channel-read", { channelId }),
    markAllChannelsRead: () => act("mark-all-read"),
    markUnread: (target) => act("mark-unread", { target }),
    following(channelId, rootId) {
      const key = `${channelId}:${rootId}`;
      const known = followed.get(key);
      if (known === undefined) {
        followed.set(key, "unknown");
        const query = new URLSearchParams({ channelId, rootId });
        call<{ following: "following" }>("GET", `unread/following?${query}`)
          .then((doc) => followed.set(key, doc.following))
          .catch(() => followed.delete(key));
      }
      return known ?? "unknown";
    },
    async follow(channelId, rootId, following) {
      await act("follow", { channelId, rootId, following });
      followed.set(`${channelId}:${rootId}`, following ? "following" : "not-following");
    },
    async setLevel(channelId: string, level: Level | "inherit") {
      await act("level", { channelId, level });
    },
    sync: () => sync,
    badge: () => badge,
    subscribeBadge(onChange) {
      const told = (): void => onChange();
      badgeTold.add(told);
      return () => badgeTold.delete(told);
    },
    channels: () => channels,
    close: () => end.abort(),
  };
}
