/** The TypeScript of the documents compiles. tests/examples/pages.test.ts runs some of it. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, test } from "vitest";
import { filesIn, project } from "./files.ts";
import { type Page, pageOf } from "./snippets.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const pages = ["README.md", "CONTRIBUTING.md", ...filesIn("docs", ".md")]
  .filter((path) => project.exists(path) && !path.startsWith("docs/decisions/"))
  .map((path) => pageOf(path, project.text(path)))
  .filter(({ program }) => program.trim() !== "");

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
  expect(pages.map(({ path }) => path)).toEqual(
    expect.arrayContaining(["README.md", "docs/TABLES.md"]),
  );
  const planted = pageOf("docs/PLANTED.md", "```ts\nconst wrong: number = 'text';\n```\n");
  expect(typeErrors([...pages, planted])).toEqual([
    expect.stringMatching(/^docs\/PLANTED\.md: .*not assignable/),
  ]);
});
