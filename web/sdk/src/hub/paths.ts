import type { Transport } from "./transport.js";

/** What the ids of sessions begin with where they stand among other scopes. */
const sessionPrefix = "session:";

export function isSession(scope: string): boolean {
  return scope.startsWith(sessionPrefix);
}

/** The path of a scope or a session, with the rest below it. The namespace has to be known. */
export function scopePath(transport: Transport, scope: string, rest: string): string {
  return isSession(scope)
    ? `/api/sessions/${encodeURIComponent(scope.slice(sessionPrefix.length))}${rest}`
    : transport.path(`/scopes/${encodeURIComponent(scope)}${rest}`);
}
