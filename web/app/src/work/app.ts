import { type Hub, connectHub, databaseStorage, memoryStorage } from "@tidemark/sdk";
import { batch, computed, effect, signal } from "@preact/signals";
import { iconOf, titleOf } from "../view/attention.js";
import { type Person, namedIn, stranger } from "../view/people.js";
import { type Conversation, type Known, sectionsOf } from "../view/sidebar.js";
import type { Focus, SideView, Visit } from "../view/surface.js";
import type { Account } from "./accounts.js";
import { Api, type ThreadPlace } from "./api.js";
import type { PageIcon } from "./icon.js";

/** What a dialog is open for. */
export type Dialog =
  | { readonly kind: "explain" | "settings"; readonly scope: string }
  | { readonly kind: "inbox" | "diagnostics" | "keys" };

/** A message that is on its way, or could not be sent. */
export interface Draft {
  readonly opId: string;
  readonly scope: string;
  readonly text: string;
  readonly error: string | null;
}

const memory = "tidemark.app.view.v1";

/**
 * The state of the app for one sign-in: signals that components draw, and what people do. Counts
 * are the SDK's alone; nothing here adds to one.
 */
export class App {
  readonly hub: Hub;
  readonly api: Api;
  readonly people = signal<ReadonlyMap<string, Person>>(new Map());
  readonly channels;
  readonly sync;
  readonly badge;
  readonly current = signal("");
  readonly visit = signal<Visit>("plain");
  readonly target = signal<string | null>(null);
  readonly tabs = signal<readonly SideView[]>([]);
  readonly side = signal<SideView | null>(null);
  readonly sideOpen = signal(true);
  readonly mainThread = signal<string | null>(null);
  readonly focus = signal<Focus>("elsewhere");
  readonly query = signal("");
  readonly favourite = signal<string | null>(null);
  readonly collapsed = signal<ReadonlySet<string>>(new Set());
  readonly dialog = signal<Dialog | null>(null);
  readonly notice = signal<string | null>(null);
  readonly drafts = signal<readonly Draft[]>([]);
  readonly inbox = signal<number | null>(null);
  readonly workspaceName = signal("");
  readonly threads = signal<ReadonlyMap<string, readonly ThreadPlace[]>>(new Map());
  readonly peers = signal<ReadonlyMap<string, Person>>(new Map());
  readonly #ends: (() => void)[] = [];
  #asked = new Set<string>();

  constructor(
    readonly account: Account,
    base: string,
    framed: boolean,
    icon: PageIcon,
  ) {
    const getToken = () => account.token;
    // A frame is a device of its own: it must not share what waits with the page around it.
    const apart = framed
      ? { storage: memoryStorage(), channel: () => silent, locks: alone }
      : { storage: databaseStorage(indexedDB) };
    this.hub = connectHub({ url: base, getToken, ...apart });
    this.api = new Api(base, getToken);
    const { hub } = this;
    this.channels = this.#watch(() => hub.channels(), (call) => hub.subscribeChannels(call));
    this.sync = this.#watch(() => hub.sync(), (call) => hub.subscribeSync(call));
    this.badge = this.#watch(() => hub.badge(), (call) => hub.subscribeBadge(call));
    this.#restore();
    this.#ends.push(
      effect(() => {
        const badge = this.badge.value;
        document.title = titleOf(badge, this.nameOf(this.current.value));
        icon.show(iconOf(badge), badge.display);
      }),
      effect(() => this.#remember()),
      effect(() => {
        void this.badge.value;
        void this.refreshInbox();
      }),
    );
    void this.#begin();
  }

  /** Conversations with their threads and what is known of them. */
  readonly conversations = computed<readonly Conversation[]>(() => {
    const threads = new Map<string, Known[]>();
    const list = this.channels.value;
    for (const channel of list) {
      if (channel.type !== "thread" || !channel.parent) continue;
      const { parent: channelId, id: rootId } = channel;
      const snapshot = this.hub.snapshot({ kind: "thread", channelId, rootId });
      const known = { channel, snapshot };
      threads.set(channelId, [...(threads.get(channelId) ?? []), known]);
    }
    const peers = this.peers.value;
    return list.flatMap((channel) => {
      if (channel.type === "thread") return [];
      const snapshot = this.hub.snapshot({ kind: "channel", channelId: channel.id });
      const peer = peers.get(channel.id) ?? null;
      return [{ channel, snapshot, threads: threads.get(channel.id) ?? [], peer }];
    });
  });

  readonly sections = computed(() =>
    sectionsOf(this.conversations.value, this.favourite.value, this.query.value),
  );

  readonly channel = computed(() =>
    this.channels.value.find((channel) => channel.id === this.current.value),
  );

  person(id: string): Person {
    return this.people.value.get(id) ?? stranger(id);
  }

  nameOf(scope: string): string {
    return this.channels.value.find((channel) => channel.id === scope)?.name ?? "";
  }

  /** Shows a channel. By a link, the message it names is shown, and only what has focus is read. */
  open(id: string, visit: Visit = "plain", message: string | null = null): void {
    const channel = this.channels.value.find((c) => c.id === id);
    if (channel?.type === "thread" && channel.parent) {
      this.openThread(channel.parent, id, visit);
      return;
    }
    batch(() => {
      this.current.value = id;
      this.visit.value = visit;
      this.target.value = message;
      this.mainThread.value = null;
    });
    void this.loadThreads(id);
  }

  /** Shows a thread beside its channel. */
  openThread(channelId: string, rootId: string, visit: Visit = "link"): void {
    batch(() => {
      if (this.current.value !== channelId) this.open(channelId, visit);
      this.visit.value = visit;
      this.openTab({ kind: "thread", channelId, rootId });
    });
  }

  openTab(view: SideView): void {
    const same = this.tabs.value.find((tab) => keyOf(tab) === keyOf(view));
    batch(() => {
      if (!same) this.tabs.value = [...this.tabs.value, view].slice(-6);
      this.side.value = same ?? view;
      this.sideOpen.value = true;
    });
  }

  closeTab(view: SideView): void {
    const rest = this.tabs.value.filter((tab) => tab !== view);
    batch(() => {
      this.tabs.value = rest;
      if (this.side.value === view) this.side.value = rest.at(-1) ?? null;
    });
  }

  toggleSection(id: string): void {
    const next = new Set(this.collapsed.value);
    if (!next.delete(id)) next.add(id);
    this.collapsed.value = next;
  }

  /** Sends a text. What could not be sent stays with its reason, and can be sent again. */
  async send(scope: string, text: string, opId: string = crypto.randomUUID()): Promise<void> {
    const draft = { opId, scope, text, error: null };
    this.drafts.value = [...this.drafts.value.filter((d) => d.opId !== opId), draft];
    try {
      await this.api.post(scope, opId, text, namedIn(text, this.people.value.keys()));
      this.drop(opId);
    } catch (error) {
      const failed = { ...draft, error: wordsOf(error) };
      this.drafts.value = this.drafts.value.map((d) => (d.opId === opId ? failed : d));
    }
  }

  drop(opId: string): void {
    this.drafts.value = this.drafts.value.filter((draft) => draft.opId !== opId);
  }

  /** Does something that may be refused, and says so where it is. */
  async attempt(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.notice.value = wordsOf(error);
    }
  }

  /** Finds the threads of a channel, with the messages that they hang on. */
  async loadThreads(channelId: string): Promise<void> {
    try {
      const found = await this.api.threadsOf(channelId);
      this.threads.value = new Map(this.threads.value).set(channelId, found);
    } catch {
      // the list is asked for again at the next visit; until then buttons are missing
    }
  }

  async refreshInbox(): Promise<void> {
    if (!this.api.member) return;
    try {
      this.inbox.value = await this.api.inboxCount();
    } catch {
      this.inbox.value = null; // not known is no zero
    }
  }

  /** Ends the connection; what was begun is saved. */
  close(): Promise<void> {
    for (const end of this.#ends.splice(0)) end();
    return this.hub.close();
  }

  async #begin(): Promise<void> {
    await this.attempt(async () => {
      await this.api.identify();
      this.workspaceName.value = (await this.api.workspaceOf(this.account.token)).name;
      const people = await this.api.people();
      this.people.value = new Map(people.map((person) => [person.id, person]));
      void this.refreshInbox();
      this.#ends.push(effect(() => void this.#findPeers(this.channels.value)));
      if (this.current.value) void this.loadThreads(this.current.value);
    });
  }

  /** Learns who the other one of each dm is, once each. */
  async #findPeers(list: readonly { readonly id: string; readonly type: string }[]): Promise<void> {
    const fresh = list.filter((c) => c.type === "dm" && !this.#asked.has(c.id));
    for (const { id } of fresh) this.#asked.add(id);
    for (const { id } of fresh) {
      try {
        const others = (await this.api.membersOf(id)).filter((p) => p.id !== this.api.member);
        if (others.length === 1) this.peers.value = new Map(this.peers.value).set(id, others[0]!);
      } catch {
        this.#asked.delete(id);
      }
    }
  }

  #watch<T>(get: () => T, subscribe: (call: () => void) => () => void) {
    const out = signal(get());
    this.#ends.push(subscribe(() => (out.value = get())));
    return out;
  }

  #restore(): void {
    try {
      const said = JSON.parse(localStorage.getItem(memory) ?? "{}") as {
        favourite?: string | null;
        collapsed?: readonly string[];
      };
      this.favourite.value = said.favourite ?? null;
      this.collapsed.value = new Set(said.collapsed ?? []);
      const last = sessionStorage.getItem(`${memory} ${this.account.token.slice(-12)}`);
      if (last) {
        this.current.value = last;
        this.visit.value = "restored";
      }
    } catch {
      // what was remembered is of another version
    }
  }

  #remember(): void {
    const said = { favourite: this.favourite.value, collapsed: [...this.collapsed.value] };
    localStorage.setItem(memory, JSON.stringify(said));
    sessionStorage.setItem(`${memory} ${this.account.token.slice(-12)}`, this.current.value);
  }
}

const alone = { request: (_: string, __: object, hold: () => Promise<void>) => hold() };
const silent = { post: () => {}, subscribe: () => () => {}, close: () => {} };

export const keyOf = (view: SideView): string =>
  view.kind === "thread" ? `thread ${view.rootId}` : `${view.kind} ${view.channelId}`;

/** An error in words. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
