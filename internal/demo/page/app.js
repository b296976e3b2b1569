import { Api } from "./api.js";
import { Store } from "./store.js";
import { Stream } from "./stream.js";
import { $, drawBadge, drawMessages, drawScopes, drawWhy } from "./view.js";

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

function notice(text) {
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
    this.stream = new Stream(this.api, {
      on: (event, data) => this.on(event, data),
      state: (s, reason) => this.connection(s, reason),
    });
    $("device").textContent = device;
    if (matchMedia("(max-width: 44rem)").matches) this.toggleWhy(); // there is little room
  }

  async start() {
    this.bind();
    this.stream.watch("");
    this.names = await this.api.members();
    $("who").textContent = this.name(this.api.member);
    this.draw();
  }

  name(id) { return this.names.get(id) ?? id; }
  row() { return this.store.scopes.get(this.current); }

  connection(state, reason) {
    $("live").textContent = state === "live" ? "live" : state === "over" ? "signed out" : "connecting";
    $("live").classList.toggle("on", state === "live");
    if (state === "over") notice(`This link is not good any more (${reason.message}). Start the demo again and use a new one.`);
  }

  on(event, data) {
    if (event === "hello" && this.current) this.load(); // messages are not resumed
    if (event === "snapshot") this.store.snapshot(data);
    if (event === "unread") this.store.delta(data);
    if (event === "message" && data.scope === this.current) this.store.message(data);
    if (event === "expired") this.connection("over", new Error("the token ended"));
    if ((event === "snapshot" && data.complete) || data.scope === this.current) this.explain();
    this.draw();
    this.readAlong();
  }

  open(id) {
    if (id === this.current) return;
    this.current = id;
    this.store.messages = [];
    this.store.hasMore = false;
    this.why = null;
    this.stream.watch(id);
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
    const scope = this.current;
    if (!scope) return;
    this.opening++;
    if (this.opening > 1) return;
    let asked;
    do {
      asked = this.opening;
      const x = await this.try(() => this.api.explain(this.current), { quiet: true });
      if (x && this.current) this.why = { scope: this.current, x };
    } while (asked !== this.opening && this.current);
    this.opening = 0;
    this.draw();
  }

  async try(work, { quiet = false } = {}) {
    try {
      return await work();
    } catch (error) {
      if (!quiet) $("named").textContent = `That did not work: ${error.message}`;
      return null;
    }
  }

  // seen is the newest revision that is on the page: only that may be marked read.
  seen() { return this.store.messages.reduce((max, m) => Math.max(max, m.contentRevision ?? 0), 0); }

  read() {
    const row = this.row();
    if (row) this.try(() => this.api.read(this.current, Math.min(row.contentRevision, this.seen()), row.readState.version));
  }

  readAlong() {
    const row = this.row();
    if (!row || !$("follow-along").checked || document.visibilityState !== "visible") return;
    if (row.unread > 0 && this.seen() > row.readState.readRevision) this.read();
  }

  markUnread(message) {
    const row = this.row();
    if (row) this.try(() => this.api.markUnread(this.current, row.readState.version, message?.id));
  }

  level(value) {
    const minute = value === "minute";
    const until = minute ? new Date(Date.now() + 60_000).toISOString() : undefined;
    this.try(() => this.api.level(this.current, minute ? "none" : value, until));
  }

  follow() {
    const row = this.row();
    if (row) this.try(() => this.api.follow(this.current, row.notification === "mentions"));
  }

  // named finds whom a text reaches: @everyone, or @ and a member's id.
  named(text) {
    const words = new Set([...text.matchAll(/@([\w-]+)/g)].map((match) => match[1].toLowerCase()));
    return { everyone: words.has("everyone"), mentions: [...this.names.keys()].filter((id) => words.has(id.toLowerCase())) };
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
    this.hint();
    $("messages").scrollTop = $("messages").scrollHeight;
  }

  hint() {
    const { everyone, mentions } = this.named($("text").value);
    const who = everyone ? ["everyone"] : mentions.map((id) => this.name(id));
    $("named").textContent = who.length ? `Names ${who.join(", ")}.` : "";
  }

  bind() {
    $("read").onclick = () => this.read();
    $("unread").onclick = () => this.markUnread();
    $("follow").onclick = () => this.follow();
    $("level").onchange = (e) => this.level(e.target.value);
    $("follow-along").onchange = () => this.readAlong();
    $("back").onclick = () => this.close();
    $("why-toggle").onclick = () => this.toggleWhy();
    $("write").onsubmit = (e) => { e.preventDefault(); this.send(); };
    $("text").oninput = () => this.hint();
    $("text").onkeydown = (e) => {
      if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); this.send(); }
      if (e.key === "Escape") $("text").blur();
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
      w: () => this.toggleWhy(), c: () => $("text").focus(),
    };
    if (!keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  }

  step(by) {
    const ids = this.store.ordered().filter((i) => i.id).map((i) => i.id);
    const at = ids.indexOf(this.current);
    const next = at < 0 ? 0 : (at + by + ids.length) % ids.length;
    if (ids.length) this.open(ids[next]);
    $("scopes").querySelector('[aria-current="true"]')?.focus();
  }

  draw() {
    drawBadge(this.store.badge);
    drawScopes($("scopes"), this.store.ordered(), this.current, (id) => this.open(id));
    const row = this.row();
    $("main").hidden = !row;
    if (!row) return;
    $("name").textContent = (row.type === "channel" ? "# " : "") + row.name;
    $("about").textContent = this.about(row);
    $("read").disabled = row.unread === 0 && !row.readState.manualUnread;
    $("unread").disabled = row.readState.manualUnread;
    $("follow").hidden = row.type !== "thread";
    $("follow").textContent = row.notification === "mentions" ? "Follow" : "Stop following";
    if (document.activeElement !== $("level")) $("level").value = row.notification;
    const why = this.why?.scope === this.current ? this.why.x : null;
    if (why) $("why-toggle").textContent = drawWhy($("why-body"), row, why);
    const list = $("messages"), atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    drawMessages(list, this.store, row, new Set(why?.messages ?? []), {
      me: this.api.member, name: (id) => this.name(id),
      from: (m) => this.markUnread(m), earlier: () => this.earlier(),
    });
    if (atEnd) list.scrollTop = list.scrollHeight;
  }

  about(row) {
    const parent = row.parent && this.store.scopes.get(row.parent);
    const place = parent ? `Thread in # ${parent.name}` : row.type === "dm" ? "Direct message" : "Channel";
    return `${place} · read through ${row.readState.readRevision} of ${row.contentRevision}`;
  }
}

const link = signIn();
if (link) new App(link).start().catch((error) => notice(`The demo cannot start: ${error.message}`));
else notice("Open one of the links that the demo printed when it started.");
addEventListener("hashchange", () => location.reload()); // another link in the same tab
