import { describe, expect, it } from "vitest";
import { type ClientStep, Device } from "./device.js";
import { differs, loadCases, orders } from "./files.js";

interface ClientCase {
  readonly id: string;
  readonly steps: readonly ClientStep[];
}

/** Plays steps on a new device; the first difference, empty for none. */
function play(steps: readonly ClientStep[]): string {
  const device = new Device();
  for (const [i, step] of steps.entries()) {
    const got = JSON.parse(JSON.stringify(device.do(step))) as unknown;
    if (!step.expect) continue;
    const d = differs(`step ${i + 1}, ${step.do}`, step.expect, got);
    if (d !== "") return d;
  }
  return "";
}

/** The steps of a case, once for each order of those that come in any order. */
function* courses(steps: readonly ClientStep[]): Generator<readonly ClientStep[]> {
  const at = steps.findIndex((s) => s.do === "anyOrder");
  if (at < 0) {
    yield steps;
    return;
  }
  const { steps: shuffled = [], expect: then } = steps[at]!;
  for (const order of orders(shuffled)) {
    if (then) order[order.length - 1] = { ...order.at(-1)!, expect: then };
    yield [...steps.slice(0, at), ...order, ...steps.slice(at + 1)];
  }
}

// The same files as every other client runs.
//
// covers: SE-131, SE-132, SE-133, SE-134, SE-135, SE-136, SE-137
describe.each(loadCases<ClientCase>("client"))("client cases: $suite", ({ cases }) => {
  it.each(cases)("$id", ({ steps }) => {
    for (const course of courses(steps)) expect(play(course)).toBe("");
  });
});
