import type { Answer } from "../core/operation.js";
import { stateOf } from "../core/state.js";
import type { Clock } from "./ports.js";
import { requestTimeout } from "../limits.js";

/** Gives a token to send. It is asked again whenever the server took the last one no more. */
export type GetToken = () => string | Promise<string>;

/** Whose the token is, as the server told. */
export interface Namespace {
  readonly workspace: string;
  readonly member: string;
}

/** Why a request came to nothing. */
export class RequestError extends Error {
  override name = "RequestError";

  constructor(
    message: string,
    /** That of HTTP, 0 where there was no answer. */
    readonly status = 0,
    /** The server's name of the refusal; empty where a machine on the way refused. */
    readonly code = "",
    /** Nothing has left: the server cannot know of it. */
    public unsent = false,
    /** Milliseconds that the server wants to be left alone. */
    readonly wait = 0,
  ) {
    super(message);
  }

  /** Another token is needed. */
  get credentials(): boolean {
    return this.status === 401 && this.code !== "";
  }
}

/** A machine on the way that wants a sign-in has no code, and says nothing of the token. */
function refusesToken({ status, body }: Reply): boolean {
  return status === 401 && !!(body as { code?: string } | undefined)?.code;
}

/** An answer with its body as JSON, undefined where it is something else. */
export interface Reply {
  readonly status: number;
  readonly body: unknown;
  readonly wait: number;
}

/**
 * Requests of one member to one server. A token is sent to be told whose it is, and with nothing
 * else before that; a token of somebody else is never used (SE-109).
 */
export class Transport {
  /** Known once a first token was taken; never another one then. */
  namespace: Namespace | undefined;
  #known = "";
  #refused = "";
  #asking: Promise<string> | undefined;

  readonly #base: string;
  readonly #getToken: GetToken;
  readonly #fetcher: typeof fetch;
  readonly #clock: Clock;
  readonly #closed: AbortSignal;

  constructor(
    base: string,
    getToken: GetToken,
    fetcher: typeof fetch,
    clock: Clock,
    closed: AbortSignal,
  ) {
    this.#base = base;
    this.#getToken = getToken;
    this.#fetcher = fetcher;
    this.#clock = clock;
    this.#closed = closed;
  }

  /** The token to use now. It rejects with an error that says `credentials` when there is none. */
  authorize(): Promise<string> {
    this.#asking ??= this.#identify()
      .catch((error: unknown) => {
        const why = asRequestError(error);
        why.unsent = true; // what it was wanted for
        throw why;
      })
      .finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  async #identify(): Promise<string> {
    const token = await this.#getToken();
    if (token && token === this.#known) return token;
    if (!token || token === this.#refused) {
      throw new RequestError("another token is needed", 401, "unauthenticated");
    }
    const reply = await this.#exchange(token, "GET", "/api/whoami");
    if (reply.status !== 200) throw this.#refusal(token, "/api/whoami", reply);
    const who = (reply.body ?? {}) as Partial<Namespace>;
    if (!who.workspace || !who.member) {
      throw new RequestError("the server does not say whose the token is");
    }
    const was = this.namespace;
    if (was && (was.workspace !== who.workspace || was.member !== who.member)) {
      throw new RequestError("the token is somebody else's", 0, "namespace");
    }
    this.namespace = { workspace: who.workspace, member: who.member };
    this.#known = token;
    return token;
  }

  /** The path of the namespace's workspace; call it only when that is known. */
  path(rest: string): string {
    return `/api/v1/workspaces/${encodeURIComponent(this.namespace?.workspace ?? "")}${rest}`;
  }

  /** Sends a request and returns whatever was answered. It rejects with RequestError. */
  async request(method: string, path: string, body?: unknown): Promise<Reply> {
    const token = await this.authorize();
    const reply = await this.#exchange(token, method, path, body);
    if (refusesToken(reply)) this.#refuse(token);
    return reply;
  }

  /** Sends a request that must succeed, and returns its body. It rejects with RequestError. */
  async send<T>(method: string, path: string, body?: unknown): Promise<T> {
    const reply = await this.request(method, path, body);
    if (reply.status < 200 || reply.status > 299) throw this.#refusal("", path, reply);
    return reply.body as T;
  }

  /** Opens a stream. It rejects with RequestError when there is none. */
  async stream(
    path: string,
    last: string,
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    const token = await this.authorize();
    const headers = { Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) };
    const response = await this.#call(token, "GET", path, undefined, headers, signal);
    if (response.status !== 200 || !response.body) {
      throw this.#refusal(token, path, await replyOf(response));
    }
    return response.body;
  }

  #refuse(token: string): void {
    this.#refused = token;
    if (this.#known === token) this.#known = "";
  }

  #refusal(token: string, path: string, reply: Reply): RequestError {
    if (token && refusesToken(reply)) this.#refuse(token);
    const { code, detail } = (reply.body ?? {}) as { code?: string; detail?: string };
    const text = `${path}: ${reply.status} ${code ?? ""} ${detail ?? ""}`.trim();
    return new RequestError(text, reply.status, code ?? "", false, reply.wait);
  }

  async #exchange(token: string, method: string, path: string, body?: unknown): Promise<Reply> {
    const ends = new AbortController();
    const end = () => ends.abort();
    const keep = this.#clock.after(requestTimeout, end);
    this.#closed.addEventListener("abort", end);
    try {
      return await replyOf(await this.#call(token, method, path, body, {}, ends.signal));
    } catch (error) {
      throw asRequestError(error);
    } finally {
      keep();
      this.#closed.removeEventListener("abort", end);
    }
  }

  #call(
    token: string,
    method: string,
    path: string,
    body: unknown,
    extra: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Response> {
    const headers: Record<string, string> = { Authorization: `Bearer ${token}`, ...extra };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const text = body === undefined ? null : JSON.stringify(body);
    const init: RequestInit = { method, headers, body: text, signal, cache: "no-store" };
    return this.#fetcher(this.#base + path, init);
  }
}

async function replyOf(response: Response): Promise<Reply> {
  const seconds = Number(response.headers.get("Retry-After"));
  const wait = seconds > 0 ? Math.min(seconds, 3600) * 1000 : 0;
  return { status: response.status, body: parse(await response.text()), wait };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // somebody else's page
  }
}

/** Any error as a RequestError: one that is none is a connection that failed. */
export function asRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  return new RequestError(error instanceof Error ? error.message : String(error));
}

/** Reads an answer to an operation. */
export function answerOf(reply: Reply): Answer {
  const code = (reply.body as { code?: unknown } | undefined)?.code;
  const answer = { status: reply.status, state: stateOf(reply.body) };
  return typeof code === "string" ? { ...answer, code } : answer;
}
