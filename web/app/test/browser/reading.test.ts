import { afterAll, beforeAll, expect, it } from "vitest";
import {
  Stage,
  appears,
  heard,
  isRead,
  noComplaints,
  pass,
  row,
  says,
  stopClock,
  visit,
} from "./stage.js";

let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open();
});

afterAll(async () => {
  noComplaints(stage);
  await stage.close();
});

const composer = ".conversation textarea";

/**
 * A page with a clock in hand, that shows a channel in which messages came while the focus was
 * elsewhere.
 */
async function reader(id: string, count: number) {
  await stage.channel(id, 0);
  const context = await stage.device();
  const page = await stage.app(context);
  await visit(page, id);
  await page.locator("#search").focus();
  await stage.channel(id, count);
  await says(page, id, `${count} unread`);
  await page.locator(".conversation .message").nth(count - 1).waitFor();
  await stopClock(page);
  await pass(page, 1_000);
  return { page, end: () => context.close() };
}

// covers: RL-035, RL-046
it("reads what was looked at for a while, and not before", async () => {
  const { page, end } = await reader("calm", 3);
  await page.locator(composer).focus();
  await pass(page, 290);
  expect(await heard(stage, page, "calm")).toContain("3 unread");
  await pass(page, 20);
  await isRead(page, "calm");
  await end();
});

it("begins anew when the list is scrolled", async () => {
  const { page, end } = await reader("scrolled", 40);
  const list = page.locator(".conversation .messages");
  await list.focus();
  for (let i = 0; i < 6; i++) {
    await pass(page, 200);
    await list.evaluate((box, by) => {
      const moved = new Promise((done) => box.addEventListener("scroll", done, { once: true }));
      box.scrollTop += by;
      return moved.then(() => undefined);
    }, i % 2 ? 40 : -40);
  }
  expect(await heard(stage, page, "scrolled")).toContain("40 unread");
  await pass(page, 1_000);
  await isRead(page, "scrolled"); // the bottom reads everything that was loaded
  await end();
});

it("reads rows from the first on as they are seen, not those below the view", async () => {
  const { page, end } = await reader("long", 60);
  const list = page.locator(".conversation .messages");
  await list.evaluate((box) => (box.scrollTop = 0));
  await pass(page, 1_000);
  const view = await list.evaluate((box) => {
    const end = box.getBoundingClientRect().bottom;
    const rows = [...box.querySelectorAll("[data-id]")];
    return rows.filter((each) => each.getBoundingClientRect().bottom <= end).length;
  });
  await list.focus();
  await pass(page, 1_000);
  await says(page, "long", `, ${60 - view} unread`);
  await end();
});

// covers: RL-058
it("reads nothing while the focus is in another pane", async () => {
  const { page, end } = await reader("unfocused", 2);
  await pass(page, 2_000);
  expect(await heard(stage, page, "unfocused")).toContain("2 unread");
  await page.locator(composer).focus();
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
  await page.locator(composer).focus();
  await pass(page, 2_000);
  expect(await heard(stage, page, "hidden")).toContain("2 unread");
  await show("visible");
  await pass(page, 2_000);
  await isRead(page, "hidden");
  await end();
});

it("reads nothing under a dialog, though its list had the focus", async () => {
  const { page, end } = await reader("covered", 2);
  await page.evaluate(() => {
    const dialog = document.createElement("dialog");
    document.body.append(dialog);
    dialog.show();
    document.querySelector<HTMLElement>(".conversation textarea")!.focus();
  });
  await pass(page, 2_000);
  expect(await heard(stage, page, "covered")).toContain("2 unread");
  await page.evaluate(() => document.querySelector("dialog")!.remove());
  await page.locator("#search").focus();
  await page.locator(composer).focus();
  await pass(page, 2_000);
  await isRead(page, "covered");
  await end();
});

it("begins anew while the pane moves", async () => {
  const { page, end } = await reader("moving", 2);
  await page.locator(composer).focus();
  for (let i = 0; i < 6; i++) {
    await pass(page, 200);
    await page.setViewportSize({ width: 1000 + (i % 2) * 40, height: 700 });
    await page.evaluate(
      () =>
        new Promise<void>((done) => {
          const sizes = new ResizeObserver(() => done()); // the frame in which all are told
          sizes.observe(document.body);
        }),
    );
  }
  expect(await heard(stage, page, "moving")).toContain("2 unread");
  await pass(page, 1_000);
  await isRead(page, "moving");
  await end();
});

// covers: RL-055
it("reads the conversation by itself alone beside the members", async () => {
  const { page, end } = await reader("beside", 2);
  await page.getByRole("button", { name: "Members" }).click();
  await appears(page, ".people li");
  await pass(page, 2_000);
  expect(await heard(stage, page, "beside")).toContain("2 unread");
  await page.locator(composer).focus();
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
  await visit(page, "forum");
  const button = page.locator(".thread-link");
  await button.filter({ hasText: "2 replies" }).waitFor();
  expect(await button.getAttribute("aria-label")).toContain("2 unread");
  await stopClock(page);
  await button.hover();
  await pass(page, 1_000);
  await button.click(); // the way of a link: only what has the focus is read
  await appears(page, ".side .message");
  await pass(page, 2_000);
  expect(await heard(stage, page, "forum")).toContain("1 thread with replies");
  await page.locator(".side .messages").focus();
  await pass(page, 2_000);
  await page.locator(".activity").waitFor({ state: "detached" });
  expect(await button.textContent()).toBe("2 replies");

  await row(page, "forum").click(); // a return by choice: the thread beside it is read as well
  await stage.program.post("talk", "ben");
  await page.locator(".side .message").nth(2).waitFor();
  await page.locator(composer).focus();
  await pass(page, 2_000);
  await page.locator(".activity").waitFor({ state: "detached" });
  await context.close();
});
