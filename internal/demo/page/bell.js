// The bell: how many people have something new for this member since the overview was looked at, and
// the overview itself. Both say what the server says; opening shows a snapshot, and that is
// acknowledged once it is there to be seen. Nothing that came later is, and no conversation is read.

import { $, h } from "./view.js";

export class Bell {
  constructor(api, { name, go }) {
    this.api = api;
    this.name = name;
    this.go = go; // opens a scope
    this.asked = 0;
    this.draw(null);
    $("bell").onclick = () => this.toggle();
    $("overview-close").onclick = () => this.close();
    $("overview").onkeydown = (e) => { if (e.key === "Escape") this.close(); };
  }

  // refresh asks for the number, once more after hints that came while it was asking.
  async refresh() {
    this.asked++;
    if (this.asked > 1) return;
    let asked;
    do {
      asked = this.asked;
      try {
        this.draw(await this.api.inboxBadge());
      } catch {
        this.draw(null); // not known is not zero
      }
    } while (asked !== this.asked);
    this.asked = 0;
  }

  draw(badge) {
    $("bell-count").textContent = badge ? badge.count : "–";
    $("bell").classList.toggle("some", !!badge?.count);
    const people = badge?.count === 1 ? "1 person has" : `${badge?.count} people have`;
    $("bell").setAttribute("aria-label", !badge ? "New for you: not known"
      : badge.count ? `${people} something new for you` : "Nothing new for you");
  }

  toggle() { return $("overview").hidden ? this.open() : this.close(); }

  async open() {
    if (this.opening) return;
    this.opening = true;
    try {
      const snapshot = await this.api.openInbox();
      this.show(snapshot);
      await this.looked(snapshot.snapshotId);
    } catch (error) {
      this.present(`That did not work: ${error.message}.`, []);
    }
    this.opening = false;
    this.refresh();
  }

  show({ senders, messages }) {
    this.present(!senders.length ? "Nothing new for you"
      : `New from ${senders.map((id) => this.name(id)).join(", ")}`,
    [...messages].reverse().map((m) => this.item(m)));
  }

  present(title, items) {
    $("overview-title").textContent = title;
    $("overview-list").replaceChildren(...items);
    $("overview").hidden = false;
    $("bell").setAttribute("aria-expanded", "true");
    $("overview-title").focus();
  }

  item(m) {
    const text = m.text ?? m.payload?.text ?? "";
    const parts = [h("b", {}, this.name(m.sender)), h("span", { class: "what" }, text)];
    if (!m.scope) return h("li", {}, h("div", {}, ...parts));
    return h("li", {}, h("button", { type: "button", onclick: () => { this.close(); this.go(m.scope); } }, ...parts));
  }

  // looked acknowledges a snapshot when its overview is on a page that somebody can see.
  async looked(snapshot) {
    while (document.visibilityState !== "visible") {
      await new Promise((seen) => document.addEventListener("visibilitychange", seen, { once: true }));
    }
    if (!$("overview").hidden) await this.api.acknowledge(snapshot);
  }

  close() {
    if ($("overview").hidden) return;
    $("overview").hidden = true;
    $("bell").setAttribute("aria-expanded", "false");
    $("bell").focus();
  }
}
