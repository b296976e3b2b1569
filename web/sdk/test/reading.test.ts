import { describe, expect, it, vi } from "vitest";
import { readyHub } from "./support/desk.js";
import { quiet, until } from "./support/clock.js";
import { Server, json } from "./support/server.js";
import type { Hub, Target } from "../src/index.js";

const c1: Target = { kind: "channel", channelId: "c1" };
const bottom = { bottom: true };
const middle = { bottom: false };

/** A channel, a thread in it and a dm; each has as many messages of ben as are asked for. */
function office(messages = 3): Server {
  const server = new Server();
  server.scope("c1", "channel", ["ada", "ben"]);
  server.scope("t1", "thread", ["ada"], "c1");
  server.scope("d1", "dm", ["ada", "ben"]);
  for (const scope of ["c1", "t1", "d1"])
    for (let i = 0; i < messages; i++) server.post(scope, "ben");
  return server;
}

/** The messages of a scope, once they are loaded. */
async function loaded(hub: Hub, scope: string): Promise<string[]> {
  const timeline = hub.timeline(scope);
  await until(() => timeline.snapshot().loaded);
  return timeline.snapshot().messages.map((m) => m.id);
}

const cursor = (server: Server, scope: string) =>
  server.ledger.open(scope).rows.get("ada")!.readRevision;

describe("a reading lease", () => {
  // covers: RL-006, RL-007, RL-040, SE-038
  it("reads nothing by being opened, and what was seen after that", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    const lease = hub.reading("c1");
    await quiet();
    expect(server.requests("PUT", "/read-state")).toHaveLength(0);
    await lease.observe(ids.slice(0, 2), middle);
    expect(hub.snapshot(c1)).toMatchObject({ observedCount: 1, exact: true });
    await until(() => cursor(server, "c1") === 2);
    lease.dispose();
    await lease.observe(ids, bottom);
    await quiet();
    expect(cursor(server, "c1")).toBe(2);
    expect(cursor(server, "t1")).toBe(0);
  });

  it("moves the cursor over the run that begins right after it, never over a gap", async () => {
    const server = office(5);
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    const lease = hub.reading("c1");
    await lease.observe([ids[2]!, ids[3]!], middle);
    await quiet();
    expect(cursor(server, "c1")).toBe(0);
    await lease.observe([ids[0]!], middle);
    await until(() => cursor(server, "c1") === 1);
    await lease.observe([ids[1]!], middle);
    await until(() => cursor(server, "c1") === 4);
  });

  it("goes over own and removed messages, which are no rows to be seen", async () => {
    const server = office(2);
    server.post("c1", "ada");
    server.post("c1", "ben");
    server.remove("c1", server.post("c1", "ben"));
    server.post("c1", "ben");
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    const lease = hub.reading("c1");
    await lease.observe([ids[0]!, ids[1]!, ids[3]!], middle);
    await until(() => cursor(server, "c1") === 4);
    await lease.observe([ids[4]!], middle);
    await until(() => cursor(server, "c1") === 6);
  });

  it("invents no number where the messages do not tell what the server counts", async () => {
    const server = office(2);
    server.ledger.blocks.set("ada", new Set(["carl"]));
    server.post("c1", "carl");
    server.post("c1", "ben");
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    expect(hub.snapshot(c1)).toMatchObject({ observedCount: 3, exact: true });
    server.online = false;
    await hub.reading("c1").observe([ids[0]!], middle);
    expect(hub.snapshot(c1)).toMatchObject({ exact: false, pending: true });
    server.online = true;
    await hub.retrySync();
    await until(() => hub.snapshot(c1).exact);
    expect(hub.snapshot(c1).observedCount).toBe(2);
  });

  it("takes nothing for read that is not loaded down to the cursor", async () => {
    const server = office(150);
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    expect(ids).toHaveLength(100);
    const lease = hub.reading("c1");
    await lease.observe(ids.slice(0, 50), middle);
    await quiet();
    expect(cursor(server, "c1")).toBe(0);
  });

  // covers: RL-017
  it("ignores ids that are not of the scope, and takes the others", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    await hub.reading("c1").observe(["t1/1", "nothing", ids[0]!], middle);
    await until(() => cursor(server, "c1") === 1);
    expect(cursor(server, "t1")).toBe(0);
  });

  // covers: RL-064, RL-084
  it("reads through the receipt at the bottom, and no thread", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    await hub.reading("c1").observe([ids.at(-1)!], bottom);
    expect(hub.snapshot(c1)).toMatchObject({ observedCount: 0, exact: true });
    await until(() => cursor(server, "c1") === 3);
    expect(cursor(server, "t1")).toBe(0);
  });

  // covers: SE-083, SE-090, SE-092
  it("reads what was rendered, not what has come since", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    const lease = hub.reading("c1");
    server.post("c1", "ben");
    await until(() => hub.snapshot(c1).observedCount === 4);
    await lease.observe([ids.at(-1)!], bottom);
    await until(() => cursor(server, "c1") === 3);
    const now = await loaded(hub, "c1");
    await lease.observe([now.at(-1)!], bottom);
    await until(() => cursor(server, "c1") === 4);
  });

  it("reads through a receipt that ends with rows that cannot be read", async () => {
    const server = office();
    server.post("c1", "ben", { readable: false });
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    await hub.reading("c1").observe([ids.at(-1)!], bottom);
    await until(() => cursor(server, "c1") === 3);
  });

  it("reads a whole dm by any row, as far as it was rendered", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "d1");
    await hub.reading("d1").observe([ids[1]!], middle);
    await until(() => cursor(server, "d1") === 2);
  });

  // covers: RL-006, RL-105
  it("reads one thread alone", async () => {
    const server = office();
    server.scope("t2", "thread", ["ada"], "c1");
    server.post("t2", "ben");
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "t1");
    await hub.reading("c1", "t1").observe([ids.at(-1)!], bottom);
    await until(() => cursor(server, "t1") === 3);
    expect([cursor(server, "t2"), cursor(server, "c1")]).toEqual([0, 0]);
  });

  it("is no lease on a thread of another channel", async () => {
    const server = office();
    server.scope("c2", "channel", ["ada"]);
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "t1");
    await hub.reading("c2", "t1").observe(ids, bottom);
    await quiet();
    expect(cursor(server, "t1")).toBe(0);
  });

  // covers: RL-043, SE-073, SE-076
  it("reads nothing on a page that cannot be seen", async () => {
    const server = office();
    const { hub, page } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    page.show(false);
    const lease = hub.reading("c1");
    await lease.observe(ids, bottom);
    await quiet();
    expect(server.requests("PUT", "/read-state")).toHaveLength(0);
    page.show(true);
    await lease.observe(ids, bottom);
    await until(() => cursor(server, "c1") === 3);
  });

  // covers: SE-074, SE-079
  it("reads nothing after a load that failed", async () => {
    const server = office();
    const { hub, clock } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    const lease = hub.reading("c1");
    server.answer = (r) => (r.path.includes("/messages?") ? json({}, 500) : undefined);
    server.cut();
    await quiet();
    clock.pass(1_000);
    await until(() => hub.timeline("c1").snapshot().error !== null);
    await lease.observe(ids, bottom);
    await quiet();
    expect(server.requests("PUT", "/read-state")).toHaveLength(0);
  });

  // covers: RL-028
  it("ends with an access that was lost while there was no stream", async () => {
    const server = office();
    const { hub, clock } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    const lease = hub.reading("c1");
    server.resumes = false;
    server.cut();
    await until(() => hub.snapshot(c1).freshness === "stale");
    server.leave("c1", "ada");
    clock.pass(1_000);
    await until(() => hub.snapshot(c1).observedCount === null);
    server.rejoin("c1", "ada");
    server.post("c1", "ben");
    await until(() => hub.snapshot(c1).observedCount === 1);
    await hub.retrySync(); // messages that could not be loaded meanwhile are loaded now
    await until(() => hub.timeline("c1").snapshot().messages.length === 4);
    await lease.observe(ids, bottom);
    await lease.observe(await loaded(hub, "c1"), bottom);
    await quiet();
    expect(server.requests("PUT", "/read-state")).toHaveLength(0);
  });

  // covers: RL-028
  it("ends with the access, and stays ended when that comes back", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    const lease = hub.reading("c1");
    server.leave("c1", "ada");
    await until(() => hub.snapshot(c1).observedCount === null);
    server.rejoin("c1", "ada");
    server.post("c1", "ben");
    await until(() => hub.snapshot(c1).observedCount === 1);
    await lease.observe(ids, bottom);
    await quiet();
    expect(server.requests("PUT", "/read-state")).toHaveLength(0);
  });

  it("names the first unread message for as long as it is open", async () => {
    const server = office();
    server.read("c1", "ada", 1, 0);
    const { hub } = await readyHub(server);
    expect(hub.snapshot(c1).firstUnread).toBeNull();
    const lease = hub.reading("c1");
    await until(() => hub.snapshot(c1).firstUnread === "c1/2");
    await lease.observe(await loaded(hub, "c1"), bottom);
    expect(hub.snapshot(c1).firstUnread).toBe("c1/2");
    lease.dispose();
    expect(hub.snapshot(c1).firstUnread).toBeNull();
  });

  it("asks the server for the first unread message beyond what is loaded", async () => {
    const server = office(150);
    const { hub } = await readyHub(server);
    hub.reading("c1");
    await until(() => hub.snapshot(c1).firstUnread === "c1/1");
  });
});

describe("a timeline", () => {
  it("tells of what is there now, also when it is opened again", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    const first = hub.timeline("c1");
    await until(() => first.snapshot().loaded);
    first.dispose();
    const again = hub.timeline("c1");
    const call = vi.fn();
    again.subscribe(call);
    await until(() => again.snapshot().loaded);
    await quiet();
    call.mockClear();
    server.post("c1", "ben");
    await until(() => again.snapshot().messages.length === 4);
    await quiet();
    expect(call).toHaveBeenCalledTimes(1);
  });

  it("loads older messages when it is asked to, and reads nothing by that", async () => {
    const server = office(150);
    const { hub } = await readyHub(server);
    const timeline = hub.timeline("c1");
    await until(() => timeline.snapshot().loaded);
    expect(timeline.snapshot()).toMatchObject({ earlier: true });
    await Promise.all([timeline.loadEarlier(), timeline.loadEarlier()]);
    expect(timeline.snapshot().messages).toHaveLength(150);
    expect(timeline.snapshot().earlier).toBe(false);
    await timeline.loadEarlier();
    await quiet();
    const older = server.requests("GET", "/messages").filter((r) => r.path.includes("before="));
    expect(older).toHaveLength(1);
    expect(cursor(server, "c1")).toBe(0);
  });

  it("closes the gap that a broken stream left", async () => {
    const server = office();
    const { hub, clock } = await readyHub(server);
    const timeline = hub.timeline("c1");
    await until(() => timeline.snapshot().loaded);
    server.cut();
    await quiet();
    for (let i = 0; i < 120; i++) server.post("c1", "ben");
    clock.pass(1_000);
    await until(() => timeline.snapshot().messages.length === 123);
    const seqs = timeline.snapshot().messages.map((m) => m.seq);
    expect(seqs).toEqual(Array.from({ length: 123 }, (_, i) => i + 1));
  });
});

describe("manual marks and automatic reads", () => {
  // covers: RL-081
  it("loses a mark that was there at the opening by reading to the bottom", async () => {
    const server = office();
    server.mark("c1", "ada");
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    await hub.reading("c1").observe([ids.at(-1)!], bottom);
    expect(hub.snapshot(c1)).toMatchObject({ manual: "none", observedCount: 0 });
    await until(() => cursor(server, "c1") === 3);
    expect(server.ledger.open("c1").rows.get("ada")!.manualUnread).toBe(false);
  });

  // covers: RL-329
  it("keeps a mark while rows are read one by one", async () => {
    const server = office();
    server.mark("c1", "ada");
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    await hub.reading("c1").observe(ids, middle);
    await until(() => cursor(server, "c1") === 3);
    expect(server.ledger.open("c1").rows.get("ada")!.manualUnread).toBe(true);
    await until(() => hub.snapshot(c1).manual === "synced");
  });

  // covers: SE-081
  it("keeps a mark of another device that comes while the channel is open", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    const lease = hub.reading("c1");
    await lease.observe(ids, bottom);
    await until(() => cursor(server, "c1") === 3);
    server.mark("c1", "ada");
    await until(() => hub.snapshot(c1).manual === "synced");
    const sent = server.requests("PUT", "/read-state").length;
    await lease.observe(ids, bottom);
    await quiet();
    expect(server.requests("PUT", "/read-state")).toHaveLength(sent);
    server.post("c1", "ben");
    await until(() => hub.snapshot(c1).observedCount === 1);
    await lease.observe(await loaded(hub, "c1"), bottom);
    await until(() => cursor(server, "c1") === 4);
    expect(server.ledger.open("c1").rows.get("ada")!.manualUnread).toBe(true);
  });

  // covers: RL-029
  it("stays marked when somebody marks it while a reading is being saved", async () => {
    const server = office();
    const { hub } = await readyHub(server);
    const ids = await loaded(hub, "c1");
    const reading = hub.reading("c1").observe(ids, bottom);
    const marking = hub.markUnread(c1);
    await Promise.all([reading, marking]);
    expect(hub.snapshot(c1).manual).not.toBe("none");
    await until(() => hub.sync().status === "reconciled");
    expect(server.ledger.open("c1").rows.get("ada")!.manualUnread).toBe(true);
  });
});
