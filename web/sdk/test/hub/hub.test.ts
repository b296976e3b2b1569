import { IDBFactory } from "fake-indexeddb";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  type Hub,
  type Target,
  type Timeline,
  connectHub,
  databaseStorage,
} from "../../src/index.js";
import { Program } from "./program.js";

let program: Program;
const open = new Set<Hub>();
let scopes = 0;

beforeAll(async () => {
  program = await Program.start();
});

afterEach(async () => {
  for (const hub of open) await hub.close();
  open.clear();
});

afterAll(() => program.stop());

/** A channel that nobody else uses, with ada and ben. */
async function channel(): Promise<Target & { kind: "channel" }> {
  const channelId = `c${++scopes}`;
  await program.scope(channelId, { type: "channel", name: channelId }, ["ada", "ben"]);
  return { kind: "channel", channelId };
}

function connect(factory = new IDBFactory(), token = program.token("ada")): Hub {
  const storage = databaseStorage(factory);
  const hub = connectHub({ url: program.url, getToken: () => token, storage });
  open.add(hub);
  return hub;
}

/** Resolves when something holds, which is looked at whenever something changes. */
function until(hub: Hub, holds: () => boolean, timeline?: Timeline): Promise<void> {
  return new Promise((resolve) => {
    const ends: (() => void)[] = [];
    const look = () => {
      if (!holds()) return;
      for (const end of ends) end();
      resolve();
    };
    ends.push(hub.subscribeBadge(look), hub.subscribeSync(look), hub.subscribeChannels(look));
    if (timeline) ends.push(timeline.subscribe(look));
    look();
  });
}

describe("against the program", () => {
  it("tells of messages as they come, and of reads on other devices", async () => {
    const c = await channel();
    const laptop = connect();
    const phone = connect();
    await Promise.all([laptop.ensure(), phone.ensure()]);
    await program.post(c.channelId, "ben");
    await program.post(c.channelId, "ben", { mentions: ["ada"] });
    await until(laptop, () => laptop.snapshot(c).observedCount === 2);
    expect(laptop.snapshot(c)).toMatchObject({ attentionCount: 1, exact: true, level: "all" });
    await until(phone, () => phone.snapshot(c).observedCount === 2);
    await phone.markChannelRead(c.channelId);
    expect(phone.snapshot(c).observedCount).toBe(0);
    await until(laptop, () => laptop.snapshot(c).observedCount === 0);
    await until(phone, () => phone.sync().status === "reconciled");
    await until(laptop, () => laptop.badge().display !== null);
  });

  // covers: SE-090
  it("reads rows that were seen, over a page and live messages", async () => {
    const c = await channel();
    const ids = [await program.post(c.channelId, "ben"), await program.post(c.channelId, "ben")];
    const hub = connect();
    await hub.ensure();
    const timeline = hub.timeline(c.channelId);
    const lease = hub.reading(c.channelId);
    await until(hub, () => timeline.snapshot().loaded, timeline);
    expect(hub.snapshot(c).firstUnread).toBe(ids[0]);
    ids.push(await program.post(c.channelId, "ben"));
    await until(hub, () => timeline.snapshot().messages.length === 3, timeline);
    await lease.observe([ids[0]!], { bottom: false });
    expect(hub.snapshot(c).observedCount).toBeLessThanOrEqual(3);
    await until(hub, () => hub.snapshot(c).observedCount === 2 && hub.snapshot(c).exact, timeline);
    await until(hub, () => hub.sync().status === "reconciled");
    expect(hub.snapshot(c)).toMatchObject({ observedCount: 2, exact: true });
    await lease.observe(ids, { bottom: true });
    await until(hub, () => hub.snapshot(c).observedCount === 0 && hub.snapshot(c).exact);
    lease.dispose();
    timeline.dispose();
  });

  it("marks as unread from a message on, for all devices", async () => {
    const c = await channel();
    const ids = [await program.post(c.channelId, "ben"), await program.post(c.channelId, "ben")];
    const hub = connect();
    const phone = connect();
    await Promise.all([hub.ensure(), phone.ensure()]);
    await hub.markChannelRead(c.channelId);
    await until(phone, () => phone.snapshot(c).observedCount === 0);
    const timeline = hub.timeline(c.channelId);
    await until(hub, () => timeline.snapshot().loaded, timeline);
    await hub.markUnread({ kind: "message", channelId: c.channelId, messageId: ids[1]! });
    await until(hub, () => hub.snapshot(c).observedCount === 1 && hub.snapshot(c).exact);
    expect(hub.snapshot(c).manual).not.toBe("none");
    await until(phone, () => phone.snapshot(c).manual === "synced");
    expect(phone.snapshot(c).observedCount).toBe(1);
    await phone.markChannelRead(c.channelId);
    await until(hub, () => hub.snapshot(c).manual === "none");
  });

  it("reads all channels in one request, mutes, and follows", async () => {
    const c = await channel();
    const d = await channel();
    for (const { channelId } of [c, d]) await program.post(channelId, "ben");
    const thread = `t${++scopes}`;
    await program.scope(thread, { type: "thread", parent: c.channelId }, []);
    const hub = connect();
    await hub.ensure();
    expect(hub.following(c.channelId, thread)).toBe("not-following");
    await hub.follow(c.channelId, thread, true);
    await until(hub, () => hub.following(c.channelId, thread) === "following");
    await hub.setLevel(d.channelId, "none");
    await until(hub, () => hub.snapshot(d).muted);
    await hub.markAllChannelsRead();
    await until(hub, () => hub.sync().status === "reconciled" && !hub.badge().hasUnread);
    expect(hub.snapshot(c)).toMatchObject({ observedCount: 0, exact: true });
    await hub.follow(c.channelId, thread, false);
    await until(hub, () => hub.following(c.channelId, thread) === "not-following");
    await program.ask("DELETE", `/scopes/${d.channelId}/members/ada`, {}).catch(() => {});
  });

  // covers: SE-095
  it("saves while the server is down, and sends after a restart of both", async () => {
    const c = await channel();
    await program.post(c.channelId, "ben");
    const factory = new IDBFactory();
    const first = connect(factory);
    await first.ensure();
    await program.kill();
    await first.markChannelRead(c.channelId);
    expect(first.snapshot(c)).toMatchObject({ observedCount: 0 });
    await first.close();
    await program.serve();
    const hub = connect(factory);
    await hub.ensure();
    await until(hub, () => hub.sync().status === "reconciled");
    expect(hub.snapshot(c)).toMatchObject({ observedCount: 0, exact: true });
    const other = connect();
    await other.ensure();
    expect(other.snapshot(c).observedCount).toBe(0);
  });
});
