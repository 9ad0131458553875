/** What `npm run demo` and the others do first: install and build what is not fresh, and nothing else. */

import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { buildOnce, isBuilt, isInstalled, noteAbi, removeOrphans } from "../../scripts/fresh.mjs";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "situ-setup-"));
});

afterEach(() => {
  rmSync(root, { recursive: true });
});

function put(path: string, content: string | object): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  const text = typeof content === "string" ? content : JSON.stringify(content);
  writeFileSync(join(root, path), text);
}

describe("the build", () => {
  let builds = 0;

  /** As setup.mjs does it; says whether it built. */
  function build(work = (): void => {}): boolean {
    if (isBuilt(root)) return false;
    buildOnce(root, () => {
      builds++;
      put("dist/situ.js", `build ${builds}`);
      put("dist/.tsbuildinfo", "{}");
      work();
    });
    return true;
  }

  beforeEach(() => {
    put("tsconfig.json", "{}");
    put("src/a.ts", "export const a = 1;");
    put("tests/a.test.ts", "");
  });

  test("is done once", () => {
    expect([build(), build(), build()]).toEqual([true, false, false]);
  });

  test("is done again when a source changes, comes or goes", () => {
    build();
    put("src/a.ts", "export const a = 2;");
    expect([build(), build()]).toEqual([true, false]);
    put("tests/b.test.ts", "");
    expect([build(), build()]).toEqual([true, false]);
    rmSync(join(root, "tests", "b.test.ts"));
    expect([build(), build()]).toEqual([true, false]);
    put("package-lock.json", "{}");
    expect([build(), build()]).toEqual([true, false]);
  });

  test("does not look at times: another branch and back", () => {
    build();
    const later = new Date(2100, 0);
    utimesSync(join(root, "src", "a.ts"), later, later);
    expect(build()).toBe(false);
  });

  test("does not look at what it does not read", () => {
    put("benchmarks/peers/node_modules/x/index.ts", "");
    build();
    put("benchmarks/peers/node_modules/x/index.ts", "changed");
    put("README.md", "changed");
    expect(build()).toBe(false);
  });

  test("that was interrupted does not count", () => {
    build();
    put("src/a.ts", "export const a = 3;");
    expect(() =>
      build(() => {
        throw new Error("interrupted");
      }),
    ).toThrow("interrupted");
    put("src/a.ts", "export const a = 1;");
    expect([build(), build()]).toEqual([true, false]);
  });

  test("of sources that changed meanwhile is done again", () => {
    build(() => put("src/a.ts", "export const a = 4;"));
    expect([build(), build()]).toEqual([true, false]);
  });

  test("by hand, of something else, is noticed; so is a folder that is gone", () => {
    build();
    const later = new Date(2100, 0);
    utimesSync(join(root, "dist", ".tsbuildinfo"), later, later);
    expect([build(), build()]).toEqual([true, false]);
    rmSync(join(root, "dist", "situ.js"));
    expect([build(), build()]).toEqual([true, false]);
    rmSync(join(root, "dist"), { recursive: true });
    mkdirSync(join(root, "dist"));
    expect([build(), build()]).toEqual([true, false]);
  });

  test("leaves nothing of sources that are gone", () => {
    for (const name of ["a", "gone"]) {
      for (const end of ["js", "js.map", "d.ts"]) put(`dist/src/${name}.${end}`, "");
    }
    put("dist/tests/bundled/child.js", "");
    removeOrphans(root);
    const left = ["src/a.js", "src/a.d.ts", "src/gone.js", "src/gone.d.ts", "src/gone.js.map"];
    expect(left.filter((path) => existsSync(join(root, "dist", path)))).toEqual(left.slice(0, 2));
    expect(existsSync(join(root, "dist/tests/bundled/child.js"))).toBe(true);
  });
});

describe("the packages", () => {
  const packages = {
    "": { name: "situ" },
    "node_modules/a": { version: "1.0.0", integrity: "sha512-a" },
    "node_modules/elsewhere": { version: "1.0.0", integrity: "sha512-e", optional: true },
  };
  const { "": _, "node_modules/elsewhere": __, ...installed } = packages;

  beforeEach(() => {
    put("package-lock.json", { packages });
    put("node_modules/.package-lock.json", { packages: installed });
    put("node_modules/a/package.json", {});
  });

  test("are fresh if they are those of the lock file", () => {
    expect(isInstalled(root)).toBe(true);
  });

  test.each<[string, () => void]>([
    ["nothing is installed", () => rmSync(join(root, "node_modules"), { recursive: true })],
    // npm writes its list last.
    ["npm was interrupted", () => rmSync(join(root, "node_modules", ".package-lock.json"))],
    ["a package is gone", () => rmSync(join(root, "node_modules", "a"), { recursive: true })],
    [
      "the lock file wants another version",
      () =>
        put("package-lock.json", {
          packages: { "node_modules/a": { version: "1.0.1", integrity: "sha512-b" } },
        }),
    ],
    [
      "the lock file wants one more",
      () =>
        put("package-lock.json", {
          packages: { ...packages, "node_modules/b": { version: "1.0.0", integrity: "sha512-b" } },
        }),
    ],
    ["the lock file wants one less", () => put("package-lock.json", { packages: {} })],
    ["the list is no JSON", () => put("node_modules/.package-lock.json", "{")],
  ])("not if %s", (_, change) => {
    change();
    expect(isInstalled(root)).toBe(false);
  });

  test("that were compiled are fresh for the ABI of the Node.js that compiled them", () => {
    expect(isInstalled(root, { abi: "115" })).toBe(false);
    noteAbi(root, "115");
    expect(isInstalled(root, { abi: "115" })).toBe(true);
    expect(isInstalled(root, { abi: "137" })).toBe(false);
  });
});
