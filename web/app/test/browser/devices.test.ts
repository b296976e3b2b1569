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

it("shows on one device what was read and marked on the other", async () => {
  await stage.channel("shared", 3);
  const [laptop, phone] = [await stage.app(), await stage.app()];
  await says(phone, "shared", "3 unread");
  await visit(laptop, "shared");
  await isRead(phone, "shared");
  await laptop.getByRole("button", { name: "Conversation actions" }).click();
  await laptop.getByRole("menuitem", { name: "Mark as unread" }).click();
  await says(phone, "shared", "marked as unread");
  await laptop.context().close();
  await phone.context().close();
});

it("keeps reads that were earned without a server, though the tab is closed", async () => {
  await stage.channel("tunnel", 2);
  const device = await stage.device();
  const page = await stage.app(device);
  await visit(page, "tunnel");
  await isRead(page, "tunnel");
  await page.locator("#search").focus();
  await stage.channel("tunnel", 2);
  await says(page, "tunnel", "2 unread");
  await page.locator(".conversation .message").nth(3).waitFor();
  await stage.program.kill();
  await page.locator(".conversation textarea").focus();
  await isRead(page, "tunnel");
  await page.close();

  await stage.program.serve();
  await stage.app(device);
  const other = await stage.app();
  await isRead(other, "tunnel");
  await device.close();
  await other.context().close();
});

it("keeps a mark by hand against a late read by looking on the other device", async () => {
  await stage.channel("marked", 0);
  const [laptop, phone] = [await stage.app(), await stage.app()];
  await visit(laptop, "marked");
  await laptop.locator("#search").focus();
  await stage.channel("marked", 2);
  await laptop.locator(".conversation .message").nth(1).waitFor();
  await stopClock(laptop);
  await pass(laptop, 500);
  await laptop.context().setOffline(true);
  await laptop.locator(".conversation textarea").focus();
  await pass(laptop, 2_000); // earned, saved here, and not sent
  await isRead(laptop, "marked");

  await says(phone, "marked", "2 unread");
  await visit(phone, "marked");
  await isRead(phone, "marked");
  await phone.locator("#search").focus();
  await phone.getByRole("button", { name: "Conversation actions" }).click();
  await phone.getByRole("menuitem", { name: "Mark as unread" }).click();
  await says(phone, "marked", "marked as unread");

  await laptop.context().setOffline(false);
  await laptop.clock.resume();
  await says(laptop, "marked", "marked as unread");
  expect(await heard(stage, phone, "marked")).toContain("marked as unread");
  await laptop.context().close();
  await phone.context().close();
});

// covers: RL-399, RL-404
it("shows a mute once the server has taken it, and never before", async () => {
  await stage.channel("noisy", 2);
  const page = await stage.app();
  await says(page, "noisy", "2 unread");
  await page.locator("#search").focus();
  let let_go = () => {};
  const held = new Promise<void>((resolve) => (let_go = resolve));
  await page.route("**/scopes/noisy/members/ada", async (route) => {
    await held;
    await route.continue();
  });
  await row(page, "noisy").click();
  await page.locator("#search").focus();
  await page.getByRole("button", { name: "Conversation actions" }).click();
  await page.getByRole("menuitem", { name: "Mute", exact: true }).click();
  expect(await heard(stage, page, "noisy")).not.toContain("muted");
  let_go();
  await says(page, "noisy", "muted");
  await page.locator('.row[data-row="noisy"] .label + .icon').waitFor();
  await page.context().close();
});

// covers: RL-399
it("says that a mute was refused, and shows none", async () => {
  await stage.channel("loud", 1);
  const page = await stage.app();
  await page.route("**/scopes/loud/members/ada", (route) => route.fulfill({ status: 503 }));
  await row(page, "loud").click();
  await page.getByRole("button", { name: "Conversation actions" }).click();
  await page.getByRole("menuitem", { name: "Mute", exact: true }).click();
  await page.getByRole("alert").filter({ hasText: "503" }).waitFor();
  expect(await heard(stage, page, "loud")).not.toContain("muted");
  await page.context().close();
});
