/** The pages for a first look do what they show: their snippets run, and print what the page says. */

import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { afterEach, beforeEach, expect, test } from "vitest";
import { destroy } from "../../src/database/open.ts";
import { pageOf } from "../project/snippets.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** A project that has the package installed. */
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "situ-page-"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules", "situ"));
});
afterEach(async () => {
  for (const name of readdirSync(folder)) {
    if (existsSync(join(folder, name, "store.json"))) await destroy(join(folder, name));
  }
  rmSync(folder, { recursive: true, force: true });
});

test.each(["README.md", "docs/TABLES.md", "docs/TRANSACTIONS.md", "docs/ERRORS.md"])(
  "%s",
  (path) => {
    const { program, output } = pageOf(path, readFileSync(join(root, path), "utf8"));
    const { outputText } = ts.transpileModule(program, {
      compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
    });
    writeFileSync(join(folder, "page.mjs"), outputText);
    const printed = execFileSync(process.execPath, ["page.mjs"], { cwd: folder, encoding: "utf8" });
    if (path === "README.md") expect(output).toContain("owner");
    if (output !== "") expect(printed).toBe(output);
  },
);
