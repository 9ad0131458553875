/**
 * The rules of the source, on the source. Each rule is also shown a planted violation: a check that
 * cannot fail checks nothing.
 */

import { describe, expect, test } from "vitest";
import { filesIn, project } from "./files.ts";
import {
  importsPointDownward,
  importsThePublicFace,
  kindsKnowNoSiblings,
  noAny,
  noBarrels,
  noClocksOrDice,
  noDefaultExports,
  opensWithAnEssay,
  type Rule,
} from "./source-rules.ts";

const sources = filesIn("src", ".ts");
const simulated = [...filesIn("simulation", ".ts"), ...filesIn("workloads", ".ts")];
const examples = filesIn("examples", ".ts");

const complaints = (rule: Rule, paths: readonly string[]): string[] =>
  paths.flatMap((path) => rule(path, project.text(path)));

test("the source is found", () => {
  expect(sources.length).toBeGreaterThan(40);
  expect(sources).toContain("src/index.ts");
});

describe("imports point downward", () => {
  test("in src/", () => {
    expect(complaints(importsPointDownward, sources)).toEqual([]);
  });

  test.each([
    ["engine", 'import { open } from "../database/open.ts";'],
    ["memory", 'export * from "../engine/run.ts";'],
    ["memory", 'export type { A } from "../engine/run.ts";'],
    ["engine", 'type A = import("../stores/store.ts").Store;'],
    ["engine", 'const a = await import("../stores/store.ts");'],
    ["stores", 'import { open } from "../index.ts";'],
    ["stores", 'import { open } from "situ";'],
    ["runtime", 'import { wordOf } from "../memory/address.ts";'],
    ["engine", 'import { sut } from "../../tests/a.ts";'],
    ["helpers", "export const a = 1;"],
  ])("not in %s: %s", (layer, text) => {
    expect(importsPointDownward(`src/${layer}/planted.ts`, text)).toHaveLength(1);
  });

  test("downward and sideways is allowed", () => {
    const text =
      'import { a } from "../memory/a.ts"; import { b } from "./b.ts"; import "node:fs";';
    expect(importsPointDownward("src/engine/planted.ts", text)).toEqual([]);
    expect(importsPointDownward("src/index.ts", 'export { a } from "./database/a.ts";')).toEqual(
      [],
    );
    const nested = 'import { a } from "../../memory/a.ts"; // import "../../database/b.ts"';
    expect(importsPointDownward("src/engine/leases/planted.ts", nested)).toEqual([]);
  });

  test("examples use the package, as a user would", () => {
    expect(complaints(importsThePublicFace, examples)).toEqual([]);
    const text = 'import { open } from "../../src/index.ts";';
    expect(importsThePublicFace("examples/a/main.ts", text)).toHaveLength(1);
  });
});

describe("kinds of tables do not know each other", () => {
  test("in src/stores/", () => {
    expect(sources).toContain("src/stores/shards/layout.ts");
    expect(complaints(kindsKnowNoSiblings, sources)).toEqual([]);
  });

  test.each([
    ["buckets", 'import { Hopscotch } from "../hopscotch/hopscotch.ts";'],
    ["shards", 'import type { Geometry } from "../buckets/layout.ts";'],
    ["remote", 'import { BTree } from "../btree/btree.ts";'],
  ])("not in %s: %s", (folder, text) => {
    expect(kindsKnowNoSiblings(`src/stores/${folder}/planted.ts`, text)).toHaveLength(1);
  });

  test("what they share is allowed", () => {
    const text = 'import { a } from "../shards/a.ts"; import { b } from "../store.ts";';
    expect(kindsKnowNoSiblings("src/stores/buckets/planted.ts", text)).toEqual([]);
    const registry = 'import { btreeKind } from "./btree/kind.ts";';
    expect(kindsKnowNoSiblings("src/stores/kinds.ts", registry)).toEqual([]);
  });
});

describe("clock and randomness come from runtime/", () => {
  test("in src/, simulation/ and workloads/", () => {
    expect(complaints(noClocksOrDice, [...sources, ...simulated])).toEqual([]);
  });

  test.each([
    "const t = Date.now();",
    "const now = Date.now;",
    "const t = new Date();",
    "const t = new Date;",
    "const r = Math.random();",
    "const t = globalThis.performance.now();",
    "const t = process.hrtime.bigint();",
    'import { randomInt } from "node:crypto";',
  ])("not: %s", (text) => {
    expect(noClocksOrDice("src/database/planted.ts", text)).toHaveLength(1);
    expect(noClocksOrDice("simulation/planted.ts", text)).toHaveLength(1);
    expect(noClocksOrDice("src/runtime/planted.ts", text)).toEqual([]);
  });

  test.each(["setTimeout(f, 1);", 'import "node:timers/promises";'])("no timers: %s", (text) => {
    expect(noClocksOrDice("src/engine/planted.ts", text)).toHaveLength(1);
    expect(noClocksOrDice("src/database/planted.ts", text)).toEqual([]);
  });

  test("to mention one, or to format a time, is allowed", () => {
    const text = '// Date.now()\nconst a = "Math.random()"; const b = new Date(ms).toISOString();';
    expect(noClocksOrDice("src/engine/planted.ts", text)).toEqual([]);
  });
});

describe("how files are written", () => {
  test.each([
    ["no default exports", noDefaultExports],
    ["no any", noAny],
    ["no barrels", noBarrels],
    ["every file opens with a comment on what it is for", opensWithAnEssay],
  ])("%s", (_, rule) => {
    expect(complaints(rule, sources)).toEqual([]);
  });

  test.each([
    "export default 1;",
    "export default class A {}",
    "const a = 1; export { a as default };",
  ])("a default export: %s", (text) => {
    expect(noDefaultExports("src/engine/planted.ts", text)).toHaveLength(1);
  });

  test("the default of a switch is none", () => {
    expect(noDefaultExports("src/a/b.ts", "switch (a) { default: b(); }")).toEqual([]);
  });

  test.each(["let a: any;", "f(a as any);", "type A = Map<string, any[]>;"])("any: %s", (text) => {
    expect(noAny("src/engine/planted.ts", text)).toHaveLength(1);
    expect(noAny("src/engine/planted.ts", '// any\nconst any = "any";')).toEqual([]);
  });

  test("barrels", () => {
    expect(noBarrels("src/engine/index.ts", "const a = 1;")).toHaveLength(1);
    const passedOn = 'export { a } from "./a.ts"; export * from "./b.ts";';
    expect(noBarrels("src/engine/all.ts", passedOn)).toHaveLength(1);
    expect(noBarrels("src/index.ts", passedOn)).toEqual([]);
    expect(noBarrels("src/engine/a.ts", 'export { a } from "./a.ts"; const b = 1;')).toEqual([]);
  });

  test("essays", () => {
    const opens = (text: string): string[] => opensWithAnEssay("src/engine/planted.ts", text);
    expect(opens("export const a = 1;")).toHaveLength(1);
    expect(opens("/** a */\nexport const a = 1;")).toHaveLength(1);
    expect(opens('import "./b.ts";\n\nconst a = 1;\n/** Too late to be of help. */')).toHaveLength(
      1,
    );
    expect(opens("/** What this file is for. */\n\nexport const a = 1;")).toEqual([]);
    expect(opens('import "./b.ts";\n\n/** What this class is for. */\nclass A {}')).toEqual([]);
  });
});
