import { afterAll, beforeAll, expect, it } from "vitest";
import { Stage, heard, isRead, noComplaints, pass, row, says, stopClock, visit } from "./stage.js";

let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open();
});

afterAll(async () => {
  noComplaints(stage);
  await stage.close();
});

/** A page with a clock in hand, that shows a channel with a few messages, or with many. */
async function reader(id: string, count: number) {
  const ids = await stage.channel(id, count);
  await stage.channel(`${id}-away`, 0);
  const context = await stage.device();
  const page = await stage.app(context);
  await says(page, id, `${count} unread`);
  await stopClock(page);
  await visit(page, id);
  return { page, ids, end: () => context.close() };
}

// covers: RL-035
it("reads what was looked at for a while, and not before", async () => {
  const { page, end } = await reader("calm", 3);
  await pass(page, 250);
  expect(await heard(stage, page, "calm")).toContain("3 unread");
  await pass(page, 400);
  await isRead(page, "calm");
  await end();
});

it("begins anew when the list is scrolled", async () => {
  const { page, end } = await reader("scrolled", 40);
  const list = page.locator(".conversation .messages");
  await pass(page, 200);
  for (let i = 0; i < 6; i++) {
    await list.evaluate((box, by) => (box.scrollTop += by), i % 2 ? -40 : 40);
    await pass(page, 200);
  }
  expect(await heard(stage, page, "scrolled")).toContain("40 unread");
  await list.evaluate((box) => (box.scrollTop = box.scrollHeight));
  await pass(page, 100);
  await pass(page, 500);
  await isRead(page, "scrolled"); // the bottom reads everything that was loaded
  await end();
});

it("reads rows from the first on as they are seen, not those below the view", async () => {
  const { page, end } = await reader("long", 60);
  await pass(page, 1_000);
  await says(page, "long", /, (4\d|5\d) unread/);
  await page.locator(".conversation .separator").waitFor();
  await end();
});

// covers: RL-058
it("reads nothing while the focus is in another pane", async () => {
  const { page, end } = await reader("unfocused", 2);
  await page.locator("#search").focus();
  await pass(page, 2_000);
  expect(await heard(stage, page, "unfocused")).toContain("2 unread");
  await page.locator(".conversation textarea").focus();
  await pass(page, 2_000);
  await isRead(page, "unfocused");
  await end();
});

it("reads nothing in a hidden tab", async () => {
  const { page, end } = await reader("hidden", 2);
  const show = (state: string) =>
    page.evaluate((s) => {
      Object.defineProperty(document, "visibilityState", { value: s, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, state);
  await show("hidden");
  await pass(page, 2_000);
  expect(await heard(stage, page, "hidden")).toContain("2 unread");
  await show("visible");
  await pass(page, 2_000);
  await isRead(page, "hidden");
  await end();
});

it("reads nothing under a dialog", async () => {
  const { page, end } = await reader("covered", 2);
  await page.getByRole("button", { name: /^Activity/ }).click();
  await page.locator("dialog[open]").waitFor();
  await pass(page, 2_000);
  expect(await heard(stage, page, "covered")).toContain("2 unread");
  await page.keyboard.press("Escape");
  await page.locator(".conversation textarea").focus();
  await pass(page, 2_000);
  await isRead(page, "covered");
  await end();
});

it("begins anew while the pane moves", async () => {
  const { page, end } = await reader("moving", 2);
  for (let i = 0; i < 6; i++) {
    await page.setViewportSize({ width: 1100 + (i % 2) * 40, height: 700 });
    await page.evaluate(() => new Promise((done) => queueMicrotask(() => done(0))));
    await pass(page, 250);
  }
  expect(await heard(stage, page, "moving")).toContain("2 unread");
  await pass(page, 1_000);
  await isRead(page, "moving");
  await end();
});

// covers: RL-055
it("reads the conversation, and nothing else, beside the members", async () => {
  const { page, end } = await reader("beside", 2);
  await page.getByRole("button", { name: "Members" }).click();
  await page.locator(".people li").first().waitFor();
  await pass(page, 2_000);
  expect(await heard(stage, page, "beside")).toContain("2 unread");
  await page.locator(".conversation textarea").focus();
  await pass(page, 2_000);
  await isRead(page, "beside");
  await end();
});

// covers: RL-049, RL-052, RL-391, RL-392
it("reads a thread by looking into it, or by going back to its channel", async () => {
  const [root] = await stage.channel("forum", 1);
  const parent = { type: "thread", name: "talk", parent: "forum", rootMessage: root };
  await stage.program.ask("PUT", "/scopes/talk", parent);
  await stage.program.ask("PUT", "/scopes/talk/follow?member=ada", { following: true });
  for (let i = 0; i < 2; i++) await stage.program.post("talk", "ben");
  const context = await stage.device();
  const page = await stage.app(context);
  await stopClock(page);
  await visit(page, "forum");
  await pass(page, 1_000);
  const button = page.locator(".thread-link");
  await button.filter({ hasText: "2 replies" }).waitFor();
  expect(await button.getAttribute("aria-label")).toContain("2 unread");
  await button.hover();
  await pass(page, 1_000);
  await button.click(); // the way of a link: only what has the focus is read
  await page.locator(".side .message").nth(1).waitFor();
  await pass(page, 2_000);
  expect(await heard(stage, page, "forum")).toContain("1 thread with replies");
  await page.locator(".side .messages").focus();
  await pass(page, 2_000);
  await page.locator(".activity").waitFor({ state: "detached" });
  expect(await button.textContent()).toBe("2 replies");

  await visit(page, "barrier1").catch(() => undefined);
  await row(page, "forum").click();
  await stage.program.post("talk", "ben");
  await page.locator(".side .message").nth(2).waitFor();
  await page.locator(".conversation textarea").focus();
  await pass(page, 2_000);
  await page.locator(".activity").waitFor({ state: "detached" });
  await context.close();
});
