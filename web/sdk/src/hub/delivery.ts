import { type Answer, type Operation, verdictOf } from "../core/operation.js";
import { scopePath } from "./paths.js";
import { type Reply, type Transport, RequestError, answerOf, asRequestError } from "./transport.js";

/** What came of sending one operation. */
export interface Outcome {
  readonly operation: Operation;
  readonly answer: Answer;
  /** What the server said, to be shown. */
  readonly body?: unknown;
  /** Why nothing was decided. */
  readonly why?: RequestError;
}

/** Sends one operation. */
export async function sendOne(transport: Transport, op: Operation): Promise<Outcome> {
  try {
    const path = scopePath(transport, op.scope, "/read-state");
    return outcomeOf(op, await transport.request("PUT", path, bodyOf(op)));
  } catch (error) {
    return failureOf(op, asRequestError(error));
  }
}

/**
 * Sends reads of several scopes at once. Refused says that the server refused the whole, which says
 * nothing of each: they have to be sent one by one.
 */
export async function sendReads(
  transport: Transport,
  ops: readonly Operation[],
): Promise<{ outcomes: readonly Outcome[]; refused: boolean }> {
  const scopes = ops.map(({ scope, revision, expectedVersion }) => ({
    scope,
    readRevision: revision,
    expectedVersion,
  }));
  try {
    const reply = await transport.request("POST", transport.path("/read-all"), { scopes });
    const { results } = (reply.body ?? {}) as { results?: readonly unknown[] };
    if (reply.status === 200 && results?.length === ops.length) {
      return { outcomes: ops.map((op, i) => itemOf(op, results[i])), refused: false };
    }
    const whole = outcomeOf(ops[0]!, reply);
    const refused = verdictOf(whole.answer) === "rejected";
    const why = whole.why ?? new RequestError(`read-all: ${reply.status}`, reply.status);
    return { outcomes: ops.map((op) => failureOf(op, why)), refused };
  } catch (error) {
    const why = asRequestError(error);
    return { outcomes: ops.map((op) => failureOf(op, why)), refused: false };
  }
}

function itemOf(op: Operation, item: unknown): Outcome {
  const { error } = (item ?? {}) as { error?: { status?: number } };
  return outcomeOf(op, {
    status: error ? (error.status ?? 500) : 200,
    body: error ?? item,
    wait: 0,
  });
}

function outcomeOf(operation: Operation, reply: Reply): Outcome {
  const answer = answerOf(reply);
  const verdict = verdictOf(answer);
  const outcome = { operation, answer, body: reply.body };
  if (verdict === "accepted" || verdict === "rejected") return outcome;
  const text = `the server answered ${reply.status} ${answer.code ?? ""}`.trim();
  return { ...outcome, why: new RequestError(text, reply.status, answer.code, false, reply.wait) };
}

function failureOf(operation: Operation, why: RequestError): Outcome {
  return { operation, answer: { status: 0, unsent: why.unsent }, why };
}

function bodyOf(op: Operation): object {
  const { kind: type, expectedVersion, revision } = op;
  if (type === "read") return { type, readRevision: revision, expectedVersion };
  return revision > 0
    ? { type, expectedVersion, fromRevision: revision }
    : { type, expectedVersion };
}
