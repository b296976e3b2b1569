import type { Person } from "./people.js";

/** One place where a conversation is drawn; in a collapsed section, the place of its summary. */
export interface Copy {
  readonly id: string;
  readonly top: number;
  readonly bottom: number;
  /** It has observed unread state, and is not muted. */
  readonly unread: boolean;
  /** The other one of a one-to-one dm; group dms and channels have none. */
  readonly peer: Person | null;
  /** The section to open before it can be seen; null where it is open. */
  readonly collapsed: string | null;
}

/** What lies out of view in one direction. */
export interface Edge {
  /** Distinct conversations, not messages. */
  readonly count: number;
  readonly nearest: Copy;
  /** The nearest ones first, three at most. */
  readonly people: readonly Person[];
}

/** The view in the same coordinates as the copies. */
export interface View {
  readonly top: number;
  readonly bottom: number;
}

const maxPeople = 3;

/** What lies above and below a view. A copy that is seen in part takes its conversation out. */
export function edgesOf(
  copies: readonly Copy[],
  view: View,
): { readonly above: Edge | null; readonly below: Edge | null } {
  const unread = copies.filter((copy) => copy.unread);
  const seen = new Set(
    unread
      .filter((c) => c.collapsed === null && c.bottom > view.top && c.top < view.bottom)
      .map((copy) => copy.id),
  );
  // The summary of a collapsed section that is in view stands for what is in it.
  for (const c of unread) {
    if (c.collapsed !== null && c.bottom > view.top && c.top < view.bottom) seen.add(c.id);
  }
  const out = unread.filter((copy) => !seen.has(copy.id));
  const above = out.filter((c) => c.bottom <= view.top).sort((a, b) => b.bottom - a.bottom);
  const below = out.filter((c) => c.top >= view.bottom).sort((a, b) => a.top - b.top);
  return { above: edgeOf(above), below: edgeOf(below) };
}

function edgeOf(nearestFirst: readonly Copy[]): Edge | null {
  const nearest = nearestFirst[0];
  if (!nearest) return null;
  const people: Person[] = [];
  const ids = new Set<string>();
  for (const { id, peer } of nearestFirst) {
    if (!ids.has(id) && peer && people.length < maxPeople) people.push(peer);
    ids.add(id);
  }
  return { count: ids.size, nearest, people };
}

/** What assistive technology calls a button. */
export function edgeName(edge: Edge, direction: "above" | "below"): string {
  const what = edge.count === 1 ? "conversation" : "conversations";
  return `${edge.count} unread ${what} ${direction}`;
}
