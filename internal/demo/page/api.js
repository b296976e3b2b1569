// The public API, as one signed-in member uses it.

export class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `HTTP ${status}`);
    this.status = status;
    this.code = problem.code;
  }
}

export class Api {
  constructor({ token, fetch = window.fetch.bind(window) }) {
    const claims = JSON.parse(decode(token.split(".")[1])); // throws on a token that is not whole
    this.token = token;
    this.member = claims.sub;
    this.base = `/api/v1/workspaces/${encodeURIComponent(claims.ws)}`;
    this.fetch = fetch;
  }

  scopePath(id, rest) {
    return `/scopes/${encodeURIComponent(id)}/${rest}`;
  }

  async request(method, path, body) {
    const headers = { Authorization: `Bearer ${this.token}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const answer = await this.fetch(this.base + path, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body),
    }).catch(() => { throw new ApiError(0, { detail: "the server does not answer" }); });
    const value = await answer.json().catch(() => ({}));
    // A conflict of read states comes in the shape of a read state: the state that is in force.
    if (!answer.ok && value.status !== "conflict") throw new ApiError(answer.status, value);
    return value;
  }

  async members() {
    const all = new Map();
    for (let token = ""; ;) {
      const page = await this.request("GET", `/members?limit=500&pageToken=${encodeURIComponent(token)}`);
      for (const m of page.members) all.set(m.id, m.displayName || m.id);
      if (!page.next) return all;
      token = page.next;
    }
  }

  messages(scope, before) {
    const from = before ? `&before=${before}` : "";
    return this.request("GET", this.scopePath(scope, `messages?limit=50${from}`));
  }

  // mine is what this member chose for a scope, with when it ends; undefined for no membership.
  async mine(scope) {
    const roster = await this.request("GET", this.scopePath(scope, "members?limit=500"));
    return roster.members.find((m) => m.id === this.member);
  }

  // root finds the message that a thread hangs on in the thread's channel; null if it is gone.
  async root(thread) {
    const { parent, rootMessage } = await this.request("GET", `/scopes/${encodeURIComponent(thread)}`);
    for (let before = "", more = true; more && rootMessage;) {
      const { messages, page } = await this.request("GET", this.scopePath(parent, `messages?limit=500${before}`));
      const found = messages.find((m) => m.id === rootMessage);
      if (found) return found;
      more = page.hasMore;
      before = `&before=${messages[0]?.seq}`;
    }
    return null;
  }

  // task is what only a task has: its facts, who is in it and who watches it, and its timeline.
  async task(scope) {
    const [facts, roster, timeline] = await Promise.all([
      this.request("GET", `/tasks/${encodeURIComponent(scope)}`),
      this.request("GET", this.scopePath(scope, "members?limit=500")),
      this.request("GET", this.scopePath(scope, "activities?kind=timeline&limit=50")),
    ]);
    return { facts, roster, timeline };
  }

  explain(scope) {
    return this.request("GET", this.scopePath(scope, "unread/explain"));
  }

  read(scope, readRevision, expectedVersion, activityReadSeq) {
    return this.request("PUT", this.scopePath(scope, "read-state"), { type: "read", readRevision, expectedVersion, activityReadSeq });
  }

  markUnread(scope, expectedVersion, fromMessage) {
    return this.request("PUT", this.scopePath(scope, "read-state"), { type: "unread", expectedVersion, fromMessage });
  }

  level(scope, notification, until) {
    return this.request("PUT", this.scopePath(scope, `members/${encodeURIComponent(this.member)}`), { notification, until });
  }

  follow(scope, following) {
    return this.request("PUT", this.scopePath(scope, "follow"), { following });
  }

  inboxPath(rest) { return `/members/${encodeURIComponent(this.member)}/inbox${rest}`; }

  inboxBadge() { return this.request("GET", this.inboxPath("/badge")); }

  openInbox() { return this.request("POST", this.inboxPath(":open"), {}); }

  acknowledge(snapshotId) {
    return this.request("POST", this.inboxPath("/acks"), { opId: crypto.randomUUID(), snapshotId });
  }

  post(scope, message) {
    return this.request("POST", this.scopePath(scope, "messages"), message);
  }
}

function decode(part) {
  const bytes = atob(part.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
}
