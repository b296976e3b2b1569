import { describe, expect, it, vi } from "vitest";
import { IDBFactory } from "fake-indexeddb";
import { Browser, openHub, readyHub } from "./support/desk.js";
import { quiet, until } from "./support/clock.js";
import { Server, json, problem } from "./support/server.js";
import { type Storage, type Target, databaseStorage, memoryStorage } from "../src/index.js";
import { storageKey } from "../src/hub/storage.js";

const c1: Target = { kind: "channel", channelId: "c1" };

function office(): Server {
  const server = new Server();
  server.scope("c1", "channel", ["ada", "ben"]);
  server.scope("c2", "channel", ["ada", "ben"]);
  for (const scope of ["c1", "c1", "c2"]) server.post(scope, "ben");
  return server;
}

const cursor = (server: Server, scope = "c1") =>
  server.ledger.open(scope).rows.get("ada")!.readRevision;

/** Storage whose writes a test holds back, or lets fail. */
function slowStorage() {
  const inner = memoryStorage();
  let gate = Promise.resolve();
  let release = () => {};
  const storage: Storage = {
    ...inner,
    async write(key, plan) {
      await gate;
      return inner.write(key, plan);
    },
  };
  return {
    storage,
    hold: () => (gate = new Promise((resolve) => (release = resolve))),
    release: () => release(),
    fail: () => {
      gate = Promise.reject(new Error("the disk is full"));
      gate.catch(() => {});
    },
    work: () => (gate = Promise.resolve()),
  };
}

describe("what is saved", () => {
  // covers: SE-093
  it("is shown only after it was written, and not at all where it was not", async () => {
    const server = office();
    const disk = slowStorage();
    const { hub } = await readyHub(server, { storage: disk.storage });
    disk.hold();
    const saving = hub.markChannelRead("c1");
    await quiet();
    expect(hub.snapshot(c1).observedCount).toBe(2);
    disk.release();
    await saving;
    expect(hub.snapshot(c1).observedCount).toBe(0);
    disk.fail();
    const c2: Target = { kind: "channel", channelId: "c2" };
    await expect(hub.markChannelRead("c2")).rejects.toThrow("the disk is full");
    expect(hub.snapshot(c2).observedCount).toBe(1);
    expect(hub.sync()).toMatchObject({ status: "error", error: "the disk is full" });
    disk.work();
    await hub.markChannelRead("c2");
    expect(hub.snapshot(c2).observedCount).toBe(0);
  });

  // covers: RL-027
  it("is not saved for a lease that was disposed of meanwhile", async () => {
    const server = office();
    const disk = slowStorage();
    const { hub } = await readyHub(server, { storage: disk.storage });
    const timeline = hub.timeline("c1");
    await until(() => timeline.snapshot().loaded);
    const lease = hub.reading("c1");
    disk.hold();
    const observing = lease.observe(["c1/2"], { bottom: true });
    lease.dispose();
    disk.release();
    await observing;
    await quiet();
    expect(cursor(server)).toBe(0);
    expect(hub.snapshot(c1).observedCount).toBe(2);
  });

  // covers: SE-095
  it("is sent after a restart, from a database", async () => {
    const server = office();
    const factory = new IDBFactory();
    const first = await readyHub(server, { storage: databaseStorage(factory) });
    server.online = false;
    await first.hub.markChannelRead("c1");
    await first.hub.close();
    server.online = true;
    const { hub } = openHub(server, { storage: databaseStorage(factory) });
    await until(() => cursor(server) === 2);
    await hub.ensure();
    await until(() => hub.sync().status === "reconciled");
    const key = storageKey("https://hub.example", "acme", "ada");
    expect(await databaseStorage(factory).load(key)).toEqual([]);
  });

  // covers: SE-105, SE-106, SE-107
  it("is kept by server and by the namespace that the server told", async () => {
    const server = office();
    const { storage } = new Browser();
    const { hub } = await readyHub(server, { storage, getToken: () => "ada.acme:ben" });
    server.online = false;
    await hub.markChannelRead("c1");
    const ids = async (url: string, workspace: string, member: string) =>
      (await storage.load(storageKey(url, workspace, member))).length;
    expect(await ids("https://hub.example", "acme", "ada")).toBe(1);
    expect(await ids("https://other.example", "acme", "ada")).toBe(0);
    expect(await ids("https://hub.example", "acme", "ben")).toBe(0);
    expect(await ids("https://hub.example", "evil", "ada")).toBe(0);
  });

  // covers: SE-109
  it("goes to nobody else: neither to another server nor with another member's token", async () => {
    const server = office();
    const { storage } = new Browser();
    let token = "ada";
    const { hub, clock } = await readyHub(server, { storage, getToken: () => token });
    server.online = false;
    await hub.markChannelRead("c1");
    const elsewhere = office();
    await readyHub(elsewhere, { url: "https://other.example", storage });
    await quiet();
    expect(elsewhere.requests("PUT", "/read-state")).toHaveLength(0);
    token = "ben";
    server.online = true;
    clock.pass(120_000);
    await quiet();
    expect(server.requests("PUT", "/read-state")).toHaveLength(0);
    expect(hub.sync().status).toBe("error");
    token = "ada.2";
    hub.renewed();
    await until(() => cursor(server) === 2);
  });

  // covers: SE-108
  it("is on disk before a switch of the server is done", async () => {
    const server = office();
    const disk = slowStorage();
    const { hub } = await readyHub(server, { storage: disk.storage });
    disk.hold();
    const saving = hub.markChannelRead("c1");
    const closed = vi.fn();
    const closing = hub.close().then(closed);
    await quiet();
    expect(closed).not.toHaveBeenCalled();
    disk.release();
    await Promise.all([saving, closing]);
    const kept = await disk.storage.load(storageKey("https://hub.example", "acme", "ada"));
    expect(kept).toHaveLength(1);
    await expect(hub.markChannelRead("c2")).rejects.toThrow("closed");
  });
});

describe("sending", () => {
  // covers: SE-094
  it.each([
    ["503", () => json({}, 503)],
    ["429", () => json({}, 429)],
    ["a proxy's page", () => new Response("<html>", { status: 403 })],
    ["no answer", () => Promise.reject(new TypeError("reset"))],
  ])("goes on after %s", async (_what, answer: () => Response | Promise<Response>) => {
    const server = office();
    const { hub, clock } = await readyHub(server);
    server.answer = (r) => (r.path.endsWith("/read-state") ? answer() : undefined);
    await hub.markChannelRead("c1");
    await until(() => server.requests("PUT", "/read-state").length === 1);
    await quiet();
    expect(hub.sync().status).toBe("pending");
    expect(hub.snapshot(c1).observedCount).toBe(0);
    server.answer = () => undefined;
    clock.pass(1_000);
    await until(() => cursor(server) === 2);
    await until(() => hub.sync().status === "reconciled");
  });

  it("waits as long as the server asks for", async () => {
    const server = office();
    const { hub, clock } = await readyHub(server);
    const busy = () => new Response("{}", { status: 429, headers: { "Retry-After": "30" } });
    server.answer = (r) => (r.path.endsWith("/read-state") ? busy() : undefined);
    await hub.markChannelRead("c1");
    await until(() => server.requests("PUT", "/read-state").length === 1);
    await quiet();
    clock.pass(29_000);
    await quiet();
    expect(server.requests("PUT", "/read-state")).toHaveLength(1);
    server.answer = () => undefined;
    clock.pass(1_000);
    await until(() => cursor(server) === 2);
  });

  // covers: SE-096
  it("tries at once when the page comes to the front", async () => {
    const server = office();
    const { hub, page } = await readyHub(server);
    server.online = false;
    await hub.markChannelRead("c1");
    await quiet();
    server.online = true;
    page.show(false);
    await quiet();
    expect(cursor(server)).toBe(0);
    page.show(true);
    await until(() => cursor(server) === 2);
  });

  // covers: SE-104
  it("waits for another token after a 401", async () => {
    const server = office();
    let token = "ada";
    const { hub, clock } = await readyHub(server, { getToken: () => token });
    server.answer = (r) => (r.token === "ada" ? problem(401, "token_expired") : undefined);
    await hub.markChannelRead("c1");
    await until(() => hub.sync().status === "error");
    expect(hub.losses()).toEqual([]);
    const sent = server.seen.length;
    clock.pass(600_000);
    await quiet();
    clock.pass(600_000);
    await quiet();
    expect(server.seen).toHaveLength(sent); // nothing at all with a token that was refused
    expect(hub.snapshot(c1).observedCount).toBe(0);
    token = "ada.2";
    hub.renewed();
    await until(() => cursor(server) === 2);
    await until(() => hub.sync().status === "reconciled");
  });

  // covers: SE-099, SE-100, SE-101
  it.each([
    [400, "revision_in_future"],
    [403, "forbidden"],
    [404, "not_found"],
  ])("rolls back what the server refuses with %i", async (status, code) => {
    const server = office();
    const { hub } = await readyHub(server);
    server.answer = (r) => (r.path.endsWith("/read-state") ? problem(status, code) : undefined);
    await hub.markChannelRead("c1");
    expect(hub.snapshot(c1).observedCount).toBe(0);
    await until(() => hub.snapshot(c1).observedCount === 2);
    expect(hub.losses()).toMatchObject([{ reason: "refused", answer: { status, code } }]);
    expect(hub.sync().status).toBe("error");
    await hub.retrySync();
    expect(hub.sync().status).toBe("reconciled");
  });

  // covers: SE-102, SE-103
  it("takes the server's state from a conflict, and does not try again", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    server.online = false;
    await hub.markUnread(c1);
    expect(hub.snapshot(c1).manual).toBe("local");
    server.mark("c1", "ada");
    server.read("c1", "ada", 2, 1);
    server.cut();
    server.online = true;
    await hub.retrySync();
    await until(() => hub.losses().length === 1);
    expect(hub.snapshot(c1)).toMatchObject({ manual: "none", observedCount: 0 });
    await quiet();
    expect(server.requests("PUT", "/read-state")).toHaveLength(1);
  });

  it("knows a mark whose answer was lost, also after a restart", async () => {
    const server = office();
    const { storage } = new Browser();
    const first = await readyHub(server, { storage });
    server.answer = (r) => {
      if (!r.path.endsWith("/read-state")) return undefined;
      server.mark("c1", "ada"); // it is carried out, and nobody hears of it
      server.online = false;
      return undefined;
    };
    await first.hub.markUnread(c1);
    await until(() => server.requests("PUT", "/read-state").length === 1);
    await first.hub.close();
    server.online = true;
    server.answer = () => undefined;
    const { hub } = await readyHub(server, { storage });
    expect(server.requests("PUT", "/read-state")).toHaveLength(2);
    expect(hub.losses()).toEqual([]);
    expect(hub.snapshot(c1).manual).toBe("synced");
  });

  // covers: SE-098, SE-110
  it("settles by an answer the operation that it answers", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    let answer = (_: Response | undefined) => {};
    server.answer = (r) =>
      r.path.endsWith("c1/read-state")
        ? (new Promise((resolve) => (answer = resolve as typeof answer)) as Promise<Response>)
        : undefined;
    await hub.markChannelRead("c1");
    await until(() => server.requests("PUT", "c1/read-state").length === 1);
    server.post("c1", "ben");
    await until(() => hub.snapshot(c1).observedCount === 1 || !hub.snapshot(c1).exact);
    await hub.markChannelRead("c1");
    await hub.markChannelRead("c2");
    await until(() => cursor(server, "c2") === 1);
    server.answer = () => undefined;
    answer(undefined);
    await until(() => cursor(server) === 3);
    const bodies = server.requests("PUT", "c1/read-state").map((r) => r.body!["readRevision"]);
    expect(bodies).toEqual([2, 3]);
  });

  it("gives up what is too old, and says so", async () => {
    const server = office();
    const { hub, clock } = await readyHub(server);
    server.online = false;
    await hub.markChannelRead("c1");
    clock.pass(29 * 24 * 3600 * 1000);
    await until(() => hub.losses().length === 1);
    expect(hub.losses()).toMatchObject([{ reason: "too_old" }]);
    expect(hub.snapshot(c1).observedCount).toBe(2);
    expect(hub.sync()).toMatchObject({ status: "error" });
    server.online = true;
    await hub.retrySync();
    await quiet();
    expect(server.requests("PUT", "/read-state")).toHaveLength(0);
  });
});

describe("several tabs", () => {
  it("one tab sends for all, and all show the same", async () => {
    const server = office();
    const browser = new Browser();
    const { storage, locks, channel } = browser;
    const a = await readyHub(server, { storage, locks, channel });
    const b = await readyHub(server, { storage, locks, channel });
    server.answer = (r) => (r.path.endsWith("/read-state") ? json({}, 503) : undefined);
    await b.hub.markChannelRead("c1");
    await until(() => a.hub.snapshot(c1).observedCount === 0);
    await until(() => server.requests("PUT", "/read-state").length === 1);
    await a.hub.markUnread(c1);
    await until(() => b.hub.snapshot(c1).manual === "local");
    server.answer = () => undefined;
    await a.hub.retrySync();
    await until(() => a.hub.sync().status === "reconciled" && b.hub.sync().status === "reconciled");
    expect(server.ledger.open("c1").rows.get("ada")).toMatchObject({
      readRevision: 2,
      manualUnread: true,
    });
    expect(server.requests("PUT", "/read-state")).toHaveLength(3);
  });

  it("another tab goes on when the one that sends is closed", async () => {
    const server = office();
    const { storage, locks, channel } = new Browser();
    const a = await readyHub(server, { storage, locks, channel });
    const b = await readyHub(server, { storage, locks, channel });
    server.online = false;
    await b.hub.markChannelRead("c1");
    await a.hub.close();
    server.online = true;
    await until(() => cursor(server) === 2);
    await b.hub.retrySync();
    await until(() => b.hub.sync().status === "reconciled");
  });

  it("a read that another tab raises while it is under way goes out again", async () => {
    const server = office();
    const { storage, locks, channel } = new Browser();
    const a = await readyHub(server, { storage, locks, channel });
    const b = await readyHub(server, { storage, locks, channel });
    let answer = (_: Response | undefined) => {};
    server.answer = (r) =>
      r.path.endsWith("/read-state")
        ? (new Promise((resolve) => (answer = resolve as typeof answer)) as Promise<Response>)
        : undefined;
    await a.hub.markChannelRead("c1");
    await until(() => server.requests("PUT", "/read-state").length === 1);
    server.post("c1", "ben");
    await until(() => b.hub.snapshot(c1).observedCount !== 0 || !b.hub.snapshot(c1).exact);
    await b.hub.markChannelRead("c1");
    server.answer = () => undefined;
    answer(undefined);
    await until(() => cursor(server) === 3);
    await until(() => a.hub.sync().status === "reconciled");
  });
});
