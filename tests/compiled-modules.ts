/**
 * Tests import sources, and get what `npm run build` has made of them, loaded by Node itself: vitest
 * would transform some 300 modules for each test file, and reads every import in them through a
 * getter. That took a third of the time of all tests (docs/decisions/0049).
 *
 * All modules come from dist/ or none: a module that was loaded twice would have two states. None do
 * if dist/ is not built from the sources as they are, and none in the tier `mocked`, where vitest puts
 * another module in the place of one.
 */

import { dirname, join, relative, resolve, sep } from "node:path";
import type { Plugin } from "vitest/config";

const FOLDERS = /^(?:src|simulation|workloads|benchmarks|examples|tests)\//;

/** Resolves imports of the project's sources to what they were compiled to. */
export function compiledModules(root: string): Plugin {
  return {
    name: "compiled-modules",
    enforce: "pre",
    resolveId(source, importer) {
      if (!source.startsWith(".") || !source.endsWith(".ts") || importer === undefined) return null;
      const path = relative(root, resolve(dirname(importer), source))
        .split(sep)
        .join("/");
      return FOLDERS.test(path) ? join(root, "dist", path.replace(/\.ts$/, ".js")) : null;
    },
  };
}
