import { describe, expect, it } from "vitest";
import { type Screen, surfacesOf } from "../src/view/surface.js";

const side = { kind: "thread", channelId: "c", rootId: "t" } as const;
const plain: Screen = {
  channelId: "c",
  focus: "elsewhere",
  visit: "plain",
  side: null,
  mainThread: null,
};
const at = (more: Partial<Screen>) => surfacesOf({ ...plain, ...more });

describe("a reading surface", () => {
  // covers: RL-046, RL-058
  it.each([
    ["list", true],
    ["composer", true],
    ["inside", false],
    ["elsewhere", false],
  ] as const)("is the main list where the focus is in %s", (focus, main) => {
    expect(at({ focus }).main).toBe(main);
  });

  // covers: RL-047, RL-048
  it.each(["thread", "thread-tab"] as const)("is a thread with the focus in its %s", (focus) => {
    expect(at({ side, focus, visit: "link" })).toEqual({ main: false, thread: true });
  });

  // covers: RL-049, RL-050
  it("is the thread beside a channel that was chosen, while the focus is in the channel", () => {
    expect(at({ side, focus: "composer" })).toEqual({ main: true, thread: true });
    expect(at({ side, focus: "inside" })).toEqual({ main: false, thread: true });
    expect(at({ side, focus: "elsewhere" })).toEqual({ main: false, thread: false });
  });

  // covers: RL-051
  it("is no thread by grant where one is in the main pane", () => {
    expect(at({ side, focus: "inside", mainThread: "t" }).thread).toBe(false);
  });

  // covers: RL-052, RL-056
  it.each(["link", "restored"] as const)("is only what has the focus after a %s", (visit) => {
    expect(at({ side, focus: "composer", visit })).toEqual({ main: true, thread: false });
  });

  // covers: RL-053
  it("is the main list alone where the pane is collapsed", () => {
    expect(at({ focus: "composer", side: null })).toEqual({ main: true, thread: false });
  });

  // covers: RL-054
  it("is no thread of another channel", () => {
    const other = { ...side, channelId: "other" };
    expect(at({ side: other, focus: "composer" })).toEqual({ main: true, thread: false });
    expect(at({ side: other, focus: "thread" }).thread).toBe(false);
  });

  // covers: RL-055
  it.each(["members", "media"] as const)("is never a view of %s", (kind) => {
    const found = at({ side: { kind, channelId: "c" }, focus: "composer" });
    expect(found).toEqual({ main: true, thread: false });
  });
});
