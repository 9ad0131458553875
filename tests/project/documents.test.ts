/** What the documents and package.json promise. */

import { describe, expect, test } from "vitest";
import { anchorsOf, brokenLinks, missingSources, type Project } from "./document-rules.ts";
import { filesIn, project } from "./files.ts";
import { type PackageJson, packageComplaints } from "./package-rules.ts";

const documents = [...filesIn("docs", ".md"), "README.md"].filter((path) => project.exists(path));

/** A project of two files, for the planted violations. */
const planted: Project = {
  exists: (path) => ["docs/A.md", "src/engine", "src/engine/run.ts"].includes(path),
  text: () => "# One\n## Why `x` is *here*\n## One\n",
};

describe("links in documents lead somewhere", () => {
  test.each(documents)("%s", (path) => {
    expect(brokenLinks(path, project.text(path), project)).toEqual([]);
  });

  test.each([
    "[a](docs/B.md)",
    '[a](./docs/B.md "title")',
    "[a]: docs/B.md",
    "[a](docs/A.md#two)",
    "[a](#nowhere)",
    "[a](../other/A.md)",
    "![a](picture.png)",
  ])("not: %s", (text) => {
    expect(brokenLinks("README.md", text, planted)).toHaveLength(1);
  });

  test.each([
    "[a](docs/A.md)",
    "[a](docs/A.md#why-x-is-here)",
    "[a](docs/A.md#one-1)",
    "[a](https://example.org/B.md)",
    "# Here\n[a](#here)",
    "`[a](docs/B.md)`",
    "```md\n[a](docs/B.md)\n```",
  ])("but: %s", (text) => {
    expect(brokenLinks("README.md", text, planted)).toEqual([]);
  });

  test("anchors are those of GitHub", () => {
    expect([...anchorsOf("# A: b, c\n```\n# no\n```\n## [Link](x.md) — 2")]).toEqual([
      "a-b-c",
      "link--2",
    ]);
  });
});

describe("the source that documents mention is there", () => {
  test.each(documents)("%s", (path) => {
    expect(missingSources(path, project.text(path), project)).toEqual([]);
  });

  test("planted", () => {
    const missing = (text: string): string[] => missingSources("docs/A.md", text, planted);
    expect(missing("see `src/engine/gone.ts`.")).toEqual([
      "docs/A.md: there is no src/engine/gone.ts",
    ]);
    expect(missing("see src/gone/ and src/gone")).toHaveLength(1);
    expect(missing("src/engine/run.ts, src/engine/, (src/engine) and dist/src/gone.js")).toEqual(
      [],
    );
    expect(missing("src/*/a.ts, src/<layer>/a.ts")).toEqual([]);
  });
});

describe("package.json", () => {
  test("needs koffi only, runs nothing at install, and has types first", () => {
    expect(packageComplaints(JSON.parse(project.text("package.json")) as PackageJson)).toEqual([]);
  });

  test.each<[string, PackageJson]>([
    ["a dependency", { dependencies: { koffi: "1", lodash: "1" } }],
    ["an optional one", { optionalDependencies: { bufferutil: "1" } }],
    ["a script at install", { scripts: { postinstall: "node build.js" } }],
    ["types last", { exports: { ".": { default: "a.js", types: "a.d.ts" } } }],
  ])("not: %s", (_, manifest) => {
    expect(packageComplaints(manifest)).toHaveLength(1);
  });
});
