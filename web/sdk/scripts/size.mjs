// Fails when the package has grown beyond what it promises: gzipped and minified, everything that an
// app can import, and the core alone.
import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const limits = [
  { entry: "index", limit: 15_000 },
  { entry: "core/index", limit: 4_000 },
];

/** The bytes of everything that a module exports, as an app would ship it. */
async function sizeOf(entry) {
  const path = fileURLToPath(new URL(`../dist/${entry}.js`, import.meta.url));
  const { outputFiles } = await build({
    stdin: { contents: `export * from ${JSON.stringify(path)}`, resolveDir: "." },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    write: false,
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}

let failed = false;
for (const { entry, limit } of limits) {
  const size = await sizeOf(entry);
  failed ||= size > limit;
  console.log(`${entry}: ${size} of ${limit} bytes`);
}
process.exitCode = failed ? 1 : 0;
