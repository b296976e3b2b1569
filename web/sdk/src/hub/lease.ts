import type { Reading } from "../capability.js";
import { noChange } from "../core/operation.js";
import { type View, newRead, withoutMark } from "../core/outbox.js";
import type { Revision } from "../core/state.js";
import { baseOf, isCountable } from "../core/values.js";
import { Look } from "../core/window.js";
import type { Link } from "./link.js";
import type { Feed } from "./timeline.js";

/** What a lease needs of those who gave it. */
export interface LeaseHost {
  readonly link: Link;
  /** The lease has ended, or its separator is another one. */
  changed(lease: Lease): void;
  /** Revisions of a scope that were observed one by one, whoever's lease it was. */
  observed(scope: string): Set<Revision>;
}

/**
 * One reading UI's lease on a scope. Rows that were seen are remembered, and the cursor moves over
 * the run of them that begins right after it; the bottom reads through the receipt; in a dm, any
 * row reads everything that was rendered. A lease that ended, or lost its access, saves nothing.
 */
export class Lease implements Reading {
  /** The message before which the separator belongs, as it was when the lease began. */
  firstUnread: string | null = null;
  ended = false;
  readonly #look: Look;
  #opened = false;
  #unheard: { ids: readonly string[]; bottom: boolean } | undefined;

  readonly #host: LeaseHost;
  readonly #link: Link;
  /** Whether the scope is there and belongs to the channel that was named. */
  readonly #permits: () => boolean;

  constructor(
    host: LeaseHost,
    readonly feed: Feed,
    permits: () => boolean,
  ) {
    this.#host = host;
    this.#link = host.link;
    this.#permits = permits;
    this.#look = new Look(feed.window);
    this.tail();
  }

  get scope(): string {
    return this.feed.scope;
  }

  /** Notes that the tail may have become known: what was shown then is what is read from. */
  tail(): void {
    if (this.#opened || this.ended || !this.feed.window.synced || !this.#permits()) return;
    this.#opened = true;
    const view = this.#link.view(this.scope);
    this.#look.opened(view);
    void this.#separate(view);
  }

  async observe(messageIds: readonly string[], at: { readonly bottom: boolean }): Promise<void> {
    const ids = [...messageIds];
    this.#unheard = undefined;
    if (!this.#permitted()) return;
    if (!this.feed.window.synced) {
      this.#unheard = { ids, bottom: at.bottom };
      return;
    }
    const rendered = this.#rendered(ids);
    if (rendered.revisions.length === 0 && rendered.last === 0) return;
    const whole = at.bottom || this.#link.rows.row(this.scope)?.type === "dm";
    await (whole ? this.#readThrough(rendered.through) : this.#readRows(rendered.revisions));
  }

  settled(): void {
    const again = this.#unheard;
    if (!again) return;
    void this.observe(again.ids, { bottom: again.bottom }).catch(() => {}); // sync() tells
  }

  dispose(): void {
    if (this.ended) return;
    this.ended = true;
    this.#host.changed(this);
  }

  #permitted(): boolean {
    return !this.ended && this.#link.ports.visibility.visible() && this.#permits();
  }

  /** What of the ids is there: their revisions, and how far a list reaches that ends with them. */
  #rendered(ids: readonly string[]) {
    const wanted = new Set(ids);
    const found = this.feed.window.messages.filter((m) => wanted.has(m.id));
    const last = found.at(-1)?.seq ?? 0;
    const revisions = found.flatMap((m) => m.contentRevision ?? []);
    return { last, revisions, through: last > 0 ? this.feed.revisionAt(last) : 0 };
  }

  /** Reads everything through a revision, and what was marked when the lease began. */
  async #readThrough(through: Revision): Promise<void> {
    const { feed } = this;
    const link = this.#link;
    const { newId, clock } = link.ports;
    const look = this.#look;
    const { epoch } = feed.window;
    const decide = () => {
      if (!this.#permitted() || feed.error) return undefined;
      const o = { visible: true, foreground: true, loaded: true, tailInView: true, epoch, through };
      return look.reads(o, link.view(this.scope));
    };
    if (decide() === undefined) return; // most calls end here, and wait for no disk
    let read: Revision | undefined;
    await link.keeper.commit((outbox) => {
      read = decide();
      if (read === undefined) return noChange;
      const { op, base } = look.operation(newId(), read, clock.now());
      return outbox.add(op, base).change;
    });
    if (read !== undefined) look.acknowledged(read);
  }

  /**
   * Remembers rows, and reads the run that begins right after the cursor. It takes no mark away.
   */
  async #readRows(revisions: readonly Revision[]): Promise<void> {
    const link = this.#link;
    const observed = this.#host.observed(this.scope);
    for (const revision of revisions) observed.add(revision);
    const decide = () => {
      if (!this.#permitted() || this.feed.error) return undefined;
      const view = link.view(this.scope);
      const end = this.#runFrom(view.readRevision, observed);
      return end > view.readRevision ? { view, end } : undefined;
    };
    if (!decide()) return;
    await link.keeper.commit((outbox) => {
      const run = decide();
      if (!run) return noChange;
      const op = newRead(link.ports.newId(), run.view, run.end, link.ports.clock.now());
      return outbox.add(withoutMark(op, run.view.base), run.view.base).change;
    });
    const { readRevision } = link.view(this.scope);
    for (const revision of observed) if (revision <= readRevision) observed.delete(revision);
  }

  /**
   * The end of the run after a cursor: rows that were observed, and those that are known to count
   * for nobody here. What was removed is no row; what is not loaded ends the run.
   */
  #runFrom(cursor: Revision, observed: ReadonlySet<Revision>): Revision {
    const { messages, earlier } = this.feed.window;
    const type = this.#link.rows.row(this.scope)?.type ?? "";
    const rows = messages.filter((m) => m.contentRevision);
    const lowest = rows[0]?.contentRevision ?? 0;
    if (rows.length === 0 || (earlier && lowest > cursor + 1)) return cursor;
    let end = cursor;
    for (const m of rows) {
      const revision = m.contentRevision!;
      if (revision <= cursor) continue;
      if (!observed.has(revision) && isCountable(m, type, this.#link.member)) break;
      end = revision;
    }
    return end;
  }

  async #separate(view: View): Promise<void> {
    const base = baseOf(view);
    const { messages, earlier } = this.feed.window;
    const lowest = messages.find((m) => m.contentRevision)?.contentRevision ?? 0;
    const type = this.#link.rows.row(this.scope)?.type ?? "";
    const countable = (revision: Revision) => revision > base;
    let first: string | null = null;
    if (view.contentRevision > base) {
      if (!earlier || lowest <= base + 1) {
        const me = this.#link.member;
        const found = messages.find(
          (m) => countable(m.contentRevision ?? 0) && isCountable(m, type, me),
        );
        first = found?.id ?? null;
      } else {
        first = await this.#askFirst().catch(() => null);
      }
    }
    if (this.ended || first === this.firstUnread) return;
    this.firstUnread = first;
    this.#host.changed(this);
  }

  async #askFirst(): Promise<string | null> {
    const { transport } = this.#link;
    const path = transport.path(`/scopes/${encodeURIComponent(this.scope)}/unread/first`);
    const told = await transport.send<{ firstUnread?: { messageId: string } }>("GET", path);
    return told.firstUnread?.messageId ?? null;
  }
}
