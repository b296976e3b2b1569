import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContext, type Page, chromium } from "playwright-core";
import { expect } from "vitest";
import { Program } from "../../../sdk/test/hub/program.js";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const shots = fileURLToPath(new URL("../../../../out/screenshots", import.meta.url));

/** The program, with a browser beside it. */
export class Stage {
  /** What pages complained of; a test that passes has none. */
  readonly complaints: string[] = [];

  private constructor(
    readonly program: Program,
    readonly browser: Browser,
  ) {}

  static async open(): Promise<Stage> {
    const program = await Program.start();
    const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
    mkdirSync(shots, { recursive: true });
    return new Stage(program, browser);
  }

  async close(): Promise<void> {
    await this.browser?.close();
    await this.program?.stop();
  }

  /** A sign-in link of a member. */
  link(member = "ada"): string {
    const token = this.program.token(member);
    return `${this.program.url}/app/#${new URLSearchParams({ token })}`;
  }

  /** A device of its own: nothing is shared with others. */
  device(more: Parameters<Browser["newContext"]>[0] = {}): Promise<BrowserContext> {
    return this.browser.newContext({ viewport: { width: 1100, height: 700 }, ...more });
  }

  /** Opens the app, signed in, in a tab of a device. */
  async app(context?: BrowserContext, member = "ada", clock = true): Promise<Page> {
    const page = await (context ?? (await this.device())).newPage();
    page.on("pageerror", (error) => this.complaints.push(error.message));
    page.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) this.complaints.push(message.text());
    });
    if (clock) await page.clock.install(); // it runs until a test stops it
    await page.goto(this.link(member));
    await page.locator(".status.good").waitFor();
    return page;
  }

  /** A channel of ada and ben with messages of ben; it returns their ids. */
  async channel(id: string, count: number, more: object = {}): Promise<string[]> {
    await this.program.scope(id, { type: "channel", name: id, ...more }, ["ada", "ben"]);
    const ids: string[] = [];
    for (let i = 0; i < count; i++) {
      const payload = { text: `${id} ${i + 1}: a line that somebody wrote` };
      ids.push(await this.program.post(id, "ben", { payload }));
    }
    return ids;
  }

  async shot(page: Page, name: string): Promise<void> {
    await page.screenshot({ path: join(shots, `${name}.png`) });
  }
}

/** The row of a conversation in the sidebar. */
export const row = (page: Page, id: string) => page.locator(`.row[data-row="${id}"]`);

/** Opens a conversation by a click, and waits for its messages. */
export async function visit(page: Page, id: string): Promise<void> {
  await row(page, id).click();
  await page.locator(`.conversation .messages[aria-busy="false"]`).waitFor();
}

/** Takes the clock of a page into hand. Nothing is earned there but by `pass`. */
export const stopClock = (page: Page) => page.clock.pauseAt(Date.now() + 1_000);

/** Lets time go by on a stopped page until something is there. */
export async function appears(page: Page, selector: string): Promise<void> {
  while ((await page.locator(selector).count()) === 0) await pass(page, 20);
}

/** Lets time go by on a page, ms. */
export const pass = (page: Page, ms: number) => page.clock.runFor(ms);

let barriers = 0;

/**
 * Waits until something that the server did after everything so far has reached the page, and then
 * looks at what assistive technology hears of a row.
 */
export async function heard(stage: Stage, page: Page, id: string): Promise<string> {
  const mark = `zz-barrier${++barriers}`;
  await stage.channel(mark, 1);
  await row(page, mark).waitFor();
  return (await row(page, id).textContent()) ?? "";
}

/** Resolves when a row says something. */
export async function says(page: Page, id: string, text: string | RegExp): Promise<void> {
  await page.locator(`.row[data-row="${id}"]`).filter({ hasText: text }).waitFor();
}

/** Resolves when a row is said to be unread no more. */
export async function isRead(page: Page, id: string): Promise<void> {
  await page.locator(`.row[data-row="${id}"]`).filter({ hasNotText: "unread" }).waitFor();
}

export function noComplaints(stage: Stage): void {
  expect(stage.complaints).toEqual([]);
}
