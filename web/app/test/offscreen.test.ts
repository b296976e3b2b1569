import { describe, expect, it } from "vitest";
import { type Copy, edgeName, edgesOf } from "../src/view/offscreen.js";
import { type Person, stranger } from "../src/view/people.js";

const view = { top: 100, bottom: 200 };

/** A row of 20 px that begins at a height. */
function row(id: string, top: number, more: Partial<Copy> = {}): Copy {
  return { id, top, bottom: top + 20, unread: true, peer: null, collapsed: null, ...more };
}

const people = (...names: string[]): Person[] => names.map((name) => stranger(name));

describe("what lies out of view", () => {
  // covers: RL-356, RL-357, RL-382
  it("is counted in each direction, with the nearest first, whatever it is", () => {
    const dm = row("d", 20, { peer: stranger("d") });
    const { above, below } = edgesOf([dm, row("a", 40), row("b", 300), row("c", 260)], view);
    expect([above!.count, above!.nearest.id]).toEqual([2, "a"]);
    expect([below!.count, below!.nearest.id]).toEqual([2, "c"]);
  });

  // covers: RL-359
  it("leaves out a conversation of which another copy is in view", () => {
    const found = edgesOf([row("a", 20), row("a", 120), row("a", 300), row("b", 320)], view);
    expect(found.above).toBeNull();
    expect(found.below!.count).toBe(1);
  });

  // covers: RL-357
  it("counts a conversation once, however often it is drawn", () => {
    expect(edgesOf([row("a", 0), row("a", 40)], view).above!.count).toBe(1);
  });

  // covers: RL-360, RL-361
  it("shows the three nearest people", () => {
    const names = ["e", "d", "c", "b", "a"];
    const rows = names.map((id, i) => row(id, i * 16, { peer: stranger(id) }));
    expect(edgesOf(rows, view).above).toMatchObject({ count: 5, people: people("a", "b", "c") });
  });

  // covers: RL-362, RL-403
  it("shows nobody for a group, or for what takes no part", () => {
    const muted = row("m", 10, { unread: false, peer: stranger("m") });
    expect(edgesOf([row("g", 20), muted], view).above).toMatchObject({ count: 1, people: [] });
  });

  // covers: RL-376
  it("takes collapsed sections at their summary's place", () => {
    const above = edgesOf([row("a", 40, { collapsed: "dms" })], view).above!;
    expect(above.nearest.collapsed).toBe("dms");
    expect(edgesOf([row("a", 120, { collapsed: "dms" })], view)).toEqual({
      above: null,
      below: null,
    });
  });

  // covers: RL-378
  it.each([
    [80, "above"],
    [81, "in view"],
    [199, "in view"],
    [200, "below"],
  ])("begins where nothing of a row is seen: at %i it is %s", (top, where) => {
    const { above, below } = edgesOf([row("a", top)], view);
    expect(above ? "above" : below ? "below" : "in view").toBe(where);
  });

  // covers: RL-367
  it("is called by number and direction, and names nobody", () => {
    const dm = row("ben", 20, { peer: stranger("ben") });
    const { above } = edgesOf([dm], view);
    expect(edgeName(above!, "above")).toBe("1 unread conversation above");
    expect(edgeName({ ...above!, count: 4 }, "below")).toBe("4 unread conversations below");
  });
});
