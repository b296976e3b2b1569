import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const app = fileURLToPath(new URL("..", import.meta.url));

/** The text of every file below a folder. */
function filesIn(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(
    names.map((name) => [name.slice(folder.length), readFileSync(name, "utf8")]),
  );
}

it("builds to the files that are committed", () => {
  const outDir = mkdtempSync(join(tmpdir(), "tidemark-app-"));
  try {
    const env = { ...process.env, NODE_ENV: "production" }; // that of tests builds otherwise
    const vite = join(app, "../node_modules/vite/bin/vite.js");
    const args = [vite, "build", "--logLevel", "error", "--emptyOutDir", "--outDir", outDir];
    execFileSync(process.execPath, args, { cwd: app, env });
    const made = filesIn(outDir);
    const kept = filesIn(join(app, "dist"));
    expect(Object.keys(kept).sort()).toEqual(Object.keys(made).sort());
    for (const name of Object.keys(made)) expect(kept[name] === made[name], name).toBe(true);
  } finally {
    rmSync(outDir, { recursive: true, force: true });
  }
});
