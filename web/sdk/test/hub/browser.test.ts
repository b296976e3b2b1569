import { existsSync, readFileSync } from "node:fs";
import { type Server, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { type Browser, type Page, chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Program } from "./program.js";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const read = (path: string) =>
  readFileSync(fileURLToPath(new URL(`../../../../${path}`, import.meta.url)), "utf8");

let program: Program;
let browser: Browser;
let site: Server;
let pages: Record<string, () => [type: string, body: string]>;

/** The address of the site that the pages belong to. */
const address = () => `http://localhost:${(site.address() as AddressInfo).port}`;

/** The page that the guide's code is for, with all of that code in it. */
function guide(): string {
  const blocks = [...read("docs/web.md").matchAll(/```js\n([\s\S]*?)```/g)].map((m) => m[1]);
  return `<!doctype html><title>Guide</title>
    <script type="importmap">{"imports": {"@tidemark/sdk": "./tidemark.js"}}</script>
    <span id="badge"></span><div id="channels"></div><button id="read-all">Read</button>
    <div id="messages" tabindex="0" style="height: 300px; overflow: auto"></div>
    <script type="module">${blocks.join("\n")}</script>`;
}

beforeAll(async () => {
  program = await Program.start();
  const token = program.token("ada");
  const here = (page: string) => page.replaceAll("http://127.0.0.1:8480", program.url);
  pages = {
    "/badge.html": () => ["text/html", here(read("web/examples/badge.html"))],
    "/guide.html": () => ["text/html", here(guide())],
    "/tidemark.js": () => ["text/javascript", read("web/sdk/dist/tidemark.js")],
    "/token": () => ["text/plain", token],
  };
  site = createServer((request, response) => {
    const page = pages[new URL(request.url!, "http://x").pathname]?.();
    response.writeHead(page ? 200 : 404, { "Content-Type": page?.[0] ?? "text/plain" });
    response.end(page?.[1]);
  });
  await new Promise<void>((resolve) => site.listen(0, "localhost", resolve));
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});

afterAll(async () => {
  await browser?.close();
  site?.close();
  await program?.stop();
});

/** Opens a page of the site; what it complains of fails the test. */
async function open(path: string): Promise<{ page: Page; complaints: string[] }> {
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(address() + path);
  return { page, complaints };
}

describe.skipIf(!existsSync(executablePath) && !process.env["CI"])("in a browser", () => {
  it("adds a badge to a site by the example alone", async () => {
    await program.scope("news", { type: "channel", name: "News" }, ["ada", "ben"]);
    const { page, complaints } = await open("/badge.html");
    const badge = page.locator("#badge");
    await badge.waitFor({ state: "hidden" });
    await program.post("news", "ben");
    await program.post("news", "ben");
    await page.getByText("2", { exact: true }).waitFor();
    expect(await page.title()).toBe("(2) The Daily Widget");
    await page.getByRole("button", { name: "Mark all as read" }).click();
    await badge.waitFor({ state: "hidden" });
    expect(await page.title()).toBe("The Daily Widget");
    expect(complaints).toEqual([]);
    await page.close();
  });

  it("keeps a read of a page that is closed while the server is down", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await program.post("news", "ben");
    await page.goto(`${address()}/badge.html`);
    await page.getByText("1", { exact: true }).waitFor();
    await program.kill();
    await page.getByRole("button", { name: "Mark all as read" }).click();
    await page.locator("#badge").waitFor({ state: "hidden" });
    await page.close();
    await program.serve();
    const again = await context.newPage();
    await again.goto(`${address()}/badge.html`);
    const other = await open("/badge.html"); // another device
    await other.page.waitForFunction(() => document.querySelector<HTMLElement>("#badge")!.hidden);
    await context.close();
    await other.page.close();
  });

  it("runs the code of the guide: what is looked at is read, and nothing else", async () => {
    await program.scope("tea", { type: "channel", name: "Tea" }, ["ada", "ben"]);
    for (let i = 0; i < 3; i++) await program.post("tea", "ben");
    const { page, complaints } = await open("/guide.html");
    await page.getByRole("button", { name: "Tea (3)" }).click();
    await page.locator("#messages p").nth(2).waitFor();
    // The focus is on the button of the list: nobody reads the messages.
    await program.post("tea", "ben");
    await page.getByRole("button", { name: "Tea (4)" }).waitFor();
    await page.locator("#messages").focus();
    await page.getByRole("button", { name: "Tea", exact: true }).waitFor();
    await page.locator("#badge").waitFor({ state: "hidden" });
    expect(complaints).toEqual([]);
    await page.close();
  });

  it("reads nothing under a dialog", async () => {
    const { page } = await open("/guide.html");
    await program.post("tea", "ben");
    await page.getByRole("button", { name: "Tea (1)" }).click();
    await page.evaluate(() => {
      const dialog = document.createElement("dialog");
      document.body.append(dialog);
      dialog.show();
    });
    await page.locator("#messages").focus();
    await program.post("tea", "ben");
    await page.getByRole("button", { name: "Tea (2)" }).waitFor();
    await page.evaluate(() => document.querySelector("dialog")!.remove());
    await page.locator("#read-all").focus();
    await page.locator("#messages").focus();
    await page.getByRole("button", { name: "Tea", exact: true }).waitFor();
    await page.close();
  });
});
