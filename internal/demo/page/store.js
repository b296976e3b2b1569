// What this page knows: scopes with their unread state, and the messages of the one that is open.
// Every value comes from the server; nothing is counted here.

export class Store {
  constructor() {
    this.scopes = new Map();
    this.badge = null;
    this.lsn = 0;
    this.pages = null; // of a snapshot that is under way
    this.empty();
  }

  // empty forgets the messages of the scope that was open.
  empty() {
    this.messages = [];
    this.hasMore = false;
    this.root = undefined; // of a thread: not known yet; null is gone
    this.task = null; // of a task: not known yet
  }

  snapshot(page) {
    if (!page.scopes) { // withheld: what was shown cannot be vouched for any more
      this.badge = null;
      this.pages = null;
      return;
    }
    this.pages ??= new Map();
    for (const [id, row] of Object.entries(page.scopes)) this.pages.set(id, row);
    if (!page.complete) return;
    this.scopes = this.pages;
    this.pages = null;
    this.badge = page.badge;
    this.lsn = page.lsn;
  }

  delta({ scope, row, removed, badge, lsn }) {
    if (lsn < this.lsn) return; // absolute values: an older one is not news
    if (removed) this.scopes.delete(scope);
    else this.scopes.set(scope, row);
    this.badge = badge;
    this.lsn = lsn;
  }

  message({ op, message }) {
    if (this.root?.id === message.id) { // it is in the thread's channel
      this.root = op === "removed" ? null : message;
      return;
    }
    const at = this.messages.findIndex((m) => m.id === message.id);
    if (op === "removed") {
      if (at >= 0) this.messages.splice(at, 1);
    } else if (at >= 0) {
      this.messages[at] = message;
    } else {
      this.messages.push(message);
      this.messages.sort((a, b) => a.seq - b.seq);
    }
  }

  // page takes a page of the list in. Messages that the stream brought meanwhile stay.
  page({ messages, page }, { earlier = false, fresh = false } = {}) {
    if (fresh) this.messages = this.messages.filter((m) => !messages.length || m.seq > messages.at(-1).seq);
    for (const message of messages) this.message({ op: "added", message });
    if (earlier || fresh) this.hasMore = page.hasMore;
  }

  // ordered puts channels with their threads first, then tasks and direct messages.
  ordered() {
    const rows = [...this.scopes].filter(([, row]) => !row.archived);
    const byName = (a, b) => a[1].name.localeCompare(b[1].name) || (a[0] < b[0] ? -1 : 1);
    const channels = rows.filter(([, r]) => r.type === "channel").sort(byName);
    const threads = rows.filter(([, r]) => r.type === "thread").sort(byName);
    const out = [{ group: "Channels" }];
    for (const channel of channels) {
      out.push({ id: channel[0], row: channel[1] });
      for (const t of threads) if (t[1].parent === channel[0]) out.push({ id: t[0], row: t[1] });
    }
    for (const [type, group] of [["task", "Tasks"], ["dm", "Direct messages"]]) {
      out.push({ group });
      for (const [id, row] of rows.filter(([, r]) => r.type === type).sort(byName)) out.push({ id, row });
    }
    return out;
  }
}
