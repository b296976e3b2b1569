import { Api } from "./api.js";
import { Bell } from "./bell.js";
import { Store } from "./store.js";
import { Stream } from "./stream.js";
import { Task, drawWhyTask } from "./task.js";
import { $, drawBadge, drawLevel, drawMessages, drawScopes, drawWhy, level } from "./view.js";

const MEMORY = "tidemark-demo";

// The token comes in the fragment, stays in this tab and leaves the address at once.
function signIn() {
  const link = new URLSearchParams(location.hash.slice(1));
  if (link.get("token")) {
    sessionStorage.setItem(MEMORY, JSON.stringify({ token: link.get("token"), device: link.get("device") ?? "" }));
    history.replaceState(null, "", location.pathname);
  }
  return JSON.parse(sessionStorage.getItem(MEMORY) ?? "null");
}

// notice says why there is nothing to see.
function notice(text, state = "not signed in") {
  $("live").textContent = state;
  $("live").classList.remove("on");
  $("notice").textContent = text;
  $("notice").hidden = false;
  $("hint").hidden = true;
  $("main").hidden = true;
}

class App {
  constructor({ token, device }) {
    this.api = new Api({ token });
    this.store = new Store();
    this.names = new Map();
    this.current = "";
    this.why = null;
    this.opening = 0;
    this.choosing = false; // a level, in a list that is open
    this.over = false;
    this.stream = new Stream(this.api, {
      on: (event, data) => this.on(event, data),
      state: (s, reason) => this.connection(s, reason),
    });
    this.bell = new Bell(this.api, {
      name: (id) => this.name(id), go: (scope) => this.open(scope),
    });
    $("device").textContent = device;
    if (matchMedia("(max-width: 44rem)").matches) this.toggleWhy(); // there is little room
  }

  async start() {
    this.bind();
    this.stream.watch();
    this.names = await this.api.members();
    $("who").textContent = this.name(this.api.member);
    this.draw();
  }

  name(id) { return this.names.get(id) ?? id; }
  row() { return this.store.scopes.get(this.current); }

  connection(state, reason) {
    if (this.over) return;
    $("live").textContent = state === "live" ? "live" : "connecting";
    $("live").classList.toggle("on", state === "live");
    if (state === "live") this.trouble("");
    else this.bell.draw(null); // what came meanwhile is not known
    if (state !== "over") return;
    this.over = true;
    this.stream.close();
    this.store = new Store(); // what it showed is not true any more
    this.bell.draw(null);
    this.bell.close();
    this.draw();
    notice(`This link is not good any more (${reason.message}). Open a new link from the terminal, the whole of it.`, "signed out");
  }

  // trouble says at the top what did not work, until something does.
  trouble(text) {
    $("trouble").textContent = text;
    $("trouble").hidden = !text;
  }

  on(event, data) {
    if (this.over) return;
    if (event === "hello" && this.current) this.load(); // messages are not resumed
    if (event === "hello" || event === "inbox") this.bell.refresh();
    if (event === "snapshot") this.store.snapshot(data);
    if (event === "unread") this.store.delta(data);
    if (event === "message" && this.watched().includes(data.scope)) this.message(data);
    if (event === "expired") this.connection("over", new Error("the token ended"));
    if ((event === "snapshot" && data.complete) || data.scope === this.current) {
      this.explain();
      if (this.row()?.type === "task") this.renew();
    }
    this.draw();
    this.readAlong();
  }

  // watched is the scope that is open, and for a thread also the channel that its root is in.
  watched() { return [this.current, this.row()?.parent].filter(Boolean); }

  message(change) {
    if (change.scope === this.current || change.message.id === this.store.root?.id) this.store.message(change);
  }

  open(id) {
    if (id === this.current || this.over) return;
    this.current = id;
    this.store.empty();
    this.why = null;
    this.trouble("");
    this.stream.watch(...this.watched());
    this.explain();
    document.querySelector(".columns").classList.add("open");
    this.draw();
    this.load();
  }

  close() {
    document.querySelector(".columns").classList.remove("open");
    const button = $("scopes").querySelector('[aria-current="true"]');
    this.current = "";
    this.draw();
    button?.focus();
  }

  async load() {
    const scope = this.current;
    const page = await this.try(() => this.api.messages(scope));
    if (!page || scope !== this.current) return;
    this.store.page(page, { fresh: true });
    this.draw();
    $("messages").scrollTop = $("messages").scrollHeight;
    this.readAlong();
    if (this.row()?.type === "task") this.renew();
    if (this.row()?.type !== "thread") return;
    const root = await this.try(() => this.api.root(scope));
    if (root === undefined || scope !== this.current) return;
    this.store.root = root;
    this.draw();
  }

  // renew asks for what only lists tell of a task, once more after what came while it was asking.
  async renew() {
    this.renewing = (this.renewing ?? 0) + 1;
    if (this.renewing > 1) return;
    let asked;
    do {
      asked = this.renewing;
      const scope = this.current;
      const known = await this.try(() => Promise.all([this.api.task(scope), this.api.messages(scope)]), { quiet: true });
      if (!known || scope !== this.current || this.row()?.type !== "task") continue;
      this.store.task = new Task(known[0]);
      this.store.page(known[1]);
      this.draw();
    } while (asked !== this.renewing && this.row()?.type === "task");
    this.renewing = 0;
  }

  async earlier() {
    const scope = this.current;
    const page = await this.try(() => this.api.messages(scope, this.store.messages[0]?.seq));
    if (!page || scope !== this.current) return;
    const list = $("messages"), rest = list.scrollHeight - list.scrollTop;
    this.store.page(page, { earlier: true });
    this.draw();
    list.scrollTop = list.scrollHeight - rest;
  }

  // explain asks why, once more after changes that came while it was asking.
  async explain() {
    if (!this.current) return;
    this.opening++;
    if (this.opening > 1) return;
    let asked;
    do {
      asked = this.opening;
      const scope = this.current;
      const x = await this.try(() => this.api.explain(scope), { quiet: true });
      if (x && scope === this.current) this.why = { scope, x, until: await this.until(scope) };
    } while (asked !== this.opening && this.current);
    this.opening = 0;
    this.draw();
  }

  // until is when the mute of a scope ends. A thread without one of its own has the channel's.
  async until(scope) {
    const row = this.store.scopes.get(scope);
    if (row?.notification !== "none") return undefined;
    const mine = await this.try(() => this.api.mine(scope), { quiet: true });
    return row.parent && (!mine || mine.notification === "inherit") ? this.until(row.parent) : mine?.until;
  }

  // try says what did not work and returns undefined then.
  async try(work, { quiet = false } = {}) {
    try {
      const value = await work();
      if (!quiet) this.trouble("");
      return value;
    } catch (error) {
      if (!quiet) this.trouble(`That did not work: ${error.message}.`);
      return undefined;
    }
  }

  // seen is the newest revision that is on the page: only that may be marked read.
  seen() { return this.store.messages.reduce((max, m) => Math.max(max, m.contentRevision ?? 0), 0); }

  read() {
    const row = this.row();
    if (row) this.try(() => this.api.read(this.current, Math.min(row.contentRevision, this.seen()), row.readState.version, this.store.task?.latest));
  }

  readAlong() {
    const row = this.row();
    if (!row || !$("follow-along").checked || document.visibilityState !== "visible") return;
    if (row.unread > 0 && this.seen() > row.readState.readRevision) this.read();
    else if (row.activity > 0 && this.store.task?.latest > row.readState.activityReadSeq) this.read();
  }

  markUnread(message) {
    const row = this.row();
    if (row) this.try(() => this.api.markUnread(this.current, row.readState.version, message?.id));
  }

  level(value) {
    this.choosing = false;
    const minute = value === "minute";
    const until = minute ? new Date(Date.now() + 60_000).toISOString() : undefined;
    this.try(() => this.api.level(this.current, minute ? "none" : value, until)).then(() => this.explain());
  }

  watching() { return this.store.task?.members.some((m) => m.id === this.api.member && m.watching); }

  follow() {
    const row = this.row();
    if (row?.type === "task") this.try(() => this.api.follow(this.current, !this.watching())).then(() => this.renew());
    else if (row) this.try(() => this.api.follow(this.current, row.notification === "mentions"));
  }

  // named finds whom a text reaches: @everyone, or @ and a member's id.
  named(text) {
    const words = new Set([...text.matchAll(/@([\w-]+)/g)].map((match) => match[1].toLowerCase()));
    const mentions = [...this.names.keys()].filter((id) => words.has(id.toLowerCase()));
    const known = new Set(["everyone", ...mentions.map((id) => id.toLowerCase())]);
    return { everyone: words.has("everyone"), mentions, unknown: [...words].filter((word) => !known.has(word)) };
  }

  async send() {
    const text = $("text").value.trim();
    const row = this.row();
    if (!text || !row) return;
    const { everyone, mentions } = this.named(text);
    const sent = await this.try(() => this.api.post(this.current, {
      opId: crypto.randomUUID(), payload: { text }, mentions, mentionsEveryone: everyone,
    }));
    if (!sent) return;
    $("text").value = "";
    this.hint(`${text} `);
    $("messages").scrollTop = $("messages").scrollHeight;
  }

  // hint says whom a text names, and whom it does not although it looks so. The last word may
  // still be going on.
  hint(sent) {
    const text = sent ?? $("text").value;
    const { everyone, mentions } = this.named(text);
    const { unknown } = this.named(text.replace(/@[\w-]*$/, ""));
    const who = sent ? [] : everyone ? ["everyone"] : mentions.map((id) => this.name(id));
    const names = who.length ? [`Names ${who.join(", ")}.`] : [];
    $("named").textContent = [...names, ...unknown.map((word) => `@${word} is not here.`)].join(" ");
  }

  bind() {
    $("read").onclick = () => this.read();
    $("unread").onclick = () => this.markUnread();
    $("follow").onclick = () => this.follow();
    $("level").onchange = (e) => this.level(e.target.value);
    $("level").onpointerdown = $("level").onkeydown = () => { this.choosing = true; };
    $("level").onblur = () => { this.choosing = false; };
    $("follow-along").onchange = () => this.readAlong();
    $("back").onclick = () => this.close();
    $("why-toggle").onclick = () => this.toggleWhy();
    $("write").onsubmit = (e) => { e.preventDefault(); this.send(); };
    $("text").oninput = () => this.hint();
    $("text").onkeydown = (e) => {
      if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); this.send(); }
      if (e.key === "Escape") this.focusScope();
    };
    document.addEventListener("visibilitychange", () => this.readAlong());
    document.addEventListener("keydown", (e) => this.key(e));
  }

  toggleWhy() {
    const open = $("why-body").hidden;
    $("why-body").hidden = !open;
    $("why-toggle").setAttribute("aria-expanded", String(open));
  }

  key(e) {
    if (e.target.matches("input, textarea, select") || e.ctrlKey || e.metaKey || e.altKey) return;
    const keys = {
      j: () => this.step(1), k: () => this.step(-1), r: () => this.read(), u: () => this.markUnread(),
      w: () => this.toggleWhy(), c: () => $("text").focus(), b: () => this.bell.toggle(),
    };
    if (!keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  }

  // step opens the next scope, counted from where the keyboard is in the list, else from the one
  // that is open.
  step(by) {
    const ids = this.store.ordered().filter((i) => i.id).map((i) => i.id);
    const focused = document.activeElement.closest("#scopes li")?.dataset.scope;
    const at = ids.indexOf(focused ?? this.current);
    const next = at < 0 ? 0 : (at + by + ids.length) % ids.length;
    if (ids.length) this.open(ids[next]);
    this.focusScope();
  }

  // focusScope puts the keyboard on the open scope, or on its messages where the list is hidden.
  focusScope() {
    $("scopes").querySelector('[aria-current="true"]')?.focus();
    if (!document.activeElement.closest("#scopes")) $("messages").focus();
  }

  draw() {
    drawBadge(this.store.badge);
    drawScopes($("scopes"), this.store.ordered(), this.current, (id) => this.open(id));
    const row = this.row();
    $("main").hidden = !row;
    if (!row) return;
    $("name").textContent = (row.type === "channel" ? "# " : "") + row.name;
    $("about").textContent = this.about(row);
    $("read").disabled = row.unread === 0 && row.activity === 0 && !row.readState.manualUnread;
    $("unread").disabled = row.readState.manualUnread;
    const task = row.type === "task" ? this.store.task : null;
    $("text").placeholder = `Write a message. @name ${row.type === "task" ? "reaches" : "or @everyone reaches"} people.`;
    $("follow").hidden = row.type !== "thread" && !task;
    $("follow").textContent = task ? (this.watching() ? "Stop watching" : "Watch")
      : row.notification === "mentions" ? "Follow" : "Stop following";
    const { x: why, until } = this.why?.scope === this.current ? this.why : {};
    drawLevel($("level"), row, until, this.choosing);
    if (why && task) {
      $("why-toggle").textContent = drawWhyTask($("why-body"), row, why, task, {
        me: this.api.member, name: (id) => this.name(id), level: level(row, until),
      });
    } else if (why && row.type !== "task") $("why-toggle").textContent = drawWhy($("why-body"), row, why, until);
    const list = $("messages"), atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    drawMessages(list, this.store, row, new Set(why?.messages ?? []), {
      me: this.api.member, name: (id) => this.name(id),
      from: (m) => this.markUnread(m), earlier: () => this.earlier(),
    });
    if (atEnd) list.scrollTop = list.scrollHeight;
  }

  about(row) {
    const parent = row.parent && this.store.scopes.get(row.parent);
    const { assignee, status } = this.store.task?.facts ?? {};
    const place = parent ? `Thread in # ${parent.name}` : row.type === "dm" ? "Direct message"
      : row.type === "task" ? ["Task", status, assignee && `given to ${assignee === this.api.member ? "you" : this.name(assignee)}`].filter(Boolean).join(" · ")
        : "Channel";
    const { readRevision, manualUnread, fromRevision } = row.readState;
    if (manualUnread && fromRevision) return `${place} · unread from ${fromRevision} · read through ${readRevision}`;
    return `${place} · read through ${readRevision} of ${row.contentRevision}`;
  }
}

// begin makes the app, or says that the link was cut off where it was copied.
function begin(link) {
  try {
    return new App(link);
  } catch {
    sessionStorage.removeItem(MEMORY);
    notice("A part of this link is missing. Copy the whole link from the terminal.");
    return null;
  }
}

const link = signIn();
const app = link && begin(link);
if (app) app.start().catch((error) => { if (!app.over) notice(`The demo cannot start: ${error.message}.`); });
else if (!link) notice("Open one of the links that the demo printed when it started.");
addEventListener("hashchange", () => location.reload()); // another link in the same tab
