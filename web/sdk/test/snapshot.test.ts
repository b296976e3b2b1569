import { describe, expect, it, vi } from "vitest";
import { readyHub, openHub } from "./support/desk.js";
import { quiet, until } from "./support/clock.js";
import { Server, json } from "./support/server.js";
import type { Target } from "../src/index.js";

const c1: Target = { kind: "channel", channelId: "c1" };

function office(): Server {
  const server = new Server();
  server.scope("c1", "channel", ["ada", "ben"]);
  server.scope("c2", "channel", ["ada", "ben"]);
  server.scope("d1", "dm", ["ada", "ben"]);
  return server;
}

describe("snapshots", () => {
  // covers: RL-018, RL-019, RL-107
  it("is unknown before the first observation, and what the server counted after it", async () => {
    const server = office();
    server.post("c1", "ben");
    server.post("c1", "ben", { mentions: ["ada"] });
    const { hub } = openHub(server);
    expect(hub.snapshot(c1)).toEqual({
      observedCount: null,
      attentionCount: null,
      exact: false,
      coverage: "unknown",
      freshness: "unknown",
      pending: true,
      manual: "none",
      syncedManualUnread: true,
      muted: false,
      level: "all",
      latestMessage: null,
      firstUnread: null,
    });
    await hub.ensure();
    expect(hub.snapshot(c1)).toMatchObject({
      observedCount: 2,
      attentionCount: 1,
      exact: true,
      coverage: "observed",
      freshness: "observed",
      pending: false,
      latestMessage: { id: "c1/2" },
    });
    const absent = hub.snapshot({ kind: "channel", channelId: "nowhere" });
    expect(absent.observedCount).toBeNull();
    expect(absent.pending).toBe(false);
  });

  // covers: RL-109
  it("stays unknown where nothing can be read", async () => {
    const server = office();
    server.post("c1", "ben");
    server.answer = (r) => (r.path === "/api/whoami" ? undefined : json({}, 500));
    const { hub, clock } = openHub(server);
    for (let i = 0; i < 5; i++) {
      clock.pass(60_000);
      await quiet();
    }
    expect(hub.snapshot(c1)).toMatchObject({ observedCount: null, pending: true });
    expect(hub.badge()).toMatchObject({ display: null, complete: false });
    expect(hub.sync().status).toBe("loading");
  });

  // covers: RL-108
  it("is unknown, and not 0, where access was lost", async () => {
    const server = office();
    server.post("c1", "ben");
    const { hub } = await readyHub(server);
    server.leave("c1", "ada");
    await until(() => hub.snapshot(c1).observedCount === null);
    expect(hub.badge()).toMatchObject({ messages: 0, hasUnread: false });
  });

  // covers: RL-020, RL-022
  it("binds a thread to its channel", async () => {
    const server = office();
    server.scope("t1", "thread", ["ada"], "c1");
    server.post("t1", "ben");
    const { hub } = await readyHub(server);
    const inC1 = hub.snapshot({ kind: "thread", channelId: "c1", rootId: "t1" });
    expect(inC1.observedCount).toBe(1);
    const inC2 = hub.snapshot({ kind: "thread", channelId: "c2", rootId: "t1" });
    expect(inC2.observedCount).toBeNull();
    expect(hub.snapshot(c1).observedCount).toBe(0);
  });

  // covers: RL-021, RL-022, RL-111
  it("tells of a loaded message whether it is above the cursor", async () => {
    const server = office();
    for (const author of ["ben", "ada", "ben"]) server.post("c1", author);
    server.read("c1", "ada", 1, 0);
    const { hub } = await readyHub(server);
    const of = (messageId: string, channelId = "c1") =>
      hub.snapshot({ kind: "message", channelId, messageId }).observedCount;
    expect(of("c1/3")).toBeNull();
    const timeline = hub.timeline("c1");
    await until(() => timeline.snapshot().loaded);
    expect([of("c1/1"), of("c1/2"), of("c1/3")]).toEqual([0, 0, 1]);
    expect(of("c1/3", "c2")).toBeNull();
    timeline.dispose();
    expect(of("c1/3")).toBeNull();
  });

  // covers: RL-002
  it("cannot be altered, nor the engine through it", async () => {
    const server = office();
    server.post("c1", "ben");
    const { hub } = await readyHub(server);
    const held = hub.snapshot(c1) as { observedCount: number | null };
    expect(() => (held.observedCount = 9)).toThrow(TypeError);
    expect(hub.snapshot(c1).observedCount).toBe(1);
  });

  // covers: RL-003
  it("calls back when the target's own projection changes, until it is told not to", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    const call = vi.fn();
    const end = hub.subscribe(c1, call);
    server.post("c2", "ben");
    await quiet();
    expect(call).toHaveBeenCalledTimes(0);
    const before = hub.snapshot(c1);
    server.post("c1", "ben");
    await until(() => hub.snapshot(c1) !== before);
    await quiet();
    expect(call).toHaveBeenCalledTimes(1);
    end();
    server.post("c1", "ben");
    await until(() => hub.snapshot(c1).observedCount === 2);
    expect(call).toHaveBeenCalledTimes(1);
  });

  it("are the same object for as long as they say the same", async () => {
    const server = office();
    server.post("c1", "ben");
    const { hub } = await readyHub(server);
    const call = vi.fn();
    hub.subscribe(c1, call);
    hub.subscribeBadge(call);
    hub.subscribeSync(call);
    hub.subscribeChannels(call);
    const before = [hub.snapshot(c1), hub.badge(), hub.sync(), hub.channels()];
    await hub.refresh();
    const after = [hub.snapshot(c1), hub.badge(), hub.sync(), hub.channels()];
    await quiet();
    after.forEach((value, i) => expect(value).toBe(before[i]));
    expect(call).not.toHaveBeenCalled();
  });

  // covers: RL-012
  it("hands out nothing but what the interface says", async () => {
    const { hub } = await readyHub(office());
    const own = Reflect.ownKeys(hub);
    const all = Reflect.ownKeys(Object.getPrototypeOf(hub) as object);
    expect(own).toEqual([]);
    expect(all.sort()).toEqual(
      [
        ...["constructor", "snapshot", "subscribe", "ensure", "refresh", "reading", "markThrough"],
        ...["markChannelRead", "markAllChannelsRead", "markUnread", "following", "follow"],
        ...["setLevel", "sync", "retrySync", "badge", "subscribeBadge", "channels", "timeline"],
        ...["subscribeChannels", "subscribeSync", "member", "losses", "renewed", "close"],
      ].sort(),
    );
  });
});

describe("observing", () => {
  // covers: RL-004, RL-005
  it("loads the list once, however many ask and however many targets there are", async () => {
    const server = office();
    for (let i = 0; i < 30; i++) server.scope(`x${i}`, "channel", ["ada"]);
    server.pageSize = 10;
    const { hub } = openHub(server);
    await Promise.all(Array.from({ length: 10 }, () => hub.ensure()));
    for (let i = 0; i < 30; i++) hub.snapshot({ kind: "channel", channelId: `x${i}` });
    await quiet();
    expect(server.requests("GET", "/events")).toHaveLength(1);
    expect(server.requests("GET", "/unread")).toHaveLength(0);
    expect(hub.channels()).toHaveLength(33);
  });

  // covers: RL-010
  it("observes anew on refresh, and not more", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    server.pageSize = 2;
    await Promise.all([hub.refresh(), hub.refresh()]);
    expect(server.requests("GET", "/unread")).toHaveLength(2); // of two pages
    expect(hub.channels()).toHaveLength(3);
    const before = server.seen.length;
    expect(hub.sync().status).toBe("reconciled");
    await quiet();
    expect(server.seen).toHaveLength(before);
    server.online = false;
    await hub.markChannelRead("c1");
    server.post("c1", "ben");
    await until(() => hub.snapshot(c1).observedCount === 1);
    await hub.markChannelRead("c1");
    await quiet();
    server.online = true;
    await hub.retrySync();
    await until(() => hub.sync().status === "reconciled");
    expect(server.seen.slice(before).map((r) => r.method)).toEqual(["PUT"]);
  });

  it("loads the list in pages where there are no streams", async () => {
    const server = office();
    server.pageSize = 1;
    server.post("c2", "ben");
    server.answer = (r) => (r.path.includes("/events") ? json({}, 503) : undefined);
    const { hub } = openHub(server);
    await hub.ensure();
    expect(hub.snapshot({ kind: "channel", channelId: "c2" })).toMatchObject({
      observedCount: 1,
      freshness: "stale",
    });
    expect(hub.sync().status).toBe("stale");
  });

  it("keeps two lists apart that are read at the same time", async () => {
    const server = office();
    server.post("d1", "ben");
    server.pageSize = 1;
    const { hub } = await readyHub(server);
    const refreshing = hub.refresh();
    server.resumes = false;
    server.cut();
    await refreshing;
    await hub.retrySync();
    await until(() => hub.snapshot(c1).freshness === "observed");
    await quiet();
    expect(hub.channels()).toHaveLength(3);
    expect(hub.badge()).toMatchObject({ messages: 1, complete: true });
  });

  it("withholds numbers that the server cannot vouch for", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    const state = { hasUnread: false, counts: {}, state: "hydrating" };
    server.answer = (r) => (r.path.includes("/unread?") ? json(state) : undefined);
    await hub.refresh();
    expect(hub.snapshot(c1)).toMatchObject({ observedCount: null, exact: false, pending: true });
    server.answer = () => undefined;
    await hub.refresh();
    expect(hub.snapshot(c1)).toMatchObject({ observedCount: 0, exact: true });
  });

  it("goes on where the stream broke off, and over a database that is another one", async () => {
    const server = office();
    server.post("c1", "ben");
    const { hub, clock } = await readyHub(server);
    server.cut();
    await until(() => hub.snapshot(c1).freshness === "stale");
    expect(hub.snapshot(c1)).toMatchObject({ observedCount: 1, coverage: "observed" });
    server.post("c1", "ben");
    clock.pass(60_000);
    await until(() => hub.snapshot(c1).observedCount === 2);
    expect(server.seen.at(-1)?.last).not.toBe("");
    server.resumes = false;
    server.lsn = 1;
    server.cut();
    await until(() => hub.snapshot(c1).freshness === "stale");
    server.post("c1", "ben");
    clock.pass(60_000);
    await until(() => hub.snapshot(c1).observedCount === 3);
  });

  it("opens the stream again when it has been silent for two and a half heartbeats", async () => {
    const server = office();
    const { clock } = await readyHub(server);
    clock.pass(49_000);
    await quiet();
    expect(server.requests("GET", "/events")).toHaveLength(1);
    clock.pass(1_000);
    await quiet();
    clock.pass(1_000);
    await until(() => server.requests("GET", "/events").length === 2);
  });
});

describe("the badge", () => {
  it("is the sum of what is shown, and tells when it is not complete", async () => {
    const server = office();
    server.post("c1", "ben");
    server.post("c1", "ben", { mentions: ["ada"] });
    server.post("c2", "ben");
    server.level("c2", "ada", "none");
    server.post("d1", "ben");
    const { hub } = openHub(server);
    expect(hub.badge()).toMatchObject({ display: null, complete: false });
    await hub.ensure();
    await until(() => hub.badge().display !== null);
    expect(hub.badge()).toEqual({
      messages: 3,
      conversations: 2,
      attention: 2,
      display: 3,
      hasUnread: true,
      complete: true,
    });
    const call = vi.fn();
    hub.subscribeBadge(call);
    await hub.setLevel("c2", "all");
    await until(() => hub.badge().messages === 4);
    expect(call).toHaveBeenCalled();
    expect(hub.snapshot({ kind: "channel", channelId: "c2" })).toMatchObject({ muted: false });
  });
});

describe("following", () => {
  // covers: RL-009
  it("is told from rows, and set by choice", async () => {
    const server = office();
    server.scope("t1", "thread", [], "c1");
    const { hub } = openHub(server);
    expect(hub.following("c1", "t1")).toBe("unknown");
    await hub.ensure();
    expect(hub.following("c1", "t1")).toBe("not-following");
    await hub.follow("c1", "t1", true);
    await until(() => hub.following("c1", "t1") === "following");
    await hub.follow("c1", "t1", false);
    await until(() => hub.following("c1", "t1") === "not-following");
  });
});
