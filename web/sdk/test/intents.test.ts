import { describe, expect, it } from "vitest";
import { readyHub } from "./support/desk.js";
import { quiet, until } from "./support/clock.js";
import { Server } from "./support/server.js";
import { type Hub, type Target, UnknownTargetError } from "../src/index.js";

const channel = (channelId: string): Target => ({ kind: "channel", channelId });
const thread: Target = { kind: "thread", channelId: "c1", rootId: "t1" };

function office(): Server {
  const server = new Server();
  server.scope("c1", "channel", ["ada", "ben"]);
  server.scope("c2", "channel", ["ada", "ben"]);
  server.scope("t1", "thread", ["ada"], "c1");
  for (const scope of ["c1", "c1", "c1", "c2", "t1", "t1"]) server.post(scope, "ben");
  return server;
}

const row = (server: Server, scope: string) => server.ledger.open(scope).rows.get("ada")!;

async function load(hub: Hub, scope: string): Promise<void> {
  const timeline = hub.timeline(scope);
  await until(() => timeline.snapshot().loaded);
}

describe("marking as read", () => {
  // covers: RL-008, RL-285
  it("reads through a message, and clears the mark of that scope alone", async () => {
    const server = office();
    server.mark("c1", "ada");
    server.mark("t1", "ada");
    const { hub } = await readyHub(server);
    await load(hub, "c1");
    const done = await hub.markThrough(channel("c1"), "c1/2");
    expect(done).toEqual({ durability: "saved", target: channel("c1") });
    expect(hub.snapshot(channel("c1"))).toMatchObject({ observedCount: 1, manual: "none" });
    await until(() => row(server, "c1").readRevision === 2);
    expect(row(server, "c1").manualUnread).toBe(false);
    expect(row(server, "t1")).toMatchObject({ readRevision: 0, manualUnread: true });
  });

  // covers: RL-284
  it("refuses a message that was not loaded, and a reply for a channel", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    await expect(hub.markThrough(channel("c1"), "c1/2")).rejects.toThrow(UnknownTargetError);
    await load(hub, "c1");
    await load(hub, "t1");
    await expect(hub.markThrough(channel("c1"), "t1/1")).rejects.toThrow(UnknownTargetError);
    await expect(hub.markThrough(channel("c2"), "c1/2")).rejects.toThrow(UnknownTargetError);
    await quiet();
    expect(server.requests("PUT", "/read-state")).toHaveLength(0);
    await hub.markThrough(thread, "t1/1");
    await until(() => row(server, "t1").readRevision === 1);
  });

  // covers: RL-287, RL-290, RL-294, RL-296, SE-069
  it("reads a channel to the head that was seen when it was asked for", async () => {
    const server = office();
    server.mark("c2", "ada");
    const { hub } = await readyHub(server);
    const before = server.seen.length;
    const saving = hub.markChannelRead("c1");
    server.post("c1", "ben");
    await saving;
    await until(() => row(server, "c1").readRevision === 3);
    await until(() => hub.snapshot(channel("c1")).observedCount === 1);
    expect(row(server, "c2")).toMatchObject({ readRevision: 0, manualUnread: true });
    expect(server.seen.slice(before).map((r) => r.method)).toEqual(["PUT"]);
  });

  // covers: RL-011, RL-303
  it("resolves when it is saved, though nothing gets through", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    server.online = false;
    expect(await hub.markChannelRead("c1")).toMatchObject({ durability: "saved" });
    expect(hub.sync().status).toBe("pending");
    expect(hub.snapshot(channel("c1")).observedCount).toBe(0);
    expect(row(server, "c1").readRevision).toBe(0);
  });

  // covers: RL-307, RL-311, SE-082
  it("reads all that has something unread, each as it was seen, in one request", async () => {
    const server = office();
    server.scope("c3", "channel", ["ada"]);
    server.scope("c4", "channel", ["ada"]);
    server.mark("c4", "ada");
    const { hub } = await readyHub(server);
    const saving = hub.markAllChannelsRead();
    server.post("c2", "ben");
    await saving;
    await until(() => hub.sync().status === "reconciled");
    const sent = server.requests("POST", "/read-all");
    expect(sent).toHaveLength(1);
    const scopes = sent[0]!.body!["scopes"] as { scope: string; readRevision: number }[];
    expect(scopes.map((s) => [s.scope, s.readRevision]).sort()).toEqual([
      ["c1", 3],
      ["c2", 1],
      ["c4", 0],
      ["t1", 2],
    ]);
    await until(() => hub.badge().messages === 1);
    expect(row(server, "c4").manualUnread).toBe(false);
    await hub.markChannelRead("c2");
    await hub.markAllChannelsRead();
    await quiet();
    expect(server.requests("POST", "/read-all")).toHaveLength(1);
  });

  // covers: RL-308
  it("leaves a channel marked that somebody marks after everything was read", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    await Promise.all([hub.markAllChannelsRead(), hub.markUnread(channel("c2"))]);
    await until(() => hub.sync().status === "reconciled");
    expect(row(server, "c2")).toMatchObject({ readRevision: 1, manualUnread: true });
  });

  it("sends reads one by one where the server refuses them together", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    server.answer = (r) =>
      r.path.endsWith("/read-all")
        ? new Response(JSON.stringify({ status: 400, code: "invalid_request" }), { status: 400 })
        : undefined;
    const { clock } = await readyHub(server, { getToken: () => "ben" });
    clock.pass(0);
    await hub.markAllChannelsRead();
    await until(() => server.requests("POST", "/read-all").length === 1);
    await hub.retrySync();
    await until(() => hub.sync().status === "reconciled");
    expect(row(server, "c1").readRevision).toBe(3);
    expect(hub.losses()).toEqual([]);
  });
});

describe("marking as unread", () => {
  // covers: RL-335, RL-336
  it("sets a mark that other devices see, and changes no count", async () => {
    const server = office();
    server.read("c1", "ada", 3, 0);
    const { hub } = await readyHub(server);
    const other = await readyHub(server);
    await hub.markUnread(channel("c1"));
    expect(hub.snapshot(channel("c1"))).toMatchObject({
      manual: "local",
      observedCount: 0,
      attentionCount: 0,
      exact: true,
    });
    await until(() => other.hub.snapshot(channel("c1")).manual === "synced");
    expect(hub.badge()).toMatchObject({ conversations: 3, messages: 3 });
    await until(() => hub.snapshot(channel("c1")).manual === "synced");
  });

  it("begins at a message, and counts from there where the messages are loaded", async () => {
    const server = office();
    server.read("c1", "ada", 3, 0);
    const { hub } = await readyHub(server);
    await load(hub, "c1");
    server.online = false;
    const message: Target = { kind: "message", channelId: "c1", messageId: "c1/2" };
    await hub.markUnread(message);
    expect(hub.snapshot(channel("c1"))).toMatchObject({
      observedCount: 2,
      exact: true,
      manual: "local",
    });
    expect(hub.snapshot(message)).toMatchObject({ observedCount: 1, manual: "local" });
    server.online = true;
    await hub.retrySync();
    await until(() => row(server, "c1").fromRevision === 2);
    await until(() => hub.snapshot(channel("c1")).manual === "synced");
    expect(hub.snapshot(channel("c1"))).toMatchObject({ observedCount: 2, exact: true });
  });

  // covers: RL-331
  it("is ended by reading the target on purpose", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    await load(hub, "c1");
    await hub.markUnread(channel("c1"));
    await hub.markThrough(channel("c1"), "c1/3");
    await until(() => hub.sync().status === "reconciled");
    expect(row(server, "c1")).toMatchObject({ manualUnread: false, readRevision: 3 });
  });

  // covers: SE-068, SE-070
  it("survives a read of another device that did not see it", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    const late = await readyHub(server);
    server.online = false;
    await late.hub.markChannelRead("c1");
    late.page.show(false);
    server.online = true;
    await hub.retrySync();
    await hub.markUnread(channel("c1"));
    await until(() => row(server, "c1").manualUnread);
    await late.hub.retrySync();
    await until(() => row(server, "c1").readRevision === 3);
    await until(() => late.hub.snapshot(channel("c1")).manual === "synced");
    expect(row(server, "c1").manualUnread).toBe(true);
  });
});
