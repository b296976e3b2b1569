import { describe, expect, it, vi } from "vitest";
import { type Reading, type Surface, Dwell } from "../src/index.js";
import { ManualClock } from "./support/clock.js";
import { Page } from "./support/desk.js";

const rows: Surface = { focused: true, covered: false, messageIds: ["m1", "m2"], bottom: null };

function desk() {
  const clock = new ManualClock();
  const visibility = new Page();
  const observe = vi.fn((_ids: readonly string[], _at: { bottom: boolean }) => Promise.resolve());
  const settled = vi.fn();
  const reading: Reading = { observe, settled, dispose: () => {} };
  const dwell = new Dwell(reading, { clock, visibility });
  return { clock, visibility, observe, settled, dwell };
}

describe("dwell", () => {
  // covers: RL-035, RL-036
  it.each([
    [299, 0],
    [300, 1],
    [301, 1],
  ])("after %i ms observes %i times", (ms, times) => {
    const { clock, observe, dwell } = desk();
    dwell.settled();
    dwell.update(rows);
    clock.pass(ms);
    expect(observe).toHaveBeenCalledTimes(times);
  });

  // covers: RL-034, RL-044
  it.each([
    ["focus", { focused: false }],
    ["nothing above it", { covered: true }],
    ["rows in full view", { messageIds: [] }],
  ])("needs %s", (_what, lacks: Partial<Surface>) => {
    const { clock, observe, dwell } = desk();
    dwell.settled();
    dwell.update({ ...rows, ...lacks });
    clock.pass(10_000);
    expect(observe).not.toHaveBeenCalled();
    dwell.update(rows);
    clock.pass(300);
    expect(observe).toHaveBeenCalledWith(["m1", "m2"], { bottom: false });
  });

  // covers: RL-034, RL-038, RL-045
  it("needs a list that has stopped moving, and wakes when it is said to", () => {
    const { clock, observe, settled, dwell } = desk();
    dwell.update(rows);
    clock.pass(10_000);
    expect(observe).not.toHaveBeenCalled();
    dwell.settled();
    expect(settled).toHaveBeenCalledTimes(1);
    clock.pass(300);
    expect(observe).toHaveBeenCalledTimes(1);
    dwell.moved();
    clock.pass(10_000);
    expect(observe).toHaveBeenCalledTimes(1);
    dwell.settled();
    clock.pass(300);
    expect(observe).toHaveBeenCalledTimes(2);
  });

  // covers: RL-034, RL-043
  it("begins anew when the page was hidden", () => {
    const { clock, visibility, observe, dwell } = desk();
    dwell.settled();
    dwell.update(rows);
    clock.pass(250);
    visibility.show(false);
    clock.pass(10_000);
    expect(observe).not.toHaveBeenCalled();
    visibility.show(true);
    clock.pass(299);
    expect(observe).not.toHaveBeenCalled();
    clock.pass(1);
    expect(observe).toHaveBeenCalledTimes(1);
  });

  // covers: RL-037
  it("begins anew after a scroll, a change of content and a change of focus", () => {
    const { clock, observe, dwell } = desk();
    dwell.settled();
    const changes = [
      () => {
        dwell.moved();
        dwell.settled();
      },
      () => dwell.update({ ...rows, messageIds: ["m2", "m3"] }),
      () => {
        dwell.update({ ...rows, focused: false });
        dwell.update(rows);
      },
    ];
    dwell.update(rows);
    for (const change of changes) {
      clock.pass(250);
      change();
    }
    expect(observe).not.toHaveBeenCalled();
    clock.pass(300);
    expect(observe).toHaveBeenCalledTimes(1);
  });

  // covers: RL-059, RL-060
  it("observes the bottom though no row fits into the view", () => {
    const { clock, observe, dwell } = desk();
    dwell.settled();
    dwell.update({ ...rows, messageIds: [], bottom: "m9" });
    clock.pass(300);
    expect(observe).toHaveBeenCalledWith(["m9"], { bottom: true });
  });

  it("observes nothing once it is disposed of", () => {
    const { clock, observe, dwell } = desk();
    dwell.settled();
    dwell.update(rows);
    dwell.dispose();
    clock.pass(10_000);
    expect(observe).not.toHaveBeenCalled();
  });
});
