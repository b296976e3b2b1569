/** The rank of a readable message among those of its scope, from 1; 0 stands before the first. */
export type Revision = number;
/** The place of a message in its scope, from 1. */
export type Seq = number;
/** Counts the stored changes of a manual mark, from 0. */
export type Version = number;

/** What a server has said of one member in one scope. */
export interface State {
  readonly contentRevision: Revision;
  /** Inclusive. */
  readonly readRevision: Revision;
  readonly manualUnread: boolean;
  readonly version: Version;
  /** Where a manual mark begins, 0 for nowhere: a read that ends below it leaves the mark. */
  readonly fromRevision: Revision;
}

/** The state of a scope of which nothing is known: not unread. */
export const nothingSaid: State = Object.freeze({
  contentRevision: 0,
  readRevision: 0,
  manualUnread: false,
  version: 0,
  fromRevision: 0,
});

/**
 * What two statements of one server amount to, whichever came first: the higher revisions, and the
 * mark of the higher version. Of one version with two marks the first stays, since no server says
 * that (SE-043).
 */
export function merge(a: State, b: State): State {
  const mark = b.version > a.version ? b : a;
  return {
    contentRevision: Math.max(a.contentRevision, b.contentRevision),
    readRevision: Math.max(a.readRevision, b.readRevision),
    manualUnread: mark.manualUnread,
    version: mark.version,
    fromRevision: mark.fromRevision,
  };
}

/**
 * Whether a session is shown as unread. One that is at work is not, unless somebody marked it: what
 * it writes meanwhile is unread once it stops.
 */
export function isUnread(s: State, active: boolean, thinking: boolean): boolean {
  return s.manualUnread || (!(active && thinking) && s.contentRevision > s.readRevision);
}

/**
 * Reads what an answer or an event says of a read state; undefined where it says none. A server
 * that says nothing of revisions is not asked for anything else: there is no falling back to times.
 */
export function stateOf(said: unknown): State | undefined {
  const { contentRevision, readState } = (said ?? {}) as Partial<State> & {
    readState?: Partial<State>;
  };
  const { readRevision, manualUnread = false, version = 0, fromRevision = 0 } = readState ?? {};
  if (!Number.isSafeInteger(contentRevision) || !Number.isSafeInteger(readRevision)) {
    return undefined;
  }
  return {
    contentRevision: contentRevision!,
    readRevision: readRevision!,
    manualUnread,
    version,
    fromRevision,
  };
}
