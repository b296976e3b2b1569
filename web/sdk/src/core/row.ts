import { RefusedError } from "./operation.js";
import type { Revision, State, Version } from "./state.js";

/** The part of a read state that reads and marks change. */
export type Cursor = Omit<State, "contentRevision">;

/** Takes the mark away, if there is one. */
export function unmark<T extends Cursor>(row: T): T {
  if (!row.manualUnread) return row;
  return { ...row, manualUnread: false, fromRevision: 0, version: row.version + 1 };
}

/**
 * Reads through a revision. A stale one is no error: it changes nothing. The mark goes if the
 * command names the version in force, or none, and covers where it begins. Throws RefusedError.
 */
export function markRead<T extends Cursor>(
  row: T,
  head: Revision,
  revision: Revision,
  version?: Version,
): T {
  if (revision > head) throw new RefusedError("revision_in_future");
  const next = revision > row.readRevision ? { ...row, readRevision: revision } : row;
  const named = version === undefined || version === row.version;
  return named && revision >= row.fromRevision ? unmark(next) : next;
}

/** Marks as unread, by compare-and-set. It never touches the cursor. Throws RefusedError. */
export function markUnread<T extends Cursor>(
  row: T,
  head: Revision,
  from: Revision,
  version?: Version,
): T {
  if (from > head) throw new RefusedError("revision_in_future");
  if (version !== undefined && version !== row.version) throw new RefusedError("version_conflict");
  if (row.manualUnread && row.fromRevision === from) return row;
  return { ...row, manualUnread: true, fromRevision: from, version: row.version + 1 };
}
