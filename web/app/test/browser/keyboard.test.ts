import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Stage, isRead, noComplaints, says } from "./stage.js";

let stage: Stage;
let page: Page;

beforeAll(async () => {
  stage = await Stage.open();
  const [root] = await stage.channel("garden", 3);
  const talk = { type: "thread", name: "roses", parent: "garden", rootMessage: root };
  await stage.program.ask("PUT", "/scopes/roses", talk);
  await stage.program.ask("PUT", "/scopes/roses/follow?member=ada", { following: true });
  await stage.program.post("roses", "ben");
  await stage.channel("kitchen", 2);
  page = await (await stage.device()).newPage();
  page.on("pageerror", (error) => stage.complaints.push(error.message));
});

afterAll(async () => {
  noComplaints(stage);
  await stage.close();
});

const press = async (...keys: string[]) => {
  for (const key of keys) await page.keyboard.press(key);
};
const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label"));

/** Presses Tab until what has the focus is called so. */
async function tabTo(name: string): Promise<void> {
  for (let i = 0; i < 60; i++) {
    if ((await focused())?.startsWith(name)) return;
    await press("Tab");
  }
  throw new Error(`nothing called ${name} is reached by Tab`);
}

/** Chooses from the menu that is open. */
async function choose(label: string): Promise<void> {
  await page.locator("[role=menuitem]").first().waitFor();
  for (let i = 0; i < 12; i++) {
    const at = await page.evaluate(() => document.activeElement?.textContent);
    if (at === label) return press("Enter");
    await press("ArrowDown");
  }
  throw new Error(`the menu has no ${label}`);
}

async function find(name: string): Promise<void> {
  await press("Control+k");
  await page.keyboard.type(name);
  await page.locator(`.row[data-row="${name}"]`).waitFor();
  await press("Enter");
  await page.locator("h1", { hasText: name }).waitFor();
}

async function actions(label: string): Promise<void> {
  await tabTo("Conversation actions");
  await press("Enter");
  await choose(label);
}

// One after the other: each begins where the one before ended.
it.each<[string, () => Promise<void>]>([
  [
    "sign in",
    async () => {
      await page.goto(`${stage.program.url}/`);
      await page.locator("#token").focus();
      await page.keyboard.type(stage.program.token("ada"));
      await press("Enter");
      await page.locator(".status.good").waitFor();
    },
  ],
  ["find a conversation", () => find("garden")],
  [
    "write",
    async () => {
      await page.keyboard.type("by hand, @ben");
      await press("Enter");
      await page.locator(".conversation .message", { hasText: "by hand" }).waitFor();
    },
  ],
  [
    "mark a message as unread",
    async () => {
      await press("Shift+F6", "ArrowUp", "ArrowUp", "ArrowUp", "Enter");
      await choose("Mark unread from here");
      await says(page, "garden", "marked as unread");
    },
  ],
  [
    "mark a conversation as read",
    async () => {
      await press("Escape");
      await isRead(page, "garden");
    },
  ],
  [
    "open a thread and reply",
    async () => {
      await press("Home", "Enter");
      await choose("Open thread");
      await page.locator(".side .message").first().waitFor();
      await tabTo("Reply in the thread");
      await page.keyboard.type("they are red");
      await press("Enter");
      await page.locator(".side .message", { hasText: "they are red" }).waitFor();
    },
  ],
  [
    "follow a thread no more",
    async () => {
      const button = page.locator(".thread .facts button").first();
      await button.filter({ hasText: "Unfollow thread" }).waitFor();
      for (let i = 0; i < 8; i++) {
        if (await button.evaluate((each) => each === document.activeElement)) break;
        await press("Shift+Tab");
      }
      await press("Enter");
      await button.filter({ hasText: "Follow thread" }).waitFor();
    },
  ],
  [
    "mute",
    async () => {
      await find("garden");
      await press("Shift+F6");
      for (let i = 0; i < 6; i++) {
        if ((await focused()) === "Conversation actions") break;
        await press("Shift+Tab");
      }
      await actions("Mute");
      await says(page, "garden", "muted");
    },
  ],
  [
    "have a count explained",
    async () => {
      await actions("Why this count?");
      await page.locator("dialog[open] .sum").waitFor();
      await press("Escape");
      await page.locator("dialog").waitFor({ state: "detached" });
    },
  ],
  [
    "open the bell",
    async () => {
      await press("Control+k", "Shift+Tab", "Enter");
      await page.locator("dialog[open]", { hasText: "Activity" }).waitFor();
      await press("Escape");
      await page.locator("dialog").waitFor({ state: "detached" });
    },
  ],
  [
    "fold a section",
    async () => {
      await press("Control+k", "Tab");
      const fold = page.locator('[data-section="channels"]');
      expect(await fold.evaluate((each) => each === document.activeElement)).toBe(true);
      await press("Enter");
      await page.locator('.row[data-row="kitchen"]').waitFor({ state: "detached" });
      await press("Enter");
      await says(page, "kitchen", "2 unread");
    },
  ],
  [
    "mark everything as read",
    async () => {
      await press("Shift+Escape");
      await isRead(page, "kitchen");
    },
  ],
])("can be done by keyboard alone: %s", async (_name, task) => {
  await task();
});
