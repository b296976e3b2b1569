import { type View, newRead } from "./outbox.js";
import type { Operation } from "./operation.js";
import type { Revision, Seq, State, Version } from "./state.js";
import { maxHeld, maxMessages } from "../limits.js";

/** A message as the server tells it. What it holds besides is the server's, and kept. */
export interface Message {
  readonly id: string;
  readonly seq: Seq;
  /** Absent where there is nothing to read. */
  readonly contentRevision?: Revision;
  readonly author?: string;
  readonly notifyPrincipal?: string;
  readonly kind?: string;
  readonly mentions?: readonly string[];
  readonly mentionsEveryone?: boolean;
  /** Of a message of a task: for whom it counts. */
  readonly recipients?: readonly string[];
  readonly replyTo?: string;
  readonly localId?: string;
  readonly payload?: unknown;
  readonly createdAt?: string;
}

/** A page of messages, ascending by seq. */
export interface Page {
  readonly messages: readonly Message[];
  /** There are further messages in the direction asked for. */
  readonly hasMore: boolean;
  /** The receipt; absent or 0 for none. */
  readonly readThroughRevision?: Revision;
}

/**
 * A run of messages up to the tail of a scope, as far as is known without a gap, with the revision
 * through which it reaches: the receipt. It lives and ends with the window.
 */
export class Window {
  /** Grows when the window comes to be of another scope: older revisions mean nothing then. */
  epoch = 1;
  /** There are older messages to load. */
  earlier = false;
  /**
   * Revisions through which the messages reach without a gap, inclusive; meaningful once synced.
   */
  through: Revision = 0;
  /** The newest page was there. */
  synced = false;
  #list: readonly Message[] = [];
  #held: Message[] = []; // live ones beyond a gap, or before the first tail
  #last: Seq = 0; // everything up to here is in the list, or was pushed out or removed
  #behind = false; // something beyond last may have been missed
  #misses = 0;

  constructor(public scope: string) {}

  /** Ascending by seq. The array is never changed: a new one takes its place. */
  get messages(): readonly Message[] {
    return this.#list;
  }

  /** The seq after which messages have to be loaded; undefined where there is no gap to close. */
  get needsAfter(): Seq | undefined {
    return this.synced && this.#behind ? this.#last : undefined;
  }

  /**
   * To note when a page is asked for and to hand in with it: what is missed meanwhile is not in it.
   */
  get asked(): number {
    return this.#misses;
  }

  /** Takes in the newest page. It tells whether that made the tail known. */
  latest(asked: number, p: Page): boolean {
    const first = !this.synced;
    if (!first && (p.messages[0]?.seq ?? 0) > this.#last + 1) {
      this.#list = []; // a gap behind the page
      this.earlier = true;
    }
    if (this.#list.length === 0) this.earlier = p.hasMore;
    this.synced = true;
    this.#behind = asked !== this.#misses;
    this.#append(p.messages);
    this.through = Math.max(this.through, p.readThroughRevision ?? 0);
    this.#release();
    return first;
  }

  /** Takes in a page of older messages. It says nothing of the tail, whatever it carries. */
  before(p: Page): void {
    const first = this.#list[0]?.seq ?? Infinity;
    const older = p.messages.filter((m) => m.seq < first);
    const room = maxMessages - this.#list.length;
    this.earlier = p.hasMore || older.length > room;
    this.#list = [
      ...(older.length > room ? older.slice(older.length - room) : older),
      ...this.#list,
    ];
  }

  /**
   * Takes in a page of the messages after a seq. One that was cut, or whose head has moved on,
   * brings messages and no receipt.
   */
  catchUp(asked: number, after: Seq, p: Page): void {
    if (!this.synced || after > this.#last) return;
    let ends = (p.messages.at(-1)?.seq ?? 0) <= this.#last;
    this.#append(p.messages);
    if (!p.hasMore && p.readThroughRevision) {
      this.through = Math.max(this.through, p.readThroughRevision);
      ends = true;
    }
    this.#behind = !ends || p.hasMore || asked !== this.#misses;
    if (!this.#behind) this.#release();
  }

  /** Takes in a message as it comes. Beyond a gap, or before the first tail, it waits. */
  added(m: Message): void {
    if (this.synced && m.seq <= this.#last) return;
    const revision = m.contentRevision ?? 0;
    if (this.synced && !this.#behind && m.seq === this.#last + 1 && revision <= this.through + 1) {
      this.#append([m]);
      this.through = Math.max(this.through, revision);
      return;
    }
    this.#behind = this.synced;
    if (this.#held.length < maxHeld) this.#held.push(m);
    else this.#misses++;
  }

  /** Replaces a message. Its revision stays. */
  edited(m: Message): void {
    const replace = (x: Message) => (x.id === m.id ? m : x);
    this.#list = this.#list.map(replace);
    this.#held = this.#held.map(replace);
  }

  /** Takes a message out. What was seen of it stays seen. */
  removed(id: string): void {
    const stays = (m: Message) => m.id !== id;
    this.#list = this.#list.filter(stays);
    if (this.#held.every(stays)) return;
    this.#held = this.#held.filter(stays);
    this.interrupted(); // its place would look like a gap
  }

  /** Notes that messages may have come which nobody told of. */
  interrupted(): void {
    this.#behind = this.synced;
    this.#misses++;
  }

  /** Makes it a window of another scope: with nothing in it, and in need of a fresh tail. */
  replaced(scope: string): void {
    this.scope = scope;
    this.epoch++;
    this.earlier = this.synced = this.#behind = false;
    this.through = this.#last = 0;
    this.#list = [];
    this.#held = [];
    this.#misses++;
  }

  #append(messages: readonly Message[]): void {
    const news = messages.filter((m) => m.seq > this.#last);
    if (news.length === 0) return;
    this.#last = news.at(-1)!.seq;
    const all = [...this.#list, ...news];
    if (all.length > maxMessages) this.earlier = true;
    this.#list = all.slice(-maxMessages);
  }

  #release(): void {
    const held = this.#held.sort((a, b) => a.seq - b.seq);
    this.#held = [];
    for (const m of held) this.added(m);
  }
}

/** What a caller asserts of the moment in which somebody looks. Only all of it is a reading. */
export interface Observation {
  /** The messages are on the screen, nothing hides them. */
  readonly visible: boolean;
  /** The app or tab is the one in use. */
  readonly foreground: boolean;
  /** The messages were loaded without an error. */
  readonly loaded: boolean;
  /** The newest message is laid out and within the view. */
  readonly tailInView: boolean;
  /** Of the window when it was rendered. */
  readonly epoch: number;
  readonly through: Revision;
}

/**
 * Somebody's look at a window, from its opening on. A manual mark is taken away by the opening
 * only, and only if it was there then: one that arrives while the window is open stays (SE-081).
 */
export class Look {
  #opening: View | undefined;
  #observed = false;
  #acked: Revision = 0;
  #epoch: number;

  constructor(private readonly window: Window) {
    this.#epoch = window.epoch;
  }

  /** Notes what was shown when the tail was known. The first time counts, in each epoch. */
  opened(seen: View): void {
    if (this.#epoch !== this.window.epoch) {
      this.#epoch = this.window.epoch;
      this.#observed = false;
      this.#acked = 0;
      this.#opening = undefined;
    }
    this.#opening ??= seen;
  }

  /**
   * Tells of what an observation is a reading that the server does not know of: the revision that
   * was rendered, never the head. Undefined for no reading. Shown is what is shown now.
   */
  reads(o: Observation, shown: State): Revision | undefined {
    const w = this.window;
    const looked = o.visible && o.foreground && o.loaded && o.tailInView;
    const same = o.epoch === w.epoch && this.#epoch === w.epoch;
    if (!looked || !w.synced || !this.#opening || !same) return undefined;
    const revision = Math.min(o.through, w.through);
    const { manualUnread, version } = this.#opening;
    const marked =
      !this.#observed && manualUnread && shown.manualUnread && shown.version === version;
    const news = revision > Math.max(shown.readRevision, this.#acked);
    return news || (marked && revision >= shown.fromRevision) ? revision : undefined;
  }

  /** Makes the operation of a reading. It names the version that was shown at the opening. */
  operation(id: string, revision: Revision, at: number): { op: Operation; base: Version } {
    const op = newRead(id, this.#opening!, revision, at);
    const flips = op.flips && !this.#observed;
    return { op: { ...op, scope: this.window.scope, flips }, base: this.#opening!.base };
  }

  /** Notes that a reading has been taken in. */
  acknowledged(revision: Revision): void {
    this.#acked = Math.max(this.#acked, revision);
    this.#observed = true;
  }
}
