import type { Person } from "../view/people.js";

/** How a count follows from facts, as the server derives it. */
export interface Explanation {
  readonly unread: number;
  readonly attention: number;
  readonly e: number;
  readonly base: number;
  readonly head: number;
  readonly removed: number;
  readonly own: number;
  readonly blocked: number;
  readonly direct: number;
  readonly everyone: number;
  readonly level: string;
  readonly manual: boolean;
  readonly state: string;
  readonly lsn: number;
  readonly messages: readonly string[];
}

/** A thread and the message that it hangs on. */
export interface ThreadPlace {
  readonly id: string;
  readonly name?: string;
  readonly parent: string;
  readonly rootMessage: string;
  /** Its newest revision: the replies that there were. */
  readonly contentRevision: number;
}

export interface TaskFacts {
  readonly assignee?: string;
  readonly status?: string;
  readonly title?: string;
}

export interface ActivityFact {
  readonly id: string;
  readonly activitySeq: number;
  readonly type: string;
  readonly actor: string;
  readonly createdAt: string;
}

export interface SessionFacts {
  readonly id: string;
  readonly active: boolean;
  readonly thinking: boolean;
  readonly pendingInput: boolean;
  readonly pendingPermission: boolean;
}

/** An inbox as it was opened, the newest last. */
export interface OpenedInbox {
  readonly snapshotId: string;
  readonly senders: readonly string[];
  readonly messages: readonly {
    readonly position: number;
    readonly sender: string;
    readonly scope?: string;
    readonly messageId?: string;
    readonly text?: string;
    readonly payload?: unknown;
  }[];
}

/** A request that was refused, in the server's words. */
export class ApiError extends Error {
  override name = "ApiError";
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

interface WireMember {
  readonly id: string;
  readonly kind: "human" | "agent";
  readonly displayName?: string;
  readonly avatar?: string;
}

const personOf = ({ id, kind, displayName, avatar }: WireMember): Person => ({
  id,
  kind,
  name: displayName || id,
  avatar: avatar ?? "",
});

/** What the app asks for besides unread, which is the SDK's. Everything rejects with ApiError. */
export class Api {
  workspace = "";
  member = "";
  readonly #base: string;
  readonly #token: () => string;

  constructor(base: string, token: () => string) {
    this.#base = base;
    this.#token = token;
  }

  /** Learns whose the token is. */
  async identify(): Promise<void> {
    const who = await this.#ask<{ workspace: string; member: string }>("GET", "/api/whoami");
    this.workspace = who.workspace;
    this.member = who.member;
  }

  /** Name and dot of the workspace that a token is of. The dot is null where it is withheld. */
  async workspaceOf(token: string): Promise<{ name: string; hasUnread: boolean | null }> {
    const path = "/api/v1/workspaces";
    const { workspaces } = await this.#ask<{
      workspaces: readonly { name: string; hasUnread?: boolean }[];
    }>("GET", path, undefined, token);
    const first = workspaces[0];
    return { name: first?.name ?? "", hasUnread: first?.hasUnread ?? null };
  }

  people(): Promise<readonly Person[]> {
    return this.#pages("/members?limit=500", (p: { members: readonly WireMember[] }) =>
      p.members.map(personOf),
    );
  }

  async membersOf(scope: string): Promise<readonly Person[]> {
    return this.#pages(`/scopes/${id(scope)}/members?limit=100`, (p: {
      members: readonly WireMember[];
    }) => p.members.map(personOf));
  }

  threadsOf(channel: string): Promise<readonly ThreadPlace[]> {
    const path = `/scopes?type=thread&parent=${id(channel)}&limit=200`;
    return this.#pages(path, (p: { scopes: readonly ThreadPlace[] }) => p.scopes);
  }

  /** Sends a message. The same opId sent again is the same message. */
  async post(
    scope: string,
    opId: string,
    text: string,
    named: { readonly mentions: readonly string[]; readonly everyone: boolean },
  ): Promise<void> {
    const path = scope.startsWith("session:")
      ? `/api/sessions/${id(scope.slice(8))}/messages`
      : this.#in(`/scopes/${id(scope)}/messages`);
    const more = scope.startsWith("session:")
      ? { kind: "prompt" }
      : { mentions: named.mentions, mentionsEveryone: named.everyone };
    await this.#ask("POST", path, { opId, payload: { text }, ...more });
  }

  explain(scope: string): Promise<Explanation> {
    return this.#ask("GET", this.#in(`/scopes/${id(scope)}/unread/explain`));
  }

  task(scope: string): Promise<TaskFacts> {
    return this.#ask("GET", this.#in(`/tasks/${id(scope)}`));
  }

  async activities(scope: string): Promise<readonly ActivityFact[]> {
    const path = this.#in(`/scopes/${id(scope)}/activities?limit=50`);
    return (await this.#ask<{ activities: readonly ActivityFact[] }>("GET", path)).activities;
  }

  /** Says that the activities of a task were seen through one of them, inclusive. */
  async sawActivities(scope: string, through: number): Promise<void> {
    const path = this.#in(`/scopes/${id(scope)}/read-state`);
    const { readState } = await this.#ask<{ readState: { version: number } }>("GET", path);
    const expectedVersion = readState.version;
    await this.#ask("PUT", path, { type: "read", activityReadSeq: through, expectedVersion });
  }

  async sessions(): Promise<readonly SessionFacts[]> {
    return (await this.#ask<{ sessions: readonly SessionFacts[] }>("GET", "/api/sessions"))
      .sessions;
  }

  /** The number on the bell. */
  async inboxCount(): Promise<number> {
    const path = this.#in(`/members/${id(this.member)}/inbox/badge`);
    return (await this.#ask<{ count: number }>("GET", path)).count;
  }

  openInbox(): Promise<OpenedInbox> {
    return this.#ask("POST", this.#in(`/members/${id(this.member)}/inbox:open`), {});
  }

  async acknowledge(snapshotId: string, opId: string): Promise<void> {
    const path = this.#in(`/members/${id(this.member)}/inbox/acks`);
    await this.#ask("POST", path, { opId, snapshotId });
  }

  #in(rest: string): string {
    return `/api/v1/workspaces/${id(this.workspace)}${rest}`;
  }

  async #pages<P, T>(path: string, take: (page: P) => readonly T[]): Promise<readonly T[]> {
    const all: T[] = [];
    for (let token = "", first = true; first || token; first = false) {
      const more = token ? `&pageToken=${id(token)}` : "";
      const page = await this.#ask<P & { next?: string }>("GET", this.#in(path) + more);
      all.push(...take(page));
      token = page.next ?? "";
    }
    return all;
  }

  async #ask<T>(method: string, path: string, body?: object, token = this.#token()): Promise<T> {
    const headers: Record<string, string> = { Authorization: `Bearer ${token}` };
    if (body) headers["Content-Type"] = "application/json";
    const text = body ? JSON.stringify(body) : null;
    const response = await fetch(this.#base + path, { method, headers, body: text });
    const said = await response.json().catch(() => ({})) as T & { detail?: string };
    if (response.ok) return said;
    throw new ApiError(said.detail ?? `the server answered ${response.status}`, response.status);
  }
}

const id = encodeURIComponent;
