import type { Badge, Message, SyncState } from "@tidemark/sdk";
import { describe, expect, it } from "vitest";
import { iconOf, syncWords, titleOf } from "../src/view/attention.js";
import { hueOf, initialsOf, namedIn, shapeOf, stranger } from "../src/view/people.js";
import { threadButton } from "../src/view/threads.js";
import { itemsOf, textOf } from "../src/view/timeline.js";
import { snapshot } from "./support/things.js";

describe("a thread's button", () => {
  // covers: RL-385, RL-393
  it("shows the total with what this client sent since, read or not", () => {
    expect(threadButton(5, 2, snapshot({ observedCount: 3 })).label).toBe("7 replies");
    expect(threadButton(5, 2, snapshot()).label).toBe("7 replies");
  });

  // covers: RL-386
  it.each([
    ["unread replies", snapshot({ observedCount: 1 }), true],
    ["a mark", snapshot({ manual: "synced" }), true],
    ["nothing", snapshot(), false],
  ])("has a dot for %s", (_name, of, dot) => {
    expect(threadButton(1, 0, of).dot).toBe(dot);
  });

  // covers: RL-387
  it("is called otherwise where evidence is current, stale, or known here only", () => {
    const names = [
      snapshot({ observedCount: 2 }),
      snapshot({ observedCount: 2, freshness: "stale" }),
      snapshot({ observedCount: 2, manual: "local" }),
    ].map((of) => threadButton(5, 0, of).name);
    expect(new Set(names).size).toBe(3);
  });

  // covers: RL-388
  it.each([null, 0])("claims nothing where unread is %s", (observedCount) => {
    const button = threadButton(5, 0, snapshot({ observedCount }));
    expect(button).toEqual({ label: "5 replies", dot: false, name: "5 replies. Open thread" });
  });
});

describe("people", () => {
  // covers: RL-364, RL-365
  it("have shapes by kind and initials where there is no picture", () => {
    expect(shapeOf(stranger("a"))).toBe("circle");
    expect(shapeOf({ ...stranger("a"), kind: "agent" })).toBe("squircle");
    const names = ["Ada Lindqvist", "otto", "Otto (agent)", "Ana María de la Cruz", ""];
    expect(names.map(initialsOf)).toEqual(["AL", "O", "O", "AC", "?"]);
    expect(hueOf("ada")).toBe(hueOf("ada"));
  });

  it("are named by their ids in a text", () => {
    const { mentions, everyone } = namedIn("hello @Ben, and @everyone but @bennet", ["ada", "ben"]);
    expect([mentions, everyone]).toEqual([["ben"], true]);
  });
});

describe("a timeline", () => {
  const now = new Date(2026, 5, 3, 12).getTime();
  const at = (id: string, author: string, minutes: number): Message => ({
    id,
    seq: minutes,
    author,
    createdAt: new Date(now - minutes * 60_000).toISOString(),
  });

  it("joins what one author wrote at once, and breaks at days and at the separator", () => {
    const list = [at("a", "ben", 3000), at("b", "ben", 9), at("c", "ben", 8), at("d", "ben", 7)];
    const items = itemsOf(list, "d", now).map((item) =>
      item.kind === "message" ? `${item.key}${item.joined ? " joined" : ""}` : item.kind,
    );
    expect(items).toEqual(["day", "a", "day", "b", "c joined", "unread", "d"]);
  });

  it("names what is no text", () => {
    expect(textOf({ id: "a", seq: 1, kind: "tool", payload: { x: 1 } })).toBe("(tool)");
    expect(textOf({ id: "a", seq: 1, payload: { text: "hi" } })).toBe("hi");
  });
});

describe("the page", () => {
  const badge = (more: Partial<Badge>): Badge => ({
    messages: 0,
    conversations: 0,
    attention: 0,
    display: null,
    hasUnread: false,
    complete: false,
    ...more,
  });

  // covers: RT-382
  it("says in its title and icon what is known, and nothing where nothing is", () => {
    expect(titleOf(badge({}), "General")).toBe("General · Tidemark");
    expect(titleOf(badge({ hasUnread: true }), "")).toBe("• Tidemark");
    expect(titleOf(badge({ hasUnread: true, display: 7 }), "")).toBe("(7) Tidemark");
    expect([badge({}), badge({ hasUnread: true }), badge({ hasUnread: true, display: 120 })].map(
      iconOf,
    )).toEqual(["", "•", "99+"]);
  });

  it("tells how it stands with the server in words of their own", () => {
    const all = ["loading", "pending", "reconciled", "stale", "error"] as const;
    const words = all.map((status) => {
      const state: SyncState = { capability: "frontier-sync", status, error: null };
      return syncWords(state).text;
    });
    expect(new Set(words).size).toBe(all.length);
  });
});
