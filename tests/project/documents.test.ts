/** What the documents and package.json promise. */

import { describe, expect, test } from "vitest";
import {
  anchorsOf,
  brokenCitations,
  brokenLinks,
  missingSources,
  type Project,
  wordsOf,
} from "./document-rules.ts";
import { filesIn, project } from "./files.ts";
import { type PackageJson, packageComplaints } from "./package-rules.ts";

const documents = [...filesIn("docs", ".md"), "README.md", "CONTRIBUTING.md"];
const code = ["src", "simulation", "workloads", "benchmarks", "examples", "tests"]
  .flatMap((folder) => filesIn(folder, ".ts"))
  .filter((path) => !path.startsWith("tests/project/") && !path.includes("/node_modules/"));

/** These link to decisions, which are not in the package. */
const FOR_CONTRIBUTORS = [
  "ARCHITECTURE",
  "BENCHMARKS",
  "DESIGN",
  "FAULTS",
  "README",
  "TESTING",
].map((name) => `docs/${name}.md`);

/** By their numbers, as code cites them. */
const decisions = filesIn("docs/decisions", ".md");
const withDecisions: Project = {
  text: project.text,
  exists: (path) =>
    project.exists(path) || decisions.some((decision) => decision.startsWith(`${path}-`)),
};

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
    expect(missing("src/*/a.ts, src/<layer>/a.ts, benchmarks/results/")).toEqual([]);
    expect(missing("tests/gone.test.ts, [a](../examples/gone)")).toHaveLength(1);
  });
});

describe("documents that code cites are there", () => {
  test("in all code", () => {
    const complaints = code.flatMap((path) =>
      brokenCitations(path, project.text(path), withDecisions),
    );
    expect(complaints).toEqual([]);
  });

  test("planted", () => {
    const document: Project = {
      exists: (path) => ["docs/A.md", "docs/decisions/0001"].includes(path),
      text: () => "# A\n## 5. One clock\n## Disk\n",
    };
    const broken = (text: string): number => brokenCitations("src/a.ts", text, document).length;
    expect(broken("see docs/B.md")).toBe(1);
    expect(broken("see docs/A.md §6")).toBe(1);
    expect(broken('docs/A.md, "Network": a')).toBe(1);
    expect(broken(" * (docs/decisions/\n * 0002)")).toBe(0);
    expect(broken("docs/decisions/0002")).toBe(1);
    expect(broken("docs/A.md, docs/A.md §5, docs/decisions/0001")).toBe(0);
    expect(broken('docs/A.md, "Disk": full')).toBe(0);
  });
});

test("every decision is listed, and every page of docs/ is in its table", () => {
  const listed = project.text("docs/decisions/README.md");
  const pages = project.text("docs/README.md");
  const missing = documents.filter((path) => {
    const [, decision] = /^docs\/decisions\/(\d.*)$/.exec(path) ?? [];
    if (decision !== undefined) return !listed.includes(`](${decision})`);
    const [, page] = /^docs\/([A-Z_]+\.md)$/.exec(path) ?? [];
    return page !== undefined && page !== "README.md" && !pages.includes(`](${page})`);
  });
  expect(missing).toEqual([]);
});

test("README is for three minutes", () => {
  expect(wordsOf("# A\n\n`b` c,\n d ")).toBe(5);
  expect(wordsOf(project.text("README.md"))).toBeLessThanOrEqual(900);
});

test("every figure of README was printed by a benchmark", () => {
  const [, section] = /\n## How fast it is\n([\s\S]*?)\n## /.exec(project.text("README.md"))!;
  const figures = section.match(/\d+\.\d+(?: ms)?|\d+ µs/g) ?? [];
  expect(figures.length).toBeGreaterThan(8);
  const printed = project.text("docs/figures/report.md") + project.text("docs/BENCHMARKS.md");
  expect(figures.filter((figure) => !printed.includes(figure))).toEqual([]);
});

test("pages for users do not send them to what the package lacks", () => {
  const pages = documents.filter(
    (path) => /^docs\/[A-Z]+\.md$/.test(path) && !FOR_CONTRIBUTORS.includes(path),
  );
  expect(pages).toContain("docs/TABLES.md");
  expect(pages.filter((path) => project.text(path).includes("](decisions/"))).toEqual([]);
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
