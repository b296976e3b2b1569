// Writes dist/tidemark.js: the package as one file, for pages without a bundler.
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const file = (path) => fileURLToPath(new URL(path, import.meta.url));

await build({
  entryPoints: [file("../dist/index.js")],
  outfile: file("../dist/tidemark.js"),
  bundle: true,
  minify: true,
  sourcemap: true,
  format: "esm",
  target: "es2022",
});
