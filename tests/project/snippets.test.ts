/** What the documents show works: all TypeScript compiles, and the pages for a first look run. */

import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { destroy } from "../../src/database/open.ts";
import { filesIn, project } from "./files.ts";
import { type Page, pageOf } from "./snippets.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const pages = ["README.md", "CONTRIBUTING.md", ...filesIn("docs", ".md")]
  .filter((path) => project.exists(path) && !path.startsWith("docs/decisions/"))
  .map((path) => pageOf(path, project.text(path)))
  .filter(({ program }) => program.trim() !== "");
const run = ["README.md", "docs/TABLES.md", "docs/TRANSACTIONS.md", "docs/ERRORS.md"];

/** Of all pages at once: a program is made only one time. */
function typeErrors(shown: readonly Page[]): string[] {
  const nameOf = ({ path }: Page): string => join(root, "dist", `${path}.snippet.ts`);
  const programs = new Map(shown.map((page) => [nameOf(page), page.program]));
  const { config } = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(
    { ...config, files: [], include: [] },
    ts.sys,
    root,
  );
  const settings: ts.CompilerOptions = {
    ...options,
    noEmit: true,
    noUnusedLocals: false,
    noUnusedParameters: false,
    verbatimModuleSyntax: false,
    incremental: false,
    // What a user gets: the declarations of the build. To compile the source takes twice as long.
    paths: { situ: [join(root, "dist/src/index.d.ts")] },
  };
  delete settings.tsBuildInfoFile;
  const host = ts.createCompilerHost(settings);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (name) => programs.has(name) || fileExists.call(host, name);
  host.readFile = (name) => programs.get(name) ?? readFile.call(host, name);
  host.getSourceFile = (name, target, ...rest) => {
    const text = programs.get(name);
    if (text === undefined) return getSourceFile.call(host, name, target, ...rest);
    return ts.createSourceFile(name, text, target, true);
  };
  const program = ts.createProgram([...programs.keys()], settings, host);
  return shown.flatMap((page) => {
    const source = program.getSourceFile(nameOf(page))!;
    const found = [
      ...program.getSyntacticDiagnostics(source),
      ...program.getSemanticDiagnostics(source),
    ];
    return found.map(({ messageText, start = 0 }) => {
      const line = source.text.slice(0, start).split("\n").length - 1;
      const text = ts.flattenDiagnosticMessageText(messageText, " ");
      return `${page.path}: ${text}: ${source.text.split("\n")[line].trim()}`;
    });
  });
}

test("the TypeScript of all documents compiles", () => {
  expect(pages.map(({ path }) => path)).toEqual(expect.arrayContaining(run));
  const planted = pageOf("docs/PLANTED.md", "```ts\nconst wrong: number = 'text';\n```\n");
  expect(typeErrors([...pages, planted])).toEqual([
    expect.stringMatching(/^docs\/PLANTED\.md: .*not assignable/),
  ]);
});

describe("the first pages run, and print what they say", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "situ-snippet-"));
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(root, join(folder, "node_modules", "situ"));
  });
  afterEach(async () => {
    for (const name of readdirSync(folder)) {
      if (existsSync(join(folder, name, "store.json"))) await destroy(join(folder, name));
    }
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(run)("%s", (path) => {
    const { program, output } = pages.find((page) => page.path === path)!;
    const { outputText } = ts.transpileModule(program, {
      compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
    });
    writeFileSync(join(folder, "page.mjs"), outputText);
    const said = execFileSync(process.execPath, ["page.mjs"], { cwd: folder, encoding: "utf8" });
    if (output !== "") expect(said).toBe(output);
  });
});
