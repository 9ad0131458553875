/** docs/ISOLATION.md shows a program: it is the one in examples/, and prints what is said there. */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const pathOf = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const document = readFileSync(pathOf("docs/ISOLATION.md"), "utf8");

/** The code blocks of a language, in their order. */
function blocks(language: string): string[] {
  const pattern = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm");
  return [...document.matchAll(pattern)].map(([, text]) => text);
}

test("the program in the document is the example", () => {
  expect(blocks("ts")).toEqual([readFileSync(pathOf("examples/write-skew/main.ts"), "utf8")]);
});

test("the example prints what the document says", () => {
  const [printed] = blocks("text");
  expect(printed.trimEnd().split("\n")).toHaveLength(2);
  const main = pathOf("dist/examples/write-skew/main.js");
  expect(execFileSync(process.execPath, [main], { encoding: "utf8" })).toBe(printed);
});
