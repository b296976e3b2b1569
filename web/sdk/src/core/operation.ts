import type { Revision, State, Version } from "./state.js";

/**
 * A read or a manual mark that the server has not decided on. It names exactly what was observed.
 */
export interface Operation {
  readonly id: string;
  /** The scope or session that it is about. */
  readonly scope: string;
  readonly kind: "read" | "unread";
  /** The revision that was observed, inclusive; of a mark, where it begins, 0 for nowhere. */
  readonly revision: Revision;
  /** The version that was observed, or that the operation `after` brings about. */
  readonly expectedVersion: Version;
  readonly after: string;
  /** The mark was to change when the operation was made. */
  readonly flips: boolean;
  /** Sendings of a mark that may have reached the server; 2 stands for more. Of reads 0. */
  readonly attempts: number;
  /** Milliseconds since 1970, for giving up only. */
  readonly createdAt: number;
}

/** What came of sending an operation. */
export interface Answer {
  /** That of HTTP; 0 when there was no answer. */
  readonly status: number;
  /** The server's name of a refusal. A refusal without one was made by a machine on the way. */
  readonly code?: string;
  readonly state?: State | undefined;
  /** The operation cannot have reached the server. */
  readonly unsent?: boolean;
}

export type Verdict = "accepted" | "rejected" | "postponed" | "credentials";

/** The refusal of a session id that leads to another session. */
export const replacedCode = "scope_replaced";
export const conflictCode = "version_conflict";

const final = [400, 403, 404, 405, 409, 413, 415];

/**
 * Reads an answer. Only the server's own refusals are final, or say something of the token: a page
 * of a proxy does not.
 */
export function verdictOf(a: Answer): Verdict {
  if (a.status === 200 && a.state) return "accepted";
  if (!a.code) return "postponed";
  if (a.status === 401) return "credentials";
  return final.includes(a.status) ? "rejected" : "postponed";
}

/** Whether the operation may have been carried out though the answer decides nothing. */
export function isUncertain(a: Answer): boolean {
  return !a.unsent && a.status !== 401 && a.status !== 429;
}

/** Whether the state is what the operation makes of the version that it expects. */
export function isIntended(op: Operation, s: State): boolean {
  return (
    s.version === op.expectedVersion + 1 &&
    s.manualUnread === (op.kind === "unread") &&
    s.fromRevision === (op.kind === "unread" ? op.revision : 0)
  );
}

/** Why an operation was lost. */
export type Reason = "refused" | "dependent" | "superseded" | "too_old";

/** An operation that will never be done. */
export interface Loss {
  readonly operation: Operation;
  readonly reason: Reason;
  readonly answer?: Answer;
}

/** What happens to an outbox in one step. It is written as one, then applied. */
export interface Change {
  /** New ones at the end, known ones where they are. */
  readonly put: readonly Operation[];
  readonly remove: readonly string[];
  /** They are in `remove`, too. */
  readonly lost: readonly Loss[];
  /** Those in `remove` that came out as they were meant to. */
  readonly done: readonly string[];
}

export const noChange: Change = Object.freeze({ put: [], remove: [], lost: [], done: [] });

export function isEmpty(c: Change): boolean {
  return c.put.length + c.remove.length === 0;
}

/**
 * Why something is not done: `stale`, what was seen does not hold any more; `full`, too much waits;
 * `revision_in_future`, it is not there yet; `version_conflict`, another version is in force.
 */
export class RefusedError extends Error {
  override name = "RefusedError";

  constructor(readonly code: "stale" | "full" | "revision_in_future" | "version_conflict") {
    super(code);
  }
}
