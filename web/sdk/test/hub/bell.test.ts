import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Browser, type Page, chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const root = fileURLToPath(new URL("../../../../", import.meta.url));

let demo: ChildProcess;
let browser: Browser;
const links: string[] = []; // of Ada's laptop, Ada's phone, Ben

/** Starts the demo, in which nobody writes by himself. */
beforeAll(async () => {
  const args = ["demo", "--listen", "127.0.0.1:0", "--every", "0"];
  const binary = process.env["TIDEMARK_BINARY"];
  demo = binary
    ? spawn(binary, args, { stdio: ["ignore", "pipe", "ignore"] })
    : spawn("go", ["run", "./cmd/tidemark", ...args], {
        cwd: root,
        stdio: ["ignore", "pipe", "ignore"],
      });
  for await (const line of createInterface({ input: demo.stdout! })) {
    if (line.includes("token=")) links.push(line.trim());
    if (links.length === 3) break;
  }
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});

afterAll(async () => {
  await browser?.close();
  demo?.kill("SIGTERM");
});

async function open(link: number): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  await page.goto(links[link]!);
  await page.locator("#live.on").waitFor();
  return page;
}

const count = (page: Page) => page.locator("#bell-count");

async function shows(page: Page, n: number): Promise<void> {
  await page.waitForFunction(
    (want) => document.querySelector("#bell-count")!.textContent === want,
    `${n}`,
  );
}

/** Posts as Ben to Ada. */
async function write(text: string): Promise<void> {
  const link = new URL(links[2]!);
  const token = new URLSearchParams(link.hash.slice(1)).get("token");
  const answer = await fetch(`${link.origin}/api/v1/workspaces/demo/scopes/ada-ben/messages`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ opId: text, payload: { text } }),
  });
  expect(answer.status).toBe(201);
}

describe.skipIf(!existsSync(executablePath) && !process.env["CI"])("the bell of the demo", () => {
  it("acknowledges what its overview showed, by keyboard alone, and nothing else", async () => {
    const [laptop, phone] = [await open(0), await open(1)];
    await laptop.waitForFunction(
      () => Number(document.querySelector("#bell-count")!.textContent) > 0,
    );
    await shows(phone, Number(await count(laptop).textContent()));
    const unread = await laptop.locator("#sum-messages").textContent();

    await laptop.keyboard.press("b");
    const overview = laptop.getByRole("dialog");
    await overview.getByRole("heading", { name: /^New from .*Ben/ }).waitFor();
    await shows(laptop, 0);
    await shows(phone, 0);
    expect(await laptop.locator("#sum-messages").textContent()).toBe(unread);

    await write("while the overview is open");
    await shows(laptop, 1);
    await shows(phone, 1);
    const name = "1 person has something new for you";
    expect(await laptop.getByRole("button", { name }).count()).toBe(1);
    await laptop.keyboard.press("Escape");
    await overview.waitFor({ state: "hidden" });
    expect(await laptop.evaluate(() => document.activeElement!.id)).toBe("bell");
    await laptop.reload();
    await shows(laptop, 1);

    await phone.locator("#bell").click();
    await phone.getByRole("dialog").getByText("while the overview is open").click();
    await phone.locator("h1", { hasText: "Ada and Ben" }).waitFor();
    await shows(laptop, 0);
  });

  it("shows no number where none is known", async () => {
    const page = await open(0);
    await shows(page, 0);
    await page.route("**/inbox/badge", (route) => route.fulfill({ status: 503, body: "{}" }));
    await write("what nobody can ask for");
    await page.getByRole("button", { name: "New for you: not known" }).waitFor();
    expect(await count(page).textContent()).toBe("–");
    await page.unroute("**/inbox/badge");
    await write("and now everybody can");
    await shows(page, 1);
  });
});
