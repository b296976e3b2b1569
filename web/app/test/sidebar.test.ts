import { describe, expect, it } from "vitest";
import { rowOf, sectionsOf } from "../src/view/sidebar.js";
import { talk, thread } from "./support/things.js";

const look = (...of: Parameters<typeof talk>) => {
  const { strong, dot } = rowOf(talk(...of));
  return { strong, dot };
};

describe("a row of the sidebar", () => {
  // covers: RL-337, RL-338, RL-339, RL-340
  it.each([
    ["nothing", 0, 0, {}, { strong: false, dot: false }],
    ["ordinary backlog", 12, 0, {}, { strong: true, dot: false }],
    ["a manual mark", 0, 0, { manual: "local" }, { strong: true, dot: false }],
    ["a mention alone", 1, 1, {}, { strong: false, dot: true }],
    ["both", 3, 1, {}, { strong: true, dot: true }],
  ] as const)("has its weight and its dot apart: %s", (_name, unread, attention, more, want) => {
    expect(look("c", "channel", unread, attention, more)).toEqual(want);
  });

  // covers: RL-342, RL-345
  it.each([
    ["a dm", talk("d", "dm", 1, 1)],
    ["a mention", talk("c", "channel", 1, 1)],
    ["a reply in a thread", talk("c", "channel", 0, 0, { threads: [thread("t", 1)] })],
    ["all at once", talk("d", "dm", 2, 2, { threads: [thread("t", 1), thread("u", 2)] })],
  ])("has one dot for %s", (_name, conversation) => {
    expect(rowOf(conversation).dot).toBe(true);
  });

  // covers: RL-349, RL-350
  it.each([
    ["ordinary", talk("s", "session", 1, 0, { level: "none" }), true],
    ["directed", talk("s", "session", 1, 1, { level: "none" }), true],
    ["a reply", talk("s", "session", 0, 0, { level: "none", threads: [thread("t", 1)] }), true],
    ["a mark", talk("s", "session", 0, 0, { level: "none", manual: "synced" }), true],
    ["nothing", talk("s", "session", 0, 0), false],
  ])("of a solo chat is strong though muted, and never dotted: %s", (_name, of, strong) => {
    expect(rowOf(of)).toMatchObject({ strong, dot: false });
  });

  // covers: RL-373
  it("takes part in what lies out of view by a thread alone", () => {
    expect(rowOf(talk("c", "channel", 0, 0, { threads: [thread("t", 1)] })).unread).toBe(true);
    expect(rowOf(talk("c", "channel", 0)).unread).toBe(false);
  });

  // covers: RL-351
  it("looks the same for nothing known and for nothing unread", () => {
    expect(rowOf(talk("c", "channel", null, null))).toEqual(rowOf(talk("c", "channel", 0, 0)));
  });

  // covers: RL-355
  it.each([
    ["a mention", talk("c", "channel", 1, 1)],
    ["a relevant reply", talk("c", "channel", 0, 0, { threads: [thread("t", 1)] })],
    ["a mark", talk("c", "channel", 0, 0, { manual: "synced" })],
  ])("stays noticeable after a catch-up by %s", (_name, conversation) => {
    const row = rowOf(conversation);
    expect(row.dot || row.strong).toBe(true);
  });

  it("says nothing of ordinary backlog where only mentions were wanted", () => {
    const level = "mentions";
    expect(look("c", "channel", 5, 0, { level })).toEqual({ strong: false, dot: false });
    expect(look("c", "channel", 5, 1, { level })).toEqual({ strong: false, dot: true });
  });

  // covers: RL-346, RL-213
  it("groups unread replies by thread, and of an unfollowed one what names the member", () => {
    const stopped = { level: "mentions", attentionCount: 0 } as const;
    const threads = [thread("t", 2), thread("u", 1), thread("v", 4, stopped)];
    const named = thread("w", 4, { level: "mentions", attentionCount: 1 });
    const row = rowOf(talk("c", "channel", 0, 0, { threads: [...threads, named] }));
    expect(row.threads.map(({ id, replies }) => [id, replies])).toEqual([
      ["t", 2],
      ["u", 1],
      ["w", 1],
    ]);
  });
});

describe("a muted row", () => {
  const mute = { level: "none" } as const;

  // covers: RL-395, RL-398, RL-401, RL-405, RL-409
  it.each([
    ["ordinary backlog", talk("c", "channel", 9, 0, mute), false],
    ["a mention", talk("c", "channel", 9, 1, mute), false],
    ["a dm", talk("d", "dm", 2, 2, mute), false],
    ["a thread", talk("c", "channel", 0, 0, { ...mute, threads: [thread("t", 1)] }), false],
    ["a mark", talk("c", "channel", 0, 0, { ...mute, manual: "local" }), true],
  ])("is strong by a mark alone and has no dot: %s", (_name, conversation, strong) => {
    expect(rowOf(conversation)).toMatchObject({ strong, dot: false, muted: true });
  });

  // covers: RL-396, RL-402
  it.each([
    ["a mention", talk("c", "channel", 9, 1, mute)],
    ["a mark", talk("c", "channel", 0, 0, { ...mute, manual: "local" })],
    ["a reply", talk("c", "channel", 0, 0, { ...mute, threads: [thread("t", 1)] })],
    ["a dm", talk("d", "dm", 2, 2, mute)],
    ["a solo chat", talk("s", "session", 2, 0, mute)],
  ])("adds nothing to what lies out of view: %s", (_name, conversation) => {
    expect(rowOf(conversation).unread).toBe(false);
  });

  // covers: RL-394, RL-406
  it("keeps its threads and its number for those who ask", () => {
    const row = rowOf(talk("c", "channel", 7, 0, { ...mute, threads: [thread("t", 1)] }));
    expect(row.threads).toHaveLength(1);
    expect(row.says).toBe("7 unread, 1 thread with replies, muted");
  });

  // covers: RL-407
  it("has its dots again once it is not muted, from what was there", () => {
    const of = { threads: [thread("t", 1)] };
    expect(rowOf(talk("c", "channel", 3, 1, { ...of, ...mute })).dot).toBe(false);
    expect(rowOf(talk("c", "channel", 3, 1, of))).toMatchObject({ dot: true, strong: true });
  });
});

describe("the sections", () => {
  const all = [
    talk("zeta", "channel", 0),
    talk("alpha", "channel", 0),
    talk("ben", "dm", 1, 1),
    talk("dora", "dm", 0),
    talk("fix", "task", 0),
    talk("agent", "session", 0),
    talk("a thread", "thread", 1),
  ];

  it("are by type and name, without threads", () => {
    const found = sectionsOf(all, null).map((s) => [s.id, s.rows.map((row) => row.id)]);
    expect(found).toEqual([
      ["channels", ["alpha", "zeta"]],
      ["dms", ["ben", "dora"]],
      ["tasks", ["fix"]],
      ["sessions", ["agent"]],
    ]);
  });

  // covers: RL-354
  it("show the favourite apart, by the mute rules of other dms", () => {
    const muted = [...all.slice(0, 2), talk("ben", "dm", 1, 1, { level: "none" })];
    const [first, , third] = sectionsOf(muted, "ben");
    expect(first).toMatchObject({ id: "favourite", rows: [{ id: "ben", dot: false }] });
    expect(first!.rows[0]!.strong).toBe(false);
    expect(third).toBeUndefined();
  });

  // covers: RL-375
  it("keep what a search finds", () => {
    const found = sectionsOf(all, null, " A").flatMap((s) => s.rows.map((row) => row.id));
    expect(found).toEqual(["alpha", "zeta", "dora", "agent"]);
  });
});
