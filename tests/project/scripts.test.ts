/** Scripts are not compiled, so nobody else notices when a module that they import has got another name. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** Not those with a $ in their path: code that the bundler writes. */
const IMPORT = /(?:from|import\()\s*"(\.\.?\/[^"$]+)"/g;

/** The files that a script imports, each as it lies in the repository: what is in dist/ is compiled from there. */
function importsOf(script: string): string[] {
  const text = readFileSync(join(root, "scripts", script), "utf8");
  return [...text.matchAll(IMPORT)].map(([, path]) =>
    path.startsWith("../dist/")
      ? path.slice("../dist/".length).replace(/\.js$/, ".ts")
      : join("scripts", path),
  );
}

const scripts = readdirSync(join(root, "scripts")).filter((name) => name.endsWith(".mjs"));

test.each(scripts)("what scripts/%s imports is there", (script) => {
  expect(importsOf(script).filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test("imports are found", () => {
  expect(importsOf("bench.mjs")).toContain("benchmarks/harness/bench-options.ts");
  expect(importsOf("bench.mjs")).toContain("scripts/peers.mjs");
});
