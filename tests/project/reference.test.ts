/**
 * The pages of docs/ that list things list what there is: error codes, options, limits, and a comment for
 * everything that the package exports.
 */

import { dirname, join, normalize } from "node:path/posix";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { SituError, type SituErrorCode } from "../../src/runtime/errors.ts";
import * as limits from "../../src/runtime/limits.ts";
import { project } from "./files.ts";

/** The rows of all tables whose head begins so, as texts. */
function rowsOf(markdown: string, head: string): string[][] {
  const tables = markdown.split(/\n\n+/).filter((block) => block.startsWith(`| ${head} |`));
  return tables
    .flatMap((table) => table.split("\n").slice(2))
    .filter((line) => line.startsWith("|"))
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

function parse(path: string): ts.SourceFile {
  return ts.createSourceFile(path, project.text(path), ts.ScriptTarget.Latest, true);
}

interface Exported {
  readonly name: string;
  readonly path: string;
  readonly declaration: ts.Statement;
}

/** What src/index.ts passes on, with the statement that declares it. */
function exportsOf(index: string): Exported[] {
  return parse(index).statements.flatMap((statement) => {
    if (!ts.isExportDeclaration(statement) || !ts.isNamedExports(statement.exportClause!))
      return [];
    const from = (statement.moduleSpecifier as ts.StringLiteral).text;
    const path = normalize(join(dirname(index), from));
    const source = parse(path);
    return statement.exportClause.elements.map((element) => {
      const name = (element.propertyName ?? element.name).text;
      const declaration = source.statements.find((each) => declares(each, name));
      if (declaration === undefined) throw new Error(`${path} does not declare ${name}`);
      return { name: element.name.text, path, declaration };
    });
  });
}

function declares(statement: ts.Statement, name: string): boolean {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.some((each) => each.name.getText() === name);
  }
  const declared = (statement as ts.DeclarationStatement).name;
  return declared !== undefined && declared.getText() === name;
}

const hasComment = (node: ts.Node): boolean =>
  ts.getJSDocCommentsAndTags(node).some((each) => ts.isJSDoc(each) && each.comment !== undefined);

type Typed = ts.ClassDeclaration | ts.InterfaceDeclaration;

function methodsOf(declaration: Typed): (ts.MethodDeclaration | ts.MethodSignature)[] {
  return [...declaration.members].filter(
    (member) => ts.isMethodDeclaration(member) || ts.isMethodSignature(member),
  );
}

/** The interfaces of the same file that one extends: what they say of a method, they say for it, too. */
function basesOf(declaration: Typed): Typed[] {
  const names = (declaration.heritageClauses ?? []).flatMap(({ types }) =>
    types.map(({ expression }) => expression.getText()),
  );
  return declaration
    .getSourceFile()
    .statements.filter(ts.isInterfaceDeclaration)
    .filter(({ name }) => names.includes(name.text));
}

/** Methods of classes and interfaces; of overloads, one needs a comment. */
function undocumentedMethods({ name, path, declaration }: Exported): string[] {
  if (!ts.isClassDeclaration(declaration) && !ts.isInterfaceDeclaration(declaration)) return [];
  const told = [declaration, ...basesOf(declaration)].flatMap(methodsOf).filter(hasComment);
  const names = new Set(methodsOf(declaration).map((method) => method.name.getText()));
  return [...names]
    .filter((method) => !/^[#[]/.test(method))
    .filter((method) => !told.some((each) => each.name.getText() === method))
    .map((method) => `${path}: ${name}.${method}`);
}

const exported = exportsOf("src/index.ts");

describe("what the package exports has a comment", () => {
  test("every export", () => {
    expect(exported.length).toBeGreaterThan(50);
    const bare = exported.filter(({ declaration }) => !hasComment(declaration));
    expect(bare.map(({ name, path }) => `${path}: ${name}`)).toEqual([]);
  });

  test("every method", () => {
    expect(exported.flatMap(undocumentedMethods)).toEqual([]);
  });
});

/** The names of the properties of an exported interface. */
function propertiesOf(name: string): string[] {
  const declaration = exported.find((each) => each.name === name)!.declaration;
  return (declaration as ts.InterfaceDeclaration).members.map((member) => member.name!.getText());
}

describe("docs/OPTIONS.md", () => {
  const page = project.text("docs/OPTIONS.md");
  const sections = page.split(/^## /m);

  test.each([
    ["`open({ path", ["OpenOptions"]],
    ["`open({ connect", ["ConnectOptions"]],
    ["`db.transact", ["TransactSyncOptions", "TransactOptions"]],
  ])("%s", (title, interfaces) => {
    const section = sections.find((each) => each.startsWith(title))!;
    const listed = rowsOf(section, "option").map(([name]) => name.replaceAll("`", ""));
    expect(listed.sort()).toEqual(interfaces.flatMap(propertiesOf).sort());
  });
});

test("docs/ERRORS.md has every code, and says whether it is retryable", () => {
  const rows = rowsOf(project.text("docs/ERRORS.md"), "code");
  const listed = rows.filter((row) => row.length === 3);
  const union = exported.find(({ name }) => name === "SituErrorCode")!.declaration;
  const codes = [...union.getText().matchAll(/"(SITU_\w+)"/g)].map(([, code]) => code);
  expect(listed.map(([code]) => code.replaceAll("`", "")).sort()).toEqual(codes.sort());
  for (const [code, retryable] of listed) {
    const error = new SituError(code.replaceAll("`", "") as SituErrorCode, "");
    expect(`${code} ${retryable}`).toBe(`${code} ${error.retryable ? "yes" : "no"}`);
  }
});

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  bytes: 1,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  s: 1_000,
  h: 3_600_000,
};

test("docs/LIMITS.md has the limits of src/runtime/limits.ts", () => {
  const rows = rowsOf(project.text("docs/LIMITS.md"), "what");
  expect(rows.length).toBeGreaterThan(20);
  const values = new Map<string, unknown>(Object.entries(limits));
  for (const [what, limit, constant] of rows) {
    const [, number, unit] = /^(\d+) ?(\w*)$/.exec(limit)!;
    const value = values.get(constant.replaceAll("`", ""));
    expect(value, `${what}: ${constant}`).toBe(Number(number) * UNITS[unit]);
  }
});
