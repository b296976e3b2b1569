import { Ledger, type Log, codeOf, headOf } from "../conformance/ledger.js";
import type { ScopeType } from "../../src/core/index.js";

/** A request as the server sees it. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly body: Record<string, unknown> | undefined;
  readonly token: string;
  readonly last: string;
}

interface OpenStream {
  readonly member: string;
  readonly scopes: readonly string[];
  send(event: string, data: unknown, id?: number): void;
  end(): void;
}

interface MessageOptions {
  readonly mentions?: readonly string[];
  readonly principal?: string;
  readonly everyone?: boolean;
  readonly readable?: boolean;
}

/**
 * A hub in memory, by the rules of `core`, that is reached through its fetch. A token is a member's
 * name and whatever follows a dot. Tests take the network down, hold requests back, and break
 * streams.
 */
export class Server {
  readonly ledger = new Ledger();
  readonly seen: Seen[] = [];
  lsn = 1;
  workspace = "acme";
  /** There is a network. */
  online = true;
  /** Answers instead of the server; undefined lets the server answer. */
  answer: (request: Seen) => Response | Promise<Response> | undefined = () => undefined;
  /** How many rows a page of the list has. */
  pageSize = 100;
  /** Streams can go on where they ended. */
  resumes = true;
  private readonly streams = new Set<OpenStream>();
  private readonly changedAt = new Map<string, number>();
  private readonly goneAt = new Map<string, number>();

  /** Makes a scope that members have joined. */
  scope(id: string, type: ScopeType, members: readonly string[], parent?: string): Log {
    const more = parent === undefined ? {} : { parent: this.ledger.open(parent) };
    const s = this.ledger.newLog(id, type, more);
    for (const m of members) this.ledger.join(s, m, undefined, 0);
    this.told(s);
    return s;
  }

  post(scope: string, author: string, options: MessageOptions = {}): string {
    const s = this.ledger.open(scope);
    const { mentions = [], principal, everyone = false, readable = true } = options;
    const draft = {
      message: this.ledger.nextMessage(),
      author,
      mentions,
      mentionsEveryone: everyone,
      expires: 0,
      ...(principal ? { notifyPrincipal: principal } : {}),
    };
    const e = this.ledger.append(s, draft, readable);
    this.told(s);
    this.tellMessage("added", s, e.seq);
    return e.id;
  }

  remove(scope: string, id: string): void {
    const s = this.ledger.open(scope);
    const e = s.entries.find((x) => x.id === id)!;
    this.ledger.drop(s, e);
    this.told(s);
    this.tellMessage("removed", s, e.seq);
  }

  /** A read or a mark by another device of the member. */
  read(scope: string, member: string, revision: number, version?: number): void {
    const s = this.ledger.open(scope);
    this.ledger.read(s, member, revision, version);
    this.told(s);
  }

  mark(scope: string, member: string): void {
    const s = this.ledger.open(scope);
    this.ledger.mark(s, member, 0, undefined);
    this.told(s);
  }

  level(scope: string, member: string, level: "all" | "mentions" | "none"): void {
    const s = this.ledger.open(scope);
    this.ledger.change(s, member, { ...s.rows.get(member)!, level });
    this.told(s);
  }

  leave(scope: string, member: string): void {
    const s = this.ledger.open(scope);
    this.ledger.change(s, member, { ...s.rows.get(member)!, joined: false });
    this.told(s);
  }

  rejoin(scope: string, member: string): void {
    const s = this.ledger.open(scope);
    this.ledger.join(s, member, undefined, 0);
    this.told(s);
  }

  /** Breaks all streams. */
  cut(): void {
    for (const stream of [...this.streams]) stream.end();
  }

  get open(): number {
    return this.streams.size;
  }

  /** Requests by method and the end of the path. */
  requests(method: string, end: string): Seen[] {
    return this.seen.filter((r) => r.method === method && r.path.split("?")[0]!.endsWith(end));
  }

  readonly fetch: typeof fetch = async (input, init = {}) => {
    const url = new URL(String(input));
    const headers = new Headers(init.headers);
    const request: Seen = {
      method: init.method ?? "GET",
      path: url.pathname + url.search,
      body: init.body ? (JSON.parse(String(init.body)) as Record<string, unknown>) : undefined,
      token: (headers.get("Authorization") ?? "").replace("Bearer ", ""),
      last: headers.get("Last-Event-ID") ?? "",
    };
    if (!this.online || init.signal?.aborted) throw new TypeError("there is no network");
    this.seen.push(request);
    const instead = await this.answer(request);
    if (init.signal?.aborted) throw new TypeError("the request was given up");
    if (!this.online) throw new TypeError("the connection broke");
    return instead ?? this.serve(request, url, init.signal ?? undefined);
  };

  private serve(r: Seen, url: URL, signal: AbortSignal | undefined): Response {
    const member = r.token.split(".")[0]!;
    if (member === "") return problem(401, "unauthenticated");
    if (url.pathname === "/api/whoami") return json({ workspace: this.workspace, member });
    const [, rest = ""] = url.pathname.split(`/api/v1/workspaces/${this.workspace}`);
    const parts = rest.split("/").slice(1).map(decodeURIComponent);
    const [kind = "", scope = "", what = "", more = ""] = parts;
    if (kind === "events") return this.stream(r, member, url, signal);
    if (kind === "unread")
      return json(this.page(member, Number(url.searchParams.get("pageToken"))));
    if (kind === "members" && what === "settings") return json({ badge: "messages" });
    if (kind === "read-all") {
      const items = r.body!["scopes"] as (Record<string, unknown> & { scope: string })[];
      const results = items.map((item) =>
        this.readState(item.scope, member, { type: "read", ...item }),
      );
      return json({
        results: results.map(({ body, status }) => (status < 400 ? body : { error: body })),
      });
    }
    const s = this.ledger.logs.get(scope);
    if (s && what === "follow") {
      this.ledger.follow(s, member, r.body!["following"] === true);
      this.told(s);
      return json({});
    }
    if (!s || !this.ledger.isPresent(s, member)) return problem(404, "not_found");
    if (what === "read-state") {
      const { status, body } = this.readState(scope, member, r.body!);
      return json(body, status);
    }
    if (what === "messages") return json(this.messages(s, url.searchParams));
    if (what === "unread" && more === "first") return json(this.first(s, member));
    if (what === "members") {
      this.level(scope, member, r.body!["notification"] as "all");
      return json({});
    }
    return problem(404, "not_found");
  }

  private readState(scope: string, member: string, b: Record<string, unknown>) {
    const s = this.ledger.logs.get(scope);
    const refused = (status: number, code: string) => ({
      status,
      body: { status, code } as object,
    });
    if (!s || !this.ledger.isPresent(s, member)) return refused(404, "not_found");
    const version = b["expectedVersion"] as number;
    let code = "";
    let changed = false;
    try {
      changed =
        b["type"] === "read"
          ? this.ledger.read(s, member, b["readRevision"] as number, version)
          : this.ledger.mark(s, member, (b["fromRevision"] as number | undefined) ?? 0, version);
    } catch (error) {
      code = codeOf(error);
      if (code !== "version_conflict") return refused(400, code);
    }
    if (changed) this.told(s);
    const { readState, contentRevision, ...counts } = this.row(s, member);
    const status = code ? "conflict" : changed ? "applied" : "unchanged";
    const body = { status, contentRevision, readState, counts, lsn: this.lsn };
    return { status: code ? 409 : 200, body: code ? { ...body, code } : body };
  }

  private row(s: Log, member: string) {
    const { row, level, unread, attention, activity, shown, shownUnread } = this.ledger.serve(
      s,
      member,
    );
    const latest = s.entries.findLast((e) => e.live);
    return {
      type: s.type,
      name: s.id,
      ...(s.parent ? { parent: s.parent.id } : {}),
      notification: level,
      archived: s.archived,
      ...{ unread, attention, activity, shown, shownUnread },
      manualUnread: row.manualUnread,
      state: "ready",
      contentRevision: headOf(s),
      ...(row.follow === "explicit" ? { follow: "following" } : {}),
      ...(row.follow === "stopped" ? { follow: "stopped" } : {}),
      ...(latest ? { latestMessage: { id: latest.id, at: "2026-01-01T00:00:00Z" } } : {}),
      readState: {
        readRevision: row.readRevision,
        manualUnread: row.manualUnread,
        version: row.version,
        ...(row.fromRevision ? { fromRevision: row.fromRevision } : {}),
      },
    };
  }

  private scopesOf(member: string): Log[] {
    return [...this.ledger.logs.values()].filter((s) => this.ledger.isPresent(s, member));
  }

  private badge(member: string) {
    const sum = this.ledger.badge(member);
    return { ...sum, display: sum.messages };
  }

  private page(member: string, from: number) {
    const all = this.scopesOf(member);
    const end = from + this.pageSize;
    const badge = this.badge(member);
    return {
      hasUnread: badge.conversations > 0,
      state: "ready",
      badge,
      complete: end >= all.length,
      lsn: this.lsn,
      ...(end < all.length ? { next: String(end) } : {}),
      scopes: Object.fromEntries(all.slice(from, end).map((s) => [s.id, this.row(s, member)])),
    };
  }

  private messages(s: Log, query: URLSearchParams) {
    const limit = Number(query.get("limit") ?? 50);
    const [after, before] = [query.get("after"), query.get("before")];
    const live = s.entries.filter((e) => e.live && !e.trimmed);
    const wire = (list: typeof live) => list.map((e) => this.message(s, e.seq));
    if (after !== null) {
      const news = live.filter((e) => e.seq > Number(after));
      const hasMore = news.length > limit;
      const receipt = hasMore ? {} : { readThroughRevision: headOf(s) };
      return { messages: wire(news.slice(0, limit)), page: { hasMore, ...receipt } };
    }
    const older = live.filter((e) => before === null || e.seq < Number(before));
    const receipt = before === null ? { readThroughRevision: headOf(s) } : {};
    return {
      messages: wire(older.slice(-limit)),
      page: { hasMore: older.length > limit, ...receipt },
    };
  }

  private message(s: Log, seq: number) {
    const { id, contentRevision, author, notifyPrincipal, mentions, mentionsEveryone } =
      s.entries[seq - 1]!;
    return { id, seq, contentRevision, author, notifyPrincipal, mentions, mentionsEveryone };
  }

  private first(s: Log, member: string) {
    const { readRevision } = s.rows.get(member)!;
    const e = s.entries.find(
      (x) => x.live && (x.contentRevision ?? 0) > readRevision && x.author !== member,
    );
    return e ? { firstUnread: { messageId: e.id } } : {};
  }

  private stream(r: Seen, member: string, url: URL, signal: AbortSignal | undefined): Response {
    const scopes = (url.searchParams.get("messages") ?? "").split(",").filter((s) => s !== "");
    const encoder = new TextEncoder();
    let out: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => void (out = controller),
      cancel: () => void this.streams.delete(stream),
    });
    const stream: OpenStream = {
      member,
      scopes,
      send: (event, data, id) => {
        const head = id === undefined ? "" : `id: ${id}\n`;
        out.enqueue(encoder.encode(`${head}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`));
      },
      end: () => {
        if (this.streams.delete(stream)) out.close();
      },
    };
    this.streams.add(stream);
    signal?.addEventListener("abort", () => stream.end());
    const resumed = this.resumes && r.last !== "";
    stream.send("hello", { connection: "c", heartbeatSeconds: 20, resumed });
    if (resumed) this.replay(stream, Number(r.last));
    else this.snapshot(stream);
    return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  }

  private snapshot(stream: OpenStream): void {
    for (let from = 0; ; from += this.pageSize) {
      const page = this.page(stream.member, from);
      stream.send("snapshot", page, page.complete ? this.lsn : undefined);
      if (page.complete) return;
    }
  }

  private replay(stream: OpenStream, after: number): void {
    for (const s of this.ledger.logs.values()) {
      if ((this.changedAt.get(s.id) ?? 0) > after) this.tell(stream, s);
    }
  }

  /** A scope is another one: every stream of a member who has it is told. */
  private told(s: Log): void {
    this.lsn++;
    this.changedAt.set(s.id, this.lsn);
    for (const stream of this.streams) this.tell(stream, s);
  }

  private tell(stream: OpenStream, s: Log): void {
    const { member } = stream;
    const rest = { scope: s.id, badge: this.badge(member), lsn: this.lsn };
    if (this.ledger.isPresent(s, member)) {
      this.goneAt.delete(`${member} ${s.id}`);
      stream.send("unread", { ...rest, row: this.row(s, member) }, this.lsn);
    } else if (s.rows.has(member)) {
      stream.send("unread", { ...rest, removed: true }, this.lsn);
    }
  }

  private tellMessage(op: string, s: Log, seq: number): void {
    for (const stream of this.streams) {
      if (!stream.scopes.includes(s.id)) continue;
      stream.send("message", { op, scope: s.id, message: this.message(s, seq) });
    }
  }
}

export function json(body: object, status = 200): Response {
  return new Response(JSON.stringify(body), { status });
}

export function problem(status: number, code: string): Response {
  return json({ type: "about:blank", status, code, detail: code }, status);
}
