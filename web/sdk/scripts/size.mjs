// Fails when the package has grown beyond what it promises: gzipped and minified, everything that
// an app can import, and the core alone.
import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const limits = [
  { about: "everything", entries: ["index", "core/index"], limit: 15_000 },
  { about: "the relay's side, in place of the hub's", entries: ["relay/index"], limit: 2_500 },
  { about: "the core", entries: ["core/index"], limit: 4_000 },
];

/** The bytes of everything that modules export, as an app would ship it. */
async function sizeOf(entries) {
  const contents = entries.map((entry) => {
    const path = fileURLToPath(new URL(`../dist/${entry}.js`, import.meta.url));
    return `export * from ${JSON.stringify(path)};`;
  });
  const { outputFiles } = await build({
    stdin: { contents: contents.join("\n"), resolveDir: "." },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    write: false,
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}

let failed = false;
for (const { about, entries, limit } of limits) {
  const size = await sizeOf(entries);
  failed ||= size > limit;
  console.log(`${about}: ${size} of ${limit} bytes`);
}
process.exitCode = failed ? 1 : 0;
