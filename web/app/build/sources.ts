import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";

/** What the built files are made of, relative to `web/`. A test of the server hashes the same. */
export const parts = [
  "app/index.html",
  "app/package.json",
  "app/vite.config.ts",
  "app/build",
  "app/src",
  "sdk/src",
];

/** One line a source, `<sha256>  <path>`, by path: what a build was made of. */
export function sourcesOf(web: string): string {
  const files = parts.flatMap((part) => filesOf(join(web, part)));
  const lines = files.map((file) => {
    const path = relative(web, file).replaceAll("\\", "/");
    return `${createHash("sha256").update(readFileSync(file)).digest("hex")}  ${path}`;
  });
  return `${lines.sort((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1)).join("\n")}\n`;
}

function filesOf(path: string): string[] {
  try {
    return readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  } catch {
    return [path]; // a file
  }
}
