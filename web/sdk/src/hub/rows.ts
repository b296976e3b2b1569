import type { Badge, Level } from "../capability.js";
import type { View } from "../core/outbox.js";
import { type State, merge, nothingSaid, stateOf } from "../core/state.js";
import { type Totals, present, totals } from "../core/values.js";

/** One scope as the server tells it, whole. */
export interface WireRow {
  readonly type: string;
  readonly name?: string;
  readonly parent?: string;
  readonly tags?: readonly string[];
  readonly notification: Level;
  readonly archived?: boolean;
  readonly unread: number;
  readonly attention: number;
  readonly activity: number;
  readonly shown: boolean;
  readonly shownUnread: number;
  readonly state: string;
  readonly replyCount?: number;
  /** What the member chose; absent where messages decide. */
  readonly follow?: "following" | "stopped";
  readonly latestMessage?: { readonly id: string; readonly at: string };
  readonly lastActivityAt?: string;
}

/** A page of the list; without scopes it says that numbers cannot be vouched for. */
interface WirePage {
  readonly scopes?: Record<string, WireRow>;
  readonly complete?: boolean;
  readonly lsn?: number;
  readonly hasUnread?: boolean;
}

interface WireCounts {
  readonly unread?: number;
  readonly attention?: number;
  readonly activity?: number;
  readonly shown?: boolean;
  readonly shownUnread?: number;
}

/** What the server has said of one scope, as of a commit. */
interface Said {
  row: WireRow;
  said: State;
  lsn: number;
  /** The row's numbers are those of the said state. */
  counted: boolean;
}

/**
 * A scope as it may be shown: what the server counted, with the operations of this device on top.
 */
export interface Shown {
  readonly row: WireRow;
  readonly view: View;
  readonly unread: number;
  readonly attention: number;
  /** The dot, and the number beside it. */
  readonly shown: boolean;
  readonly shownUnread: number;
  /** The numbers are the server's, or follow from what it said. */
  readonly exact: boolean;
}

/**
 * What the server has said of the member's scopes. Statements are ordered by the workspace's
 * commits: a newer one replaces an older one whole, in whichever order they come (SE-041).
 */
export class Rows {
  /** All scopes were told of since the beginning. */
  listed = false;
  /** The server cannot vouch for numbers for now. */
  withheld = false;
  /** What the server says where not all scopes were told of yet. */
  hasUnread = false;
  readonly #rows = new Map<string, Said>();
  /** By the commit at which they went: an older answer brings none back. */
  readonly #gone = new Map<string, number>();

  ids(): IterableIterator<string> {
    return this.#rows.keys();
  }

  has(id: string): boolean {
    return this.#rows.has(id);
  }

  row(id: string): WireRow | undefined {
    return this.#rows.get(id)?.row;
  }

  said(id: string): State {
    return this.#rows.get(id)?.said ?? nothingSaid;
  }

  /** Takes in the whole present state of a scope as of a commit. */
  put(id: string, row: WireRow, lsn: number): void {
    const before = this.#rows.get(id);
    if ((this.#gone.get(id) ?? -1) > lsn || (before && lsn < before.lsn)) return;
    this.#gone.delete(id);
    const said = stateOf(row);
    this.#rows.set(id, {
      row,
      said: said ?? nothingSaid,
      lsn,
      counted: said !== undefined && row.state === "ready",
    });
  }

  /**
   * Takes out a scope that the member has left or may not see any more. It tells if it was there.
   */
  remove(id: string, lsn: number): boolean {
    const before = this.#rows.get(id);
    if (before && lsn < before.lsn) return false;
    this.#gone.set(id, Math.max(this.#gone.get(id) ?? 0, lsn));
    return this.#rows.delete(id);
  }

  /**
   * Begins to read the list. The returned function takes in its pages, in their order; the complete
   * one ends it, and tells which scopes are gone. A list that is not read to its end says nothing
   * of what it does not name.
   */
  list(): (page: unknown) => readonly string[] {
    const seen = new Set<string>();
    let began: number | undefined;
    return (page) => {
      const { scopes, complete, lsn = 0, hasUnread } = page as WirePage;
      this.hasUnread = hasUnread === true;
      this.withheld = !scopes;
      if (!scopes) return [];
      began ??= lsn;
      for (const [id, row] of Object.entries(scopes)) {
        seen.add(id);
        this.put(id, row, lsn);
      }
      if (!complete) return [];
      const lost: string[] = [];
      for (const [id, x] of this.#rows) if (!seen.has(id) && x.lsn <= began) lost.push(id);
      for (const id of lost) this.#rows.delete(id);
      for (const [id, at] of this.#gone) if (at <= began) this.#gone.delete(id);
      this.listed = true;
      return lost;
    };
  }

  /** Takes in the answer to a read or a mark, also to one that was refused for a conflict. */
  answered(id: string, body: unknown): void {
    const x = this.#rows.get(id);
    const said = stateOf(body);
    if (!x || !said) return;
    const { lsn, counts } = body as { lsn?: number; counts?: WireCounts };
    if (lsn === undefined) {
      // a session's own answers name no commit: revisions say what is newer
      x.said = merge(x.said, said);
      x.counted = false;
      return;
    }
    if (lsn < x.lsn) return;
    x.said = said;
    x.lsn = lsn;
    x.counted = counts?.unread !== undefined;
    if (x.counted) x.row = { ...x.row, ...counts };
  }

  /** Lets the next statements count, whatever they are of: the database may be another one. */
  forget(): void {
    for (const x of this.#rows.values()) x.lsn = 0;
    this.#gone.clear();
  }

  /** A scope with a view of its state on top; undefined for one that the server has not told of. */
  show(id: string, view: View): Shown | undefined {
    const x = this.#rows.get(id);
    if (!x) return undefined;
    const { row, said } = x;
    const { unread, attention, shown, shownUnread } = row;
    const exact = x.counted && !this.withheld;
    const same =
      view.readRevision === said.readRevision &&
      view.manualUnread === said.manualUnread &&
      view.fromRevision === said.fromRevision;
    if (same) return { row, view, unread, attention, shown, shownUnread, exact };
    return overlay(row, view, said, exact);
  }
}

/**
 * What the counts are once the operations are done. A read to the head leaves nothing, if no mark
 * goes on from somewhere; how much another one leaves only the server knows, and no more than
 * before.
 */
function overlay(row: WireRow, view: View, said: State, exact: boolean): Shown {
  let { unread, attention } = row;
  const moves = view.readRevision !== said.readRevision || view.fromRevision !== said.fromRevision;
  if (moves && view.readRevision >= view.contentRevision && view.fromRevision === 0) {
    unread = 0;
    attention = 0;
  } else if (moves && (unread > 0 || view.fromRevision > 0)) {
    exact = false;
  }
  return shownWith(row, view, { unread, attention }, exact);
}

/** A scope with other counts than the server's. */
export function shownWith(
  row: WireRow,
  view: View,
  counts: { readonly unread: number; readonly attention: number },
  exact: boolean,
): Shown {
  const { manualUnread } = view;
  const standing = { counts: !row.archived, level: row.notification, manualUnread };
  const { activity } = row;
  const { unread, attention } = counts;
  return { row, view, unread, attention, exact, ...present(standing, { ...counts, activity }) };
}

/** The sum over what is shown. Display is which number the member chose to see. */
export function foldBadge(
  all: Iterable<Shown>,
  display: keyof Totals | undefined,
  rows: Rows,
): Badge {
  const sum = totals(all);
  return Object.freeze({
    ...sum,
    display: display && rows.listed ? sum[display] : null,
    hasUnread: sum.conversations > 0 || (!rows.listed && rows.hasUnread),
    complete: rows.listed,
  });
}
