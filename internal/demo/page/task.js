// What only a task has: facts, watchers, a timeline of activities, and for each message and
// activity whom it was delivered to. The server froze that when it happened; nothing is planned
// here.

import { h } from "./view.js";

const plural = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
const list = (words) => words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;

export class Task {
  constructor({ facts, roster, timeline }) {
    this.facts = facts;
    this.members = roster.members;
    this.activities = timeline.activities;
    this.latest = timeline.latestActivitySeq;
    this.stamp = JSON.stringify([facts, this.members.map((m) => [m.id, m.watching])]); // what reasons follow from
  }

  agents() { return this.members.filter((m) => m.kind === "agent"); }

  // ground is why somebody is told of everything that happens here; empty for the others.
  ground(id) {
    if (id === this.facts.assignee) return "assigned";
    return this.members.find((m) => m.id === id)?.watching ? "watches" : "";
  }
}

// reason is why a message reached somebody: by name beats what holds for the whole task.
function reason(task, id, mentions) {
  return mentions?.includes(id) ? "named" : task.ground(id) || "was told then";
}

// drawDelivered says under a message or activity who was counted and which agents were woken.
export function drawDelivered(task, item, { me, name, by }) {
  const people = (item.recipients ?? []).map((id) =>
    h("b", { class: id === me ? "me" : "" }, `${id === me ? "you" : name(id)} (${reason(task, id, item.mentions)})`));
  const more = (item.delivered ?? 0) - people.length;
  if (more > 0) people.push(h("b", {}, `${more} more`));
  const silent = item.highSignal === false; // an activity that nobody is told of
  const woken = silent ? [] : task.agents().filter((m) => m.id !== by && (item.mentions?.includes(m.id) || task.ground(m.id)));
  const line = h("div", { class: "delivered" });
  line.append(people.length ? "counts for " : "counts for nobody");
  people.forEach((p, i) => line.append(i ? ", " : "", p));
  if (woken.length) line.append(` · wakes ${list(woken.map((m) => name(m.id)))}`);
  return line;
}

const words = {
  task_assigned: (a, name) => `gave the task to ${name(a.subject)}`,
  task_unassigned: (a, name) => `took the task from ${name(a.subject)}`,
  task_status_changed: (a) => `changed the status from ${a.payload?.from || "none"} to ${a.payload?.to}`,
  task_title_changed: (a) => `named the task ${a.payload?.to}`,
};

export function activityText(a, name) {
  return `${name(a.actor)} ${(words[a.type] ?? (() => a.type.replaceAll("_", " ")))(a, name)}`;
}

// drawWhyTask says why a task's count is what it is, and who is told of what happens in it.
export function drawWhyTask(body, row, x, task, { me, name, level }) {
  const term = (value, label, kind = "") => h("span", { class: `term ${kind}` }, h("b", {}, value), h("i", {}, label));
  const sign = (s) => h("span", { class: "sign", "aria-hidden": "true" }, s);
  const sum = h("div", { class: "sum" },
    term(row.unread + x.blocked, "delivered to you and not read"), sign("−"), term(x.blocked, "blocked"), sign("="),
    term(row.unread, "unread", "result"), sign("and"), term(row.activity, plural(row.activity, "activity", "activities").replace(/^\d+ /, ""), "result"));
  const mine = task.ground(me);
  const items = [
    mine ? `You are told of everything here: you ${mine === "assigned" ? "have the task" : "watch it"}.`
      : "You are told only of what names you: you neither have the task nor watch it.",
    row.attention ? `${plural(row.attention, "message")} of it ${row.attention === 1 ? "names" : "name"} you.` : "None of it names you.",
    level,
  ];
  if (x.manual) items.push("You marked it unread yourself: it keeps its dot until you mark it read.");
  const told = h("dl", { class: "told", "aria-label": "Who is told of what happens here" });
  for (const m of task.members) {
    const ground = task.ground(m.id);
    const told_ = ground || "only where named";
    told.append(h("div", { class: ground ? "" : "faint" }, h("dt", {}, m.id === me ? "You" : name(m.id)),
      h("dd", {}, m.kind === "agent" ? `${told_}: is woken, never counted` : told_)));
  }
  body.replaceChildren(sum, h("ul", {}, ...items.map((text) => h("li", {}, text))), told);
  return `Why ${row.unread === 0 && row.shown ? "a dot" : row.unread}? And who else?`;
}
