/** The rules of the whole graph of modules, each also shown a planted violation. */

import { describe, expect, test } from "vitest";
import { filesIn, project } from "./files.ts";
import { cyclesOfValues, layersThatSkip, type Sources, unreachedModules } from "./module-rules.ts";

const sources: Sources = new Map(
  filesIn("src", ".ts").map((path) => [path, project.text(path)] as const),
);

function planted(files: Readonly<Record<string, string>>): Sources {
  return new Map(Object.entries(files));
}

describe("every module is reached from an entry", () => {
  test("in src/", () => {
    expect(unreachedModules(sources)).toEqual([]);
  });

  test("planted: a module that nobody imports, and an entry that is gone", () => {
    const files = planted({
      "src/index.ts": 'export { a } from "./a.ts"; const b = await import("./b.ts");',
      "src/a.ts": 'import type { C } from "./c.ts"; export const a = 1;',
      "src/b.ts": "export const b = 1;",
      "src/c.ts": "export interface C {}",
      "src/lost.ts": 'import { a } from "./a.ts"; // src/index.ts does not know it',
    });
    const entries = ["src/index.ts"];
    expect(unreachedModules(files, entries, [])).toEqual(["src/lost.ts: unreached"]);
    expect(unreachedModules(files, [...entries, "src/gone.ts"], [])).toContain(
      "src/gone.ts: an entry that is not there",
    );
    expect(unreachedModules(files, entries, ["src/lost.ts"])).toEqual([]);
    expect(unreachedModules(files, entries, ["src/lost.ts", "src/c.ts", "src/old.ts"])).toEqual([
      "src/old.ts: an entry that is not there",
      "src/c.ts: reached, so it is no longer ahead of what runs",
    ]);
  });
});

/** Modules that scripts run or import from dist/ by their paths, which no compiler follows. */
function compiledModules(text: string): string[] {
  const found = text.matchAll(
    /\bdist\/((?:benchmarks|examples|simulation|tests|workloads)\/[\w/-]+)\.js\b/g,
  );
  return [...found].map(([, path]) => `${path}.ts`);
}

describe("what scripts load from dist/ has a source", () => {
  const scripts = ["package.json", ...filesIn("scripts", ".mjs")];

  test.each(scripts)("%s", (path) => {
    const missing = compiledModules(project.text(path)).filter((each) => !project.exists(each));
    expect(missing).toEqual([]);
  });

  test("they are found", () => {
    const all = scripts.flatMap((path) => compiledModules(project.text(path)));
    expect(all).toContain("simulation/main.ts");
    expect(all).toContain("benchmarks/harness/bench-options.ts");
  });
});

describe("no modules wait for each other to be loaded", () => {
  test("in src/", () => {
    expect(cyclesOfValues(sources)).toEqual([]);
  });

  test("planted: a cycle of three", () => {
    const files = planted({
      "src/a.ts": 'import { b } from "./b.ts";',
      "src/b.ts": 'export * from "./c.ts";',
      "src/c.ts": 'import "./a.ts";',
    });
    expect(cyclesOfValues(files)).toEqual(["src/a.ts → src/b.ts → src/c.ts → src/a.ts"]);
  });

  test.each([
    'import type { A } from "./a.ts";',
    'export type { A } from "./a.ts";',
    'const a = await import("./a.ts");',
    'type A = import("./a.ts").A;',
  ])("but: %s", (text) => {
    expect(cyclesOfValues(planted({ "src/a.ts": 'import "./b.ts";', "src/b.ts": text }))).toEqual(
      [],
    );
  });
});

describe("no layer reaches past those that it may use", () => {
  test("in src/", () => {
    expect(layersThatSkip(sources)).toEqual([]);
  });

  const mayImport = { gateways: ["database"] };
  const skips = (text: string, exceptions: [string, string][] = []): string[] =>
    layersThatSkip(planted({ "src/gateways/redis/a.ts": text }), mayImport, exceptions);

  test("planted: a gateway that reads memory", () => {
    const text = 'import type { Memory } from "../../memory/memory.ts";';
    expect(skips(text)).toHaveLength(1);
    expect(skips(text, [["src/gateways/redis/", "memory"]])).toEqual([]);
    expect(skips(text, [["src/gateways/redis/", "engine"]])).toHaveLength(2);
    expect(skips('import "../../database/open.ts"; import "../options.ts";')).toEqual([]);
  });

  test("an exception that is not needed any more must go", () => {
    expect(skips("", [["src/gateways/redis/", "memory"]])).toEqual([
      "src/gateways/redis/ imports memory no more: remove the exception from module-rules.ts",
    ]);
  });
});

describe("random tests can be repeated", () => {
  const tests = filesIn("tests", ".ts").filter((path) => !path.startsWith("tests/project/"));
  const complaints = (path: string, text: string): string[] => {
    const found: string[] = [];
    if (/from "fast-check"/.test(text)) found.push("fast-check");
    if (/process\.env\.SITU_[A-Z_]*SEED/.test(text)) found.push("reads a seed");
    return found.map((what) => `${path}: ${what}; use helpers/property.ts and helpers/seed.ts`);
  };

  test("their seeds come from helpers/", () => {
    const allowed = ["tests/helpers/property.ts", "tests/helpers/seed.ts"];
    const others = tests.filter((path) => !allowed.includes(path));
    expect(others.flatMap((path) => complaints(path, project.text(path)))).toEqual([]);
  });

  test.each(['import fc from "fast-check";', "const seed = Number(process.env.SITU_SEED);"])(
    "not: %s",
    (text) => {
      expect(complaints("tests/a.test.ts", text)).toHaveLength(1);
    },
  );
});
