/** The files of the package as they were built: which of them `import "situ"` loads, and that all are shipped. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { project } from "./files.ts";

const dist = new URL("../../dist/", import.meta.url).pathname;
const files = (JSON.parse(project.text("package.json")) as { readonly files: string[] }).files;
const shipped = files.filter((name) => name.endsWith(".js"));
/** Measures what versions cost; for `npm run bench` only. */
const NOT_SHIPPED = ["dist/situ-unversioned.js"];

const text = (name: string): string => readFileSync(join(dist, name), "utf8");

/** The files of the package that a file imports when it is loaded, or only later. */
function imported(name: string, how: "at once" | "later"): string[] {
  const pattern = how === "at once" ? /from "\.\/(situ[^"]*)"/g : /import\("\.\/(situ[^"]*)"\)/g;
  return [...new Set([...text(name).matchAll(pattern)].map(([, file]) => file))].sort();
}

describe("the files of the package", () => {
  test("are those that were built, without source maps", () => {
    const built = readdirSync(dist).filter((name) => /^situ.*\.js$/.test(name));
    const wanted = built
      .map((name) => `dist/${name}`)
      .filter((name) => !NOT_SHIPPED.includes(name));
    expect(shipped.toSorted()).toEqual(wanted.toSorted());
    expect(files.filter((name) => name.endsWith(".map"))).toEqual([]);
  });

  test.each(shipped)("%s has no characters beyond ASCII, which would double its size", (name) => {
    expect(/[^\t\n -~]/.exec(text(name.replace("dist/", "")))).toBeNull();
  });

  test("opening a store of this machine loads the core alone", () => {
    expect(imported("situ.js", "at once")).toEqual(["situ-core.js"]);
    expect(imported("situ-core.js", "at once")).toEqual([]);
    expect(imported("situ-core.js", "later")).toEqual([
      "situ-gateways.js",
      "situ-remote.js",
      "situ-tools.js",
    ]);
  });

  test("only what is public is exported", async () => {
    const built = (await import(join(dist, "situ.js"))) as object;
    const source = (await import("../../src/index.ts")) as object;
    expect(Object.keys(built).sort()).toEqual(Object.keys(source).sort());
  });
});
