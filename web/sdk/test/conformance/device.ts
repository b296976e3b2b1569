import {
  type Change,
  type Message,
  type Operation,
  type Loss,
  type Page,
  type Revision,
  type State,
  type View,
  Look,
  Outbox,
  RefusedError,
  Window,
  isEmpty,
  isUnread,
  newRead,
  newUnread,
  nothingSaid,
  merge,
  replacedCode,
  stateOf,
  verdictOf,
} from "../../src/core/index.js";

/** One step of a client case; README.md of the cases has the table. */
export interface ClientStep {
  readonly do: string;
  readonly session?: string;
  readonly said?: { readonly active?: boolean; readonly thinking?: boolean };
  readonly op?: string;
  readonly as?: string;
  readonly note?: string;
  readonly page?: string;
  readonly after?: number;
  readonly answer?: unknown;
  readonly status?: number;
  readonly unsent?: boolean;
  readonly message?: { readonly op: string; readonly session: string; readonly message: Message };
  readonly by?: string;
  readonly works?: boolean;
  readonly at?: number;
  readonly visible?: boolean;
  readonly foreground?: boolean;
  readonly loaded?: boolean;
  readonly tailInView?: boolean;
  readonly steps?: readonly ClientStep[];
  readonly expect?: Record<string, unknown>;
}

interface Pane {
  readonly window: Window;
  readonly look: Look;
}

interface Note {
  readonly views: Map<string, View>;
  readonly pane?: Pane;
  readonly epoch: number;
  readonly asked: number;
  readonly rendered: Revision;
}

class Unsaved extends Error {}

/** A client without a network, a disk or a clock: what it decides, and what is written. */
export class Device {
  private outbox = new Outbox();
  private written: readonly Operation[] = [];
  private broken = false;
  private lost: Loss[] = [];
  private holds: "" | "later" | "token" = "";
  private now = 0;
  private readonly said = new Map<string, State & { active: boolean; thinking: boolean }>();
  private readonly panes = new Map<string, Pane>();
  private readonly notes = new Map<string, Note>();

  /** Lets a step happen and tells how it is then. */
  do(s: ClientStep): Record<string, unknown> {
    const out: Record<string, unknown> = {};
    try {
      this.act(s, out);
    } catch (error) {
      if (error instanceof Unsaved) out["error"] = "unsaved";
      else if (error instanceof RefusedError && error.code === "stale") out["error"] = "stale";
      else throw error;
    }
    return { ...out, ...this.describe() };
  }

  private act(s: ClientStep, out: Record<string, unknown>): void {
    switch (s.do) {
      case "hear":
        return this.hear(s.session!, s.said);
      case "open": {
        const window = new Window(s.session!);
        this.panes.set(s.session!, { window, look: new Look(window) });
        return;
      }
      case "close":
        this.panes.delete(s.session!);
        return;
      case "ask":
      case "render":
        this.notes.set(s.as!, this.here(s.session!));
        return;
      case "see": {
        const views = new Map([...this.said.keys()].map((id) => [id, this.view(id)]));
        this.notes.set(s.as!, { views, epoch: 0, asked: 0, rendered: 0 });
        return;
      }
      case "page":
        return this.page(s);
      case "message":
        return this.message(s.message!);
      case "interrupted":
        for (const { window } of this.panes.values()) window.interrupted();
        return;
      case "replaced":
        return this.replaced(s.session!, s.by!);
      case "look":
        return this.look(s, out);
      case "markRead":
      case "markUnread": {
        const seen = s.note
          ? this.notes.get(s.note)!.views.get(s.session!)!
          : this.view(s.session!);
        const op =
          s.do === "markRead"
            ? newRead(s.op!, seen, seen.contentRevision, this.now)
            : newUnread(s.op!, seen, 0, this.now);
        out["op"] = this.add(op, seen.base);
        return;
      }
      case "send":
        return this.send(out);
      case "answer":
        return this.answer(s);
      case "wait":
      case "foreground":
      case "token":
        if ((s.do === "token") === (this.holds === "token")) this.holds = "";
        return;
      case "restart":
        this.outbox = new Outbox(this.written);
        this.holds = "";
        this.broken = false;
        for (const map of [this.said, this.panes, this.notes]) map.clear();
        return;
      case "disk":
        this.broken = !s.works;
        return;
      case "clock":
        this.now = s.at!;
        return this.commit(this.outbox.expire(this.now));
      default:
        throw new Error(`no client does ${s.do}`);
    }
  }

  private view(session: string): View {
    return this.outbox.view(session, this.said.get(session) ?? nothingSaid);
  }

  private commit(change: Change): void {
    if (isEmpty(change)) return;
    if (this.broken) throw new Unsaved();
    this.outbox.apply(change);
    this.written = JSON.parse(JSON.stringify(this.outbox.operations)) as Operation[];
    this.lost.push(...change.lost);
  }

  private add(op: Operation, base: number): string {
    const { change, id } = this.outbox.add(op, base);
    this.commit(change);
    return id;
  }

  private hear(session: string, said: ClientStep["said"]): void {
    const before = this.said.get(session) ?? nothingSaid;
    const { active = false, thinking = false } = said!;
    const state = stateOf(said);
    this.said.set(session, { ...(state ? merge(before, state) : before), active, thinking });
  }

  private here(session: string): Note {
    const pane = this.panes.get(session)!;
    const { epoch, asked, through } = pane.window;
    return { views: new Map(), pane, epoch, asked, rendered: through };
  }

  private noted(s: ClientStep): Note {
    return s.note ? this.notes.get(s.note)! : this.here(s.session!);
  }

  private page(s: ClientStep): void {
    const { pane, epoch, asked } = this.noted(s);
    const { window, look } = pane!;
    if (window.epoch !== epoch) return; // it was asked for when the window was of another session
    const { messages, page } = s.answer as { messages: Message[]; page: Omit<Page, "messages"> };
    const p = { messages, ...page };
    if (s.page === "latest") {
      if (window.latest(asked, p)) look.opened(this.view(window.scope));
    } else if (s.page === "before") window.before(p);
    else window.catchUp(asked, s.after ?? 0, p);
  }

  private message({ op, session, message }: NonNullable<ClientStep["message"]>): void {
    const window = this.panes.get(session)?.window;
    if (op === "added") window?.added(message);
    else if (op === "edited") window?.edited(message);
    else window?.removed(message.id);
  }

  private replaced(session: string, by: string): void {
    const pane = this.panes.get(session);
    if (pane) {
      pane.window.replaced(by);
      this.panes.delete(session);
      this.panes.set(by, pane);
    }
    this.said.delete(session);
    this.commit(this.outbox.supersede(session));
  }

  private look(s: ClientStep, out: Record<string, unknown>): void {
    const { visible = true, foreground = true, loaded = true, tailInView = true } = s;
    const { pane, epoch, rendered: through } = this.noted(s);
    const { window, look } = pane!;
    const o = { visible, foreground, loaded, tailInView, epoch, through };
    out["reading"] = null;
    const revision = look.reads(o, this.view(window.scope));
    if (revision === undefined) return;
    const { op, base } = look.operation(s.op!, revision, this.now);
    out["op"] = this.add(op, base);
    look.acknowledged(revision);
    out["reading"] = revision;
  }

  private send(out: Record<string, unknown>): void {
    out["request"] = null;
    const op = this.outbox.next(() => this.holds !== "");
    if (!op) return;
    try {
      this.commit(this.outbox.begin(op.id));
    } catch (error) {
      this.outbox.settle(op.id, { status: 0, unsent: true });
      throw error;
    }
    const { kind: type, expectedVersion, revision: readRevision } = op;
    const path = `/api/sessions/${op.scope}/read-state`;
    const body = { type, expectedVersion, ...(type === "read" ? { readRevision } : {}) };
    out["request"] = { op: op.id, method: "PUT", path, body };
  }

  private answer(s: ClientStep): void {
    const body = typeof s.answer === "object" ? (s.answer as Record<string, unknown>) : {};
    const state = stateOf(s.answer);
    const code = body?.["code"] as string | undefined;
    const a = {
      status: s.status ?? 0,
      state,
      unsent: s.unsent ?? false,
      ...(code ? { code } : {}),
    };
    const op = this.outbox.operations.find((x) => x.id === s.op);
    const session = op?.scope ?? s.session ?? "";
    this.commit(this.outbox.settle(s.op!, a));
    if (state && session) {
      const t = this.said.get(session) ?? { ...nothingSaid, active: false, thinking: false };
      this.said.set(session, { ...t, ...merge(t, state) });
    }
    const holds = { accepted: "", rejected: "", credentials: "token", postponed: "later" } as const;
    this.holds = holds[verdictOf(a)];
    const by = body?.["replacedBy"] as string | undefined;
    if (code === replacedCode && by) this.replaced(session, by);
  }

  private describe(): Record<string, unknown> {
    const ops = this.outbox.operations;
    const ids = new Set([...this.said.keys(), ...ops.map((op) => op.scope)]);
    const sessions = Object.fromEntries(
      [...ids].map((id) => {
        const { active = false, thinking = false } = this.said.get(id) ?? {};
        const view = this.view(id);
        return [id, { ...view, unread: isUnread(view, active, thinking) }];
      }),
    );
    const outbox = ops.map(({ id, scope, kind, expectedVersion, revision }) => ({
      op: id,
      session: scope,
      type: kind,
      expectedVersion,
      ...(kind === "read" ? { readRevision: revision } : {}),
    }));
    const lost = this.lost.map(({ operation, reason }) => ({ op: operation.id, reason }));
    const windows = Object.fromEntries(
      [...this.panes].map(([id, { window: w }]) => [
        id,
        {
          messages: w.messages.map((m) => m.id),
          earlier: w.earlier,
          receipt: w.synced ? w.through : null,
          needs: !w.synced ? "latest" : w.needsAfter === undefined ? "nothing" : "after",
          ...(w.needsAfter === undefined ? {} : { after: w.needsAfter }),
        },
      ]),
    );
    return { sessions, outbox, lost, windows };
  }
}
