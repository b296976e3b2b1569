import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Stage, noComplaints, row, visit } from "./stage.js";

const channels = 1_000;
const messages = 10_000;

let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open();
  const { program } = stage;
  await program.ask("PUT", "/members/big", { kind: "human" });
  await program.ask("PUT", "/members/small", { kind: "human" });
  await program.scope("hall", { type: "channel", name: "hall" }, ["big", "small", "ben"]);
  const ids = Array.from({ length: channels }, (_, i) => `room-${String(i).padStart(4, "0")}`);
  const scopes = ids.map((id) => ({ id, type: "channel", name: id }));
  await program.ask("POST", "/scopes:batch", { scopes });
  for (const id of ids) await program.ask("PUT", `/scopes/${id}/members/big`, {});
  for (let from = 0; from < messages; from += 1_000) {
    const batch = Array.from({ length: 1_000 }, (_, i) => ({
      scope: "room-0000",
      opId: `bulk-${from + i}`,
      author: "ben",
      payload: { text: `line ${from + i} of many that somebody wrote` },
    }));
    await program.ask("POST", "/messages:batch", { messages: batch });
  }
});

afterAll(async () => {
  noComplaints(stage);
  await stage.close();
});

/**
 * The 95th percentile of the frames of a list that is scrolled to and fro, and its longest task,
 * in milliseconds.
 */
function frames(page: Page, selector: string): Promise<{ p95: number; longest: number }> {
  return page.locator(selector).evaluate(async (box) => {
    let longest = 0;
    box.scrollTop = box.scrollHeight; // where nothing more is loaded
    for (let i = 0; i < 30; i++) await new Promise((done) => requestAnimationFrame(done));
    const watch = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) longest = Math.max(longest, entry.duration);
    });
    watch.observe({ entryTypes: ["longtask"] });
    const spans: number[] = [];
    let last = performance.now();
    for (let i = 0; i < 90; i++) {
      box.scrollTop += i % 30 < 15 ? -40 : 40;
      await new Promise((done) => requestAnimationFrame(done));
      const now = performance.now();
      spans.push(now - last);
      last = now;
    }
    watch.disconnect();
    spans.sort((a, b) => a - b);
    return { p95: spans[Math.floor(spans.length * 0.95)]!, longest };
  });
}

it("is drawn as smoothly with a thousand channels and ten thousand messages", async () => {
  const open = async (member: string, channel: string) => {
    const context = await stage.device();
    const page = await stage.app(context, member, false);
    await row(page, channel).waitFor();
    await visit(page, channel);
    return page;
  };
  const small = await open("small", "hall");
  const empty = {
    list: await frames(small, ".conversation .messages"),
    rows: await frames(small, ".rows"),
  };
  await small.context().close();

  const big = await open("big", "room-0000");
  const list = big.locator(".conversation .messages");
  // Everything that a window holds is loaded, page by page, as somebody does who goes up.
  for (let loaded = 0, before = -1; loaded !== before && loaded < 1_500; ) {
    before = loaded;
    const count = await list.locator("[data-id]").count();
    await list.evaluate((box) => (box.scrollTop = 0));
    await list.locator("[data-id]").nth(count).waitFor({ state: "attached" });
    loaded = await list.locator("[data-id]").count();
  }
  const full = {
    list: await frames(big, ".conversation .messages"),
    rows: await frames(big, ".rows"),
  };
  await stage.shot(big, "large");
  console.log(`frames, p95 in ms: ${JSON.stringify({ empty, full })}`);
  expect(full.list.p95 / empty.list.p95).toBeLessThanOrEqual(2);
  expect(full.rows.p95 / empty.rows.p95).toBeLessThanOrEqual(2);
  await big.context().close();
});
