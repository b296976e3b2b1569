import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Stage, heard, noComplaints, row, says, visit } from "./stage.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open();
  const { program } = stage;
  await program.ask("PUT", "/members/otto", { kind: "agent", displayName: "Otto" });
  await program.ask("PUT", "/members/ben", { kind: "human", displayName: "Ben Okafor" });
  const [root] = await stage.channel("plaza", 4);
  const talk = { type: "thread", name: "fountain", parent: "plaza", rootMessage: root };
  await program.ask("PUT", "/scopes/fountain", talk);
  await program.ask("PUT", "/scopes/fountain/follow?member=ada", { following: true });
  await program.post("fountain", "ben");
  await stage.channel("lane", 2);
  await stage.channel("ada-ben", 1, { type: "dm" });
  await program.scope("ada-otto", { type: "dm", name: "ada-otto" }, ["ada", "otto"]);
  await program.post("ada-otto", "otto", { payload: { text: "It is done." } });
  await stage.channel("empty", 0);
});

afterAll(async () => {
  noComplaints(stage);
  await stage.close();
});

/** Everything that axe complains of, in words. */
async function violations(page: Page): Promise<readonly string[]> {
  const found = await page.evaluate(async (source) => {
    type Result = { violations: { id: string; nodes: { html: string }[] }[] };
    type Axe = { axe: { run: () => Promise<Result> } };
    const make = new Function(`${source}; return this;`) as () => Axe;
    return (await make.call(window).axe.run()).violations;
  }, axe);
  return found.flatMap((v) => v.nodes.map((node) => `${v.id}: ${node.html.slice(0, 160)}`));
}

/** The states that are looked at: what leads there from a fresh page. */
const states: readonly (readonly [string, (page: Page) => Promise<unknown>])[] = [
  ["start", async () => {}],
  ["channel", (page) => visit(page, "plaza")],
  [
    "thread",
    async (page) => {
      await visit(page, "plaza");
      await page.locator(".thread-link").click();
      await page.locator(".side .message").first().waitFor();
    },
  ],
  ["empty", (page) => visit(page, "empty")],
  [
    "menu",
    async (page) => {
      await visit(page, "plaza");
      await page.getByRole("button", { name: "Conversation actions" }).click();
      await page.locator("[role=menu]").waitFor();
    },
  ],
  [
    "explained",
    async (page) => {
      await visit(page, "empty");
      await page.getByRole("button", { name: "Conversation actions" }).click();
      await page.getByRole("menuitem", { name: "Why this count?" }).click();
      await page.locator("dialog[open] .sum").waitFor();
    },
  ],
  [
    "activity",
    async (page) => {
      await page.getByRole("button", { name: /^Activity/ }).click();
      await page.locator("dialog[open] .feed").waitFor();
    },
  ],
  [
    "diagnostics",
    async (page) => {
      await page.locator(".status").click();
      await page.locator("dialog[open] table").waitFor();
    },
  ],
];

it.each(
  (["light", "dark"] as const).flatMap((scheme) =>
    states.map(([name, go]) => [scheme, name, go] as const),
  ),
)("has names and contrast for everybody: %s, %s", async (colorScheme, name, go) => {
  const context = await stage.device({ colorScheme, reducedMotion: "reduce", bypassCSP: true });
  const page = await stage.app(context);
  await says(page, "lane", "2 unread");
  await go(page);
  await stage.shot(page, `${name}-${colorScheme}`);
  expect(await violations(page)).toEqual([]);
  await context.close();
});

it("has a sign-in that says why a token was not taken", async () => {
  const context = await stage.device({ bypassCSP: true });
  const page = await context.newPage();
  await page.goto(`${stage.program.url}/app/`);
  await page.getByLabel("Token or link").fill("nonsense");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").filter({ hasText: "did not take it" }).waitFor();
  await stage.shot(page, "sign-in");
  expect(await violations(page)).toEqual([]);
  await context.close();
});

// covers: RL-341, RL-343, RL-344, RL-366
it("draws weight for backlog and a dot for what is directed, without numerals", async () => {
  const page = await stage.app();
  await says(page, "lane", "2 unread");
  const lane = row(page, "lane");
  expect(await lane.evaluate((each) => each.classList.contains("strong"))).toBe(true);
  expect(await lane.locator(".dot").count()).toBe(0);
  expect(await lane.locator(".label").innerText()).toBe("lane");
  expect(await lane.locator(":scope > :not(.hidden)").allInnerTexts()).toEqual(["", "lane"]);
  expect(await row(page, "ada-otto").locator(".dot").count()).toBe(1);
  await row(page, "ada-otto").locator(".avatar.squircle").waitFor();
  await row(page, "ada-ben").locator(".avatar.circle").waitFor();
  expect(await row(page, "ada-ben").locator(".avatar").getAttribute("aria-hidden")).toBe("true");
  await page.context().close();
});

// covers: RL-346, RL-347, RL-348
it.each(["hover", "focus", "click"] as const)("opens what is behind a dot by %s", async (how) => {
  const page = await stage.app();
  const dot = page.getByRole("button", { name: "Unread threads of plaza" });
  await dot[how]();
  const group = page.locator(".popover button");
  await group.filter({ hasText: "fountain" }).waitFor();
  expect(await heard(stage, page, "plaza")).toContain("1 thread with replies");
  await group.click();
  await page.getByRole("tab", { name: "fountain", selected: true }).waitFor();
  await page.context().close();
});

// covers: RL-371, RL-377, RL-379, RL-381, RL-383
it("leads to what is unread out of view, and opens and reads nothing", async () => {
  for (let i = 0; i < 24; i++) await stage.channel(`quiet-${String(i).padStart(2, "0")}`, 0);
  await stage.channel("zoo", 2);
  const context = await stage.device({ viewport: { width: 1000, height: 460 } });
  const page = await stage.app(context);
  const below = page.getByRole("button", { name: /unread conversations? below/ });
  const list = page.locator(".rows");
  const fold = page.locator('[data-section="dms"]');
  const hasFocus = (id: string) =>
    page.waitForFunction((x) => document.activeElement?.getAttribute("data-row") === x, id);
  await fold.click();
  await list.evaluate((box) => (box.scrollTop = 0));
  await below.waitFor();
  await stage.shot(page, "off-screen");
  expect(await below.evaluate((each) => getComputedStyle(each).borderRadius)).toBe("12px");
  await below.click();
  await hasFocus("zoo"); // the nearest one, though there are people further down
  expect(await page.locator(".row[aria-current]").count()).toBe(0);
  expect(await heard(stage, page, "zoo")).toContain("2 unread");

  const read = { type: "read", readRevision: 2 };
  await stage.program.ask("PUT", "/scopes/zoo/read-state?member=ada", read);
  for (const mark of await page.locator('.row[data-row^="zz-barrier"]').all()) {
    const path = `/scopes/${await mark.getAttribute("data-row")}/read-state?member=ada`;
    await stage.program.ask("PUT", path, { type: "read", readRevision: 1 });
  }
  await list.evaluate((box) => (box.scrollTop = 0));
  await below.click();
  await hasFocus("ada-ben");
  await fold.and(page.locator('[aria-expanded="true"]')).waitFor();
  const gone = page.locator(".edge.below.leaving");
  await gone.waitFor({ state: "attached" });
  expect(await gone.evaluate((each) => (each as HTMLElement).inert)).toBe(true);
  await context.close();
});

// covers: RL-384
it("has cues that take no room", async () => {
  const page = await stage.app(await stage.device({ viewport: { width: 1000, height: 460 } }));
  const list = page.locator(".rows");
  const size = () => list.evaluate((b) => [b.clientWidth, b.clientHeight, b.scrollHeight]);
  await list.evaluate((box) => (box.scrollTop = 0));
  await page.locator(".edge.below:not(.leaving)").waitFor();
  const shown = await size();
  await list.evaluate((box) => (box.scrollTop = box.scrollHeight));
  await page.locator(".edge.below.leaving").waitFor({ state: "attached" });
  expect(await size()).toEqual(shown);
  await page.context().close();
});

// covers: RL-353
it("has the actions, the state and a retry of a channel in its settings", async () => {
  const page = await stage.app();
  await row(page, "lane").click();
  await page.locator("#search").focus();
  await page.getByRole("button", { name: "Conversation actions" }).click();
  await page.getByRole("menuitem", { name: "Settings…" }).click();
  const part = page.getByRole("region", { name: "Diagnostics" });
  await part.getByText(/Unread: \d+; exact, observed/).waitFor();
  await part.getByRole("button", { name: "Mark as read" }).waitFor();
  await part.getByRole("button", { name: "Mark as unread" }).waitFor();
  const asked = page.waitForRequest(/\/unread\?limit=/);
  await part.getByRole("button", { name: "Refresh" }).click();
  await asked;
  await page.context().close();
});

// covers: RL-370
it("moves nothing for those who asked for that", async () => {
  const context = await stage.device({ reducedMotion: "reduce" });
  const page = await stage.app(context);
  const moving = () =>
    page.evaluate(() => {
      const all = [...document.querySelectorAll("*")].map((each) => getComputedStyle(each));
      return all.filter((style) => /[1-9]/.test(style.transitionDuration)).length;
    });
  expect(await moving()).toBe(0);
  await page.emulateMedia({ reducedMotion: "no-preference" });
  expect(await moving()).toBeGreaterThan(0);
  await context.close();
});

// covers: RL-208, RL-217
it("offers to follow a thread on its messages, and nothing of that in a dm", async () => {
  const page = await stage.app();
  await visit(page, "plaza");
  await page.locator(".thread-link").waitFor();
  const menu = async () => {
    await page.locator(".conversation .message").first().hover();
    await page.locator(".conversation .row-menu").first().click();
    return page.locator("[role=menuitem]").allInnerTexts();
  };
  expect(await menu()).toContain("Unfollow thread");
  const took = page.waitForResponse("**/follow");
  await page.getByRole("menuitem", { name: "Unfollow thread" }).click();
  await took;
  await heard(stage, page, "plaza");
  expect(await menu()).toContain("Follow thread");
  await page.keyboard.press("Escape");
  await visit(page, "ada-ben");
  expect((await menu()).filter((item) => /follow/i.test(item))).toEqual([]);
  await page.context().close();
});

it("tells in the title and on the icon what is unread", async () => {
  const page = await stage.app();
  await page.waitForFunction(() => /^\(\d+\) Tidemark$/.test(document.title));
  await page.waitForFunction(
    () => document.querySelector<HTMLLinkElement>("#icon")!.href.startsWith("data:"),
  );
  await page.keyboard.press("Shift+Escape");
  await page.waitForFunction(() => document.title === "Tidemark");
  await page.context().close();
});

it("is two devices beside each other", async () => {
  const context = await stage.device();
  const page = await context.newPage();
  await page.goto(stage.link().replace("/app/#", "/app/?two#"));
  const [laptop, phone] = ["laptop", "phone"].map((name) =>
    page.frameLocator(`iframe[title="Your ${name}"]`),
  );
  await stage.channel("both", 2);
  await laptop!.locator('.row[data-row="both"]', { hasText: "2 unread" }).waitFor();
  await phone!.locator('.row[data-row="both"]').click();
  await laptop!.locator('.row[data-row="both"]', { hasNotText: "unread" }).waitFor();
  await stage.shot(page, "two-devices");
  await context.close();
});
