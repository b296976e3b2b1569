import { activityText, drawDelivered } from "./task.js";

// Puts state on the page. Elements are kept and changed, not made anew, so that the keyboard's
// place and what a screen reader is at survive every update.

export const $ = (id) => document.getElementById(id);

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((c) => c != null && c !== ""));
  return element;
}

// keyed makes the children of a list match items; make and update work on one element.
export function keyed(list, items, key, make, update) {
  const old = new Map([...list.children].map((child) => [child.dataset.key, child]));
  let at = list.firstChild;
  for (const item of items) {
    const name = key(item);
    let element = old.get(name);
    if (!element) {
      element = make(item);
      element.dataset.key = name;
    }
    old.delete(name);
    update(element, item);
    if (element === at) at = at.nextSibling;
    else list.insertBefore(element, at);
  }
  for (const element of old.values()) element.remove();
}

const plural = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

export function drawBadge(badge) {
  for (const part of ["messages", "conversations", "attention"]) {
    $(`sum-${part}`).textContent = badge ? badge[part] : "–";
  }
  $("sum-attention").classList.toggle("some", !!badge?.attention);
  const n = badge?.display ?? 0;
  document.title = n ? `(${n}) Tidemark demo` : badge?.conversations ? "• Tidemark demo" : "Tidemark demo";
}

export function drawScopes(list, items, current, open) {
  keyed(list, items, (item) => item.group ?? `scope ${item.id}`,
    (item) => item.group ? h("li", { class: "group" }, item.group)
      : h("li", { "data-scope": item.id }, h("button", { type: "button", onclick: () => open(item.id) })),
    (li, { group, id, row }) => {
      if (group) return;
      li.className = row.type;
      const button = li.firstChild;
      button.classList.toggle("shown", row.shown);
      button.classList.toggle("muted", row.notification === "none");
      button.setAttribute("aria-current", String(id === current));
      const parts = scopeParts(row);
      const face = JSON.stringify([row.name, parts.map((p) => p.outerHTML)]);
      if (button.dataset.face === face) return;
      button.dataset.face = face;
      button.replaceChildren(h("span", { class: "label" }, (row.type === "channel" ? "# " : "") + row.name), ...parts);
    });
}

function scopeParts(row) {
  const parts = [];
  if (row.notification !== "all") {
    parts.push(h("span", { class: "hush" }, row.notification === "none" ? "muted" : "mentions"));
  }
  if (row.attention > 0 && row.type !== "dm") {
    parts.push(h("span", { class: "pill you", "aria-label": `${row.attention} for you` }, `@${row.attention}`));
  }
  if (row.shownUnread > 0) {
    parts.push(h("span", { class: "pill", "aria-label": plural(row.shownUnread, "unread message") }, row.shownUnread));
  } else if (row.shown) {
    parts.push(h("span", { class: "dot", role: "img", "aria-label": row.readState.manualUnread ? "marked unread" : "something happened" }));
  } else if (row.unread > 0) {
    parts.push(h("span", { class: "pill faint", "aria-label": `${row.unread} unread, not shown in your totals` }, row.unread));
  }
  return parts;
}

const clock = (at) => new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

export function drawMessages(list, store, row, counted, { me, name, from, earlier }) {
  const items = [];
  if (row.type === "thread" && store.root !== undefined) items.push({ root: true, message: store.root });
  if (store.hasMore) items.push({ earlier: true });
  let lined = false;
  const happened = [...(row.type === "task" && store.task?.activities || [])];
  const between = (before) => { // activities are counted apart: only their time says where they go
    while (happened.length && (!before || new Date(happened[0].createdAt) < new Date(before))) items.push({ activity: happened.shift() });
  };
  for (const message of store.messages) {
    between(message.createdAt);
    if (!lined && counted.has(message.id)) {
      lined = true;
      items.push({ line: true });
    }
    items.push({ message });
  }
  if (!store.hasMore || store.messages.length) between();
  keyed(list, items, (i) => i.root ? "root" : i.earlier ? "earlier" : i.line ? "line"
    : i.activity ? `a ${i.activity.id}` : `m ${i.message.id}`,
    (i) => i.earlier ? h("li", { class: "earlier" }, h("button", { type: "button", onclick: earlier }, "Earlier messages"))
      : i.line ? h("li", { class: "line" }, "unread")
        : h("li"),
    (li, { message: m, root, activity }) => {
      if (activity) return drawActivity(li, activity, store, row, { me, name });
      if (!m && !root) return;
      if (!m) {
        li.className = "root quiet";
        li.dataset.face = "";
        li.textContent = "The message that began this thread is gone.";
        return;
      }
      const foryou = m.author !== me && (m.mentionsEveryone || m.mentions.includes(me));
      const counts = !root && counted.has(m.id); // a root counts in its channel
      li.className = [root && "root", counts && "counted", !root && foryou && "foryou"].filter(Boolean).join(" ");
      const face = JSON.stringify([m.payload, m.mentions, m.mentionsEveryone, m.editedAt, m.recipients, store.task?.stamp]);
      if (li.dataset.face === face) return;
      li.dataset.face = face;
      const at = m.createdAt ? clock(m.createdAt) : "";
      const revision = !root && m.contentRevision ? h("span", { class: "rev" }, ` · revision ${m.contentRevision}`) : "";
      li.replaceChildren(
        h("div", { class: "top-line" }, h("span", { class: "by" }, m.author === me ? "You" : name(m.author)),
          h("span", { class: "meta" }, at, revision, m.editedAt ? " · edited" : "", root ? " · began this thread" : ""),
          root ? null : h("button", { type: "button", class: "from", onclick: () => from(m) }, "Unread from here")),
        h("div", { class: "text" }, m.payload?.text ?? "(no text)"),
        ...(store.task && !root ? [drawDelivered(store.task, m, { me, name, by: m.author })] : []));
    });
}

function drawActivity(li, a, store, row, { me, name }) {
  const counts = a.recipients?.includes(me) && a.activitySeq > row.readState.activityReadSeq;
  li.className = counts ? "activity counted" : "activity";
  const face = JSON.stringify([a.id, a.recipients, store.task.stamp]);
  if (li.dataset.face === face) return;
  li.dataset.face = face;
  li.replaceChildren(h("div", {}, activityText(a, name), h("span", { class: "meta" }, ` ${clock(a.createdAt)}`)),
    drawDelivered(store.task, a, { me, name, by: a.actor }));
}

// drawWhy says in words and numbers why a count is what it is.
export function drawWhy(body, row, x, until) {
  const unread = row.unread;
  const above = x.head - x.base;
  const term = (value, label, kind = "") => h("span", { class: `term ${kind}` }, h("b", {}, value), h("i", {}, label));
  const sign = (s) => h("span", { class: "sign", "aria-hidden": "true" }, s);
  const sum = h("div", { class: "sum" },
    term(x.head, "newest revision"), sign("−"), term(x.base, "your point"), sign("−"),
    term(x.removed, "removed"), sign("−"), term(x.own, "your own"), sign("−"),
    term(x.blocked, "blocked"), sign("="), term(above - x.removed - x.own - x.blocked, "unread", "result"));
  const list = h("ul", {}, h("li", {}, point(row, x)), h("li", {}, directed(row, x)), h("li", {}, level(row, until)));
  if (x.manual) {
    list.append(h("li", {}, "You marked it unread yourself: it keeps its dot until you mark it read, here or on another device."));
  }
  body.replaceChildren(sum, list);
  return `Why ${unread === 0 && row.shown ? "a dot" : unread}?`;
}

function point(row, x) {
  const rs = row.readState;
  if (rs.manualUnread && rs.fromRevision && x.base === rs.fromRevision - 1) {
    return `Your point is at ${x.base}: you marked it unread from revision ${rs.fromRevision}.`;
  }
  if (x.base === rs.readRevision) {
    return x.base === 0 ? "Your point is at 0: you have read nothing yet."
      : `Your point is at ${x.base}: you have read through it.`;
  }
  return `Your point is at ${x.base}: nothing before you came counts for you.`;
}

function directed(row, x) {
  if (row.type === "dm") return "In a direct message everything is directed at you.";
  if (row.attention === 0) return "None of it names you.";
  const by = [x.direct && `${x.direct} by name`, row.attention > x.direct && `${row.attention - x.direct} as everyone`].filter(Boolean).join(", ");
  return `${plural(row.attention, "message")} directed at you (${by}).`;
}

// drawLevel shows the level in force, and when it ends if it does.
export function drawLevel(select, row, until, choosing) {
  select.querySelector('[value="none"]').textContent = until ? `nothing counts until ${clock(until)}` : "nothing counts";
  if (!choosing) select.value = row.notification;
}

export function level(row, until) {
  const kinds = {
    all: `You are told of everything, so ${row.shownUnread} goes into your totals.`,
    mentions: `You are told only of what names you, so ${row.shownUnread} goes into your totals.`,
    none: `You have muted it${until ? ` until ${clock(until)}` : ""}, so nothing of it goes into your totals.`,
  };
  return kinds[row.notification];
}
