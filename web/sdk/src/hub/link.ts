import { delay } from "../core/delay.js";
import type { View } from "../core/outbox.js";
import type { Message } from "../core/window.js";
import { type Answered, Keeper } from "./keeper.js";
import type { Ports } from "./options.js";
import { Pause } from "./pause.js";
import { recount } from "./projection.js";
import { type Shown, type WireRow, Rows, shownWith } from "./rows.js";
import { Sender } from "./sender.js";
import { storageKey } from "./storage.js";
import { Stream } from "./stream.js";
import { Feed } from "./timeline.js";
import { type RequestError, Transport, asRequestError } from "./transport.js";
import { maxSubscribed } from "../limits.js";

/** Which number of the badge a member chose to see. */
export type BadgeDisplay = "messages" | "conversations" | "attention";

/** What a link tells of: scopes that are others now, or everything. */
export interface LinkListener {
  /** Something about these scopes has changed; without any, about all. */
  changed(...scopes: readonly string[]): void;
  /** A scope's tail has become known. */
  tail(scope: string): void;
  /** A scope is no longer the member's to see. */
  gone(scope: string): void;
}

/**
 * The connection of one member to one hub: what the server says, what waits for it, and the loops
 * that keep both up to date.
 *
 *     identify -> restore the outbox -> stream, sender, feeds … -> close
 */
export class Link {
  readonly rows = new Rows();
  readonly keeper: Keeper;
  readonly transport: Transport;
  /** The stream is open. */
  live = false;
  /** Why there is no stream, or nothing begins; undefined while nothing is wrong. */
  failure: RequestError | undefined;
  display: BadgeDisplay | undefined;
  readonly #sender: Sender;
  readonly #stream: Stream;
  readonly #feeds = new Map<string, Feed>();
  readonly #closing = new AbortController();
  readonly #unsubscribe: () => void;
  readonly #pause: Pause;
  /** Takes in a page of the list that the stream tells. */
  #page = this.rows.list();
  #loading: Promise<void> | undefined;
  readonly #running: Promise<void>;
  #replanned = false;

  readonly #listener: LinkListener;

  constructor(
    readonly ports: Ports,
    listener: LinkListener,
  ) {
    this.#listener = listener;
    const { url, getToken, fetch, clock, random } = ports;
    this.transport = new Transport(url, getToken, fetch, clock, this.#closing.signal);
    this.#pause = new Pause(clock);
    this.keeper = new Keeper(ports.storage, (answers) => this.#kept(answers));
    const told = () => this.#listener.changed();
    this.#sender = new Sender(this.transport, this.keeper, clock, random, told);
    this.#stream = new Stream(this.transport, clock, random, {
      path: () => this.#streamPath(),
      greeted: (forgets) => this.#greeted(forgets),
      event: (name, data) => this.#event(name, data),
      ended: (greeted, why) => this.#ended(greeted, why),
    });
    this.#unsubscribe = ports.visibility.subscribe(() => {
      if (ports.visibility.visible()) this.hurry();
    });
    this.#running = this.#run();
  }

  /** Whose the link is; empty before the server has told. */
  get member(): string {
    return this.transport.namespace?.member ?? "";
  }

  /** What may be shown of a scope's read state. */
  view(scope: string): View {
    return this.keeper.outbox.view(scope, this.rows.said(scope));
  }

  /** What may be shown of a scope; undefined for one that the server has not told of. */
  show(scope: string): Shown | undefined {
    const { rows } = this;
    const shown = rows.show(scope, this.view(scope));
    if (!shown || shown.exact || rows.withheld || shown.view.pending === 0) return shown;
    const counts = recount(rows.said(scope), shown, this.feed(scope), this.member);
    return counts ? shownWith(shown.row, shown.view, counts, true) : shown;
  }

  /** Why nothing gets through for now. */
  get trouble(): RequestError | undefined {
    return this.failure ?? this.#sender.failure;
  }

  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Attempts now whatever waits. */
  hurry(): void {
    this.#pause.wake();
    this.#stream.hurry();
    this.#sender.lift();
    for (const feed of this.#feeds.values()) feed.hurry();
  }

  /** Loads the list anew. Concurrent calls share the work; it rejects when that failed. */
  load(): Promise<void> {
    this.#loading ??= this.#loadPages().finally(() => (this.#loading = undefined));
    return this.#loading;
  }

  feed(scope: string): Feed | undefined {
    return this.#feeds.get(scope);
  }

  /** Begins to look at a scope's messages; it ends with as many calls of release. */
  use(scope: string): Feed {
    let feed = this.#feeds.get(scope);
    if (!feed) {
      feed = new Feed(this.#feedHost, scope);
      this.#feeds.set(scope, feed);
      this.#resubscribe();
      feed.load();
    }
    feed.users++;
    return feed;
  }

  release(feed: Feed): void {
    if (--feed.users > 0) return;
    feed.close();
    this.#feeds.delete(feed.scope);
    this.#resubscribe();
    this.#listener.changed(feed.scope);
  }

  /** Ends everything; it resolves once everything that was begun is on disk (SE-108). */
  async close(): Promise<void> {
    if (this.closed) return;
    this.#unsubscribe();
    this.#sender.stop();
    this.#stream.stop();
    for (const feed of this.#feeds.values()) feed.close();
    const kept = this.keeper.close();
    this.#closing.abort();
    this.#pause.end();
    await kept;
    await this.#running;
  }

  get #feedHost() {
    const { clock, random } = this.ports;
    return {
      transport: this.transport,
      clock,
      random,
      ready: () => this.keeper.restored && !this.closed,
      changed: (scope: string, first: boolean) => {
        if (first) this.#listener.tail(scope);
        this.#listener.changed(scope);
      },
    };
  }

  async #run(): Promise<void> {
    let key = "";
    for (let failures = 1; !key && !this.closed; failures++) {
      try {
        key = await this.#identify();
      } catch (error) {
        this.failure = asRequestError(error);
        this.#listener.changed();
        await this.#pause.wait(Math.max(delay(failures, this.ports.random()), this.failure.wait));
      }
    }
    if (this.closed) return;
    for (const feed of this.#feeds.values()) feed.load();
    await Promise.all([this.#stream.run(), this.#sender.run(this.ports.locks, `tidemark ${key}`)]);
  }

  /** Learns whose the token is and what an earlier page has left. */
  async #identify(): Promise<string> {
    await this.transport.authorize();
    const { workspace, member } = this.transport.namespace!;
    const key = storageKey(this.ports.url, workspace, member);
    await this.keeper.restore(key, () => this.ports.channel(`tidemark ${key}`));
    this.failure = undefined;
    return key;
  }

  /** The outbox is another one; the answers that changed it are taken in in the same moment. */
  #kept(answers: readonly Answered[]): void {
    for (const { scope, body } of answers) this.rows.answered(scope, body);
    this.#listener.changed();
    this.#sender.nudge();
  }

  #streamPath(): string {
    const scopes = [...this.#feeds.keys()].sort().slice(0, maxSubscribed);
    const query = scopes.length > 0 ? `?messages=${scopes.map(encodeURIComponent).join(",")}` : "";
    return this.transport.path(`/events${query}`);
  }

  /** Opens the stream anew, so that it tells messages of the feeds that there are now. */
  #resubscribe(): void {
    if (this.#replanned || this.closed) return;
    this.#replanned = true;
    queueMicrotask(() => {
      this.#replanned = false;
      if (this.keeper.restored && !this.closed) this.#stream.reopen();
    });
  }

  #greeted(forgets: boolean): void {
    if (forgets) this.rows.forget();
    this.#page = this.rows.list();
    if (!this.display || forgets) void this.#loadSettings();
    this.live = true;
    this.failure = undefined;
    // Messages are never told of again, so that all feeds have to look.
    for (const feed of this.#feeds.values()) feed.interrupted();
    this.#listener.changed();
  }

  #ended(greeted: boolean, why: RequestError | undefined): void {
    this.live = false;
    if (why && !this.closed) this.failure = why;
    this.#listener.changed();
    // Where there are no streams, the list is asked for at their pace.
    if (!greeted && !why?.unsent && !this.closed) this.load().catch(() => {});
  }

  #event(name: string, data: unknown): void {
    if (name === "snapshot") {
      this.#listed(this.#page(data));
    } else if (name === "unread") {
      const { scope, row, lsn } = data as { scope: string; row?: WireRow; lsn: number };
      if (row) this.rows.put(scope, row, lsn);
      else if (this.rows.remove(scope, lsn)) this.#listener.gone(scope);
      this.#listener.changed(scope);
    } else if (name === "message") {
      const { op, scope, message } = data as { op: string; scope: string; message: Message };
      this.#feeds.get(scope)?.hear(op, message);
    } // what is unknown is of a newer server
  }

  /** A page of the list was taken in, and with it some scopes have gone. */
  #listed(gone: readonly string[]): void {
    for (const scope of gone) this.#listener.gone(scope);
    this.#listener.changed();
  }

  async #loadPages(): Promise<void> {
    await this.transport.authorize();
    const take = this.rows.list();
    for (let token = "", first = true; first || token; first = false) {
      const query = token ? `&pageToken=${encodeURIComponent(token)}` : "";
      const path = this.transport.path(`/unread?limit=100${query}`);
      const page = await this.transport.send<{ next?: string }>("GET", path);
      this.#listed(take(page));
      token = page.next ?? "";
    }
  }

  async #loadSettings(): Promise<void> {
    const member = encodeURIComponent(this.transport.namespace?.member ?? "");
    const path = this.transport.path(`/members/${member}/settings`);
    try {
      this.display = (await this.transport.send<{ badge?: BadgeDisplay }>("GET", path)).badge;
      this.#listener.changed();
    } catch {
      // the badge has no number to display then, and says so
    }
  }
}
