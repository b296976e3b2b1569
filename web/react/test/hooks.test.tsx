import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { renderToString } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { UnreadProvider } from "../src/index.js";
import type { Board } from "./board.js";
import { Panel, Row, board } from "./app.js";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** What the page has besides. */
interface App {
  readonly board: Board;
  mount(element: Element): () => void;
  unmount(): void;
}

describe("hooks", () => {
  it("render what is known, also without a page", () => {
    board.show((b) => b.counts.set("c1", 3));
    const html = renderToString(
      <UnreadProvider value={board}>
        <Panel />
      </UnreadProvider>,
    );
    expect(html).toContain("c1: 3");
    expect(html).toContain("loading");
    expect(board.leases).toEqual([]);
  });

  it("need somebody who provides", () => {
    expect(() => renderToString(<Row channelId="c1" />)).toThrow("no UnreadProvider");
  });
});

describe.skipIf(!existsSync(executablePath) && !process.env["CI"])("hooks in a browser", () => {
  it("follow what changes, hold one lease, and leave nothing behind", async () => {
    const { outputFiles } = await build({
      entryPoints: [fileURLToPath(new URL("app.tsx", import.meta.url))],
      bundle: true,
      write: false,
      globalName: "app",
      jsx: "automatic",
      define: { "process.env.NODE_ENV": '"development"' },
    });
    const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
    try {
      const page = await browser.newPage();
      await page.setContent("<div id=root></div>");
      await page.addScriptTag({ content: outputFiles[0]!.text });
      const act = <T,>(what: (app: App) => T) =>
        page.evaluate(`(${what})(globalThis.app)`) as Promise<T>;
      await page.evaluate(
        "globalThis.app = { ...app, unmount: app.mount(document.querySelector('#root')) }",
      );
      await page.getByText("c1: unknown").waitFor();
      await act((app) =>
        app.board.show((b) => {
          b.counts.set("c1", 2).set("c2", 5);
          b.messages = 7;
          b.status = "pending";
        }),
      );
      await page.getByText("c1: 2").waitFor();
      await page.locator("#badge", { hasText: "7" }).waitFor();
      await page.locator("#sync", { hasText: "pending" }).waitFor();
      expect(await act((app) => app.board.leases)).toEqual(["c1"]);
      await page.getByRole("button").click();
      await page.getByText("c2: 5").waitFor();
      expect(await act((app) => app.board.leases)).toEqual(["c2"]);
      await act((app) => app.unmount());
      await page.waitForFunction("app.board.listeners.size === 0 && app.board.leases.length === 0");
    } finally {
      await browser.close();
    }
  });
});
