import {
  type Notification,
  type Reach,
  type Revision,
  type Version,
  RefusedError,
  unmark,
} from "../../src/core/index.js";

/** Everything kept about one member in one scope. It never changes: commands return another one. */
export interface Row extends Reach, Notification {
  readonly joined: boolean;
  readonly visible: boolean;
  /** Rises with every join that starts anew. */
  readonly epoch: number;
  /** Of a thread: the parent row's epoch when this one began. */
  readonly parentEpoch: number;
  /** How the member came to follow a thread; after `stopped` no message makes them follow. */
  readonly follow: "automatic" | "explicit" | "stopped";
  /** Counts the stored changes of the mark. */
  readonly version: Version;
  /** Inclusive. */
  readonly activityRead: number;
}

/** Where a scope stands when a membership begins. */
export interface Ground {
  readonly head: Revision;
  readonly latestActivity: number;
  readonly parentEpoch: number;
}

const nobody: Row = {
  joined: false,
  visible: true,
  epoch: 0,
  parentEpoch: 0,
  follow: "automatic",
  level: "inherit",
  until: 0,
  effective: 1,
  readRevision: 0,
  manualUnread: false,
  fromRevision: 0,
  version: 0,
  activityRead: 0,
};

/** Makes a revision the first that may count, even if it had been read. */
function startAt(row: Row, first: Revision): Row {
  return { ...row, effective: first, readRevision: Math.min(row.readRevision, first - 1) };
}

/** Begins a membership that owes nothing to an earlier one, but for what the member chose. */
export function startEpoch(row: Row | undefined, ground: Ground, first?: Revision): Row {
  const start = startAt(row ?? nobody, first ?? ground.head + 1);
  return unmark({
    ...start,
    joined: true,
    epoch: start.epoch + 1,
    parentEpoch: ground.parentEpoch,
    activityRead: ground.latestActivity,
  });
}

/**
 * Joins. A member who is joined, or returns where history is shared, keeps everything; what the
 * command names wins over that. Throws RefusedError.
 */
export function join(
  row: Row | undefined,
  ground: Ground,
  command: { readonly effective?: Revision; readonly read?: Revision; readonly shared: boolean },
): Row {
  const { effective, read = 0, shared } = command;
  if ((effective ?? 0) > ground.head + 1 || read > ground.head) {
    throw new RefusedError("revision_in_future");
  }
  let next: Row;
  if (!row || (!row.joined && !shared)) next = startEpoch(row, ground, effective);
  else {
    next = { ...row, joined: true };
    const moves = effective !== undefined && (!row.joined || effective !== row.effective);
    if (moves) next = startAt(next, effective);
  }
  return { ...next, readRevision: Math.max(next.readRevision, read) };
}

/** The rule of sessions: where nothing is unread, the cursor stands at the head. */
export function settle(row: Row, head: Revision, unread: number): Row {
  return unread === 0 && row.readRevision < head ? { ...row, readRevision: head } : row;
}

/** Whether a message may make a member follow a thread: the parent row is the member's. */
export function followsByItself(row: Row | undefined, parent: Row | undefined): boolean {
  if (!parent?.joined) return false;
  return !row || (row.follow !== "stopped" && row.parentEpoch !== parent.epoch);
}

/** The member's own choice for a thread that they have a row of. */
export function chooseFollow(row: Row, following: boolean): Row {
  const [follow, level] = following
    ? (["explicit", "all"] as const)
    : (["stopped", "mentions"] as const);
  return { ...row, follow, level, until: 0 };
}

/**
 * The mark of a session that another one was merged into. Begins is where the source's mark
 * arrives, 0 for nowhere. The version is above both.
 */
export function mergeMarks(source: Row, destination: Row, begins: Revision): Row {
  const version = Math.max(source.version, destination.version) + 1;
  if (!source.manualUnread) return { ...destination, version };
  const own = destination.manualUnread ? destination.fromRevision : 0;
  const lower = begins > 0 && (own === 0 || begins < own);
  return {
    ...destination,
    version,
    manualUnread: true,
    fromRevision: lower ? begins : own,
  };
}
