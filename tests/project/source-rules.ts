/**
 * The rules of the source that neither the compiler nor the linter can check, as functions from a
 * file's text to a list of complaints. They look at the syntax tree, so a comment or a string that
 * mentions `Date.now` is none.
 */

import { dirname, join, normalize } from "node:path/posix";
import ts from "typescript";

/** From top to bottom: a layer imports from itself and from those below it. */
export const LAYERS = [
  "cli",
  "node",
  "gateways",
  "transfer",
  "database",
  "tools",
  "cluster",
  "protocols",
  "tables",
  "stores",
  "attach",
  "log",
  "device",
  "folder",
  "engine",
  "fabric",
  "memory",
  "runtime",
];

/** Where the clock and randomness are passed in, or asked of runtime/: nothing there sets timers. */
const TIMELESS_LAYERS = ["protocols", "tables", "stores", "engine", "memory"];
const TIMERS = ["setTimeout", "setInterval", "setImmediate"];
const CLOCKS_AND_DICE = ["Date.now", "Math.random", "performance.now", "process.hrtime"];
const DICE_MODULES = ["node:crypto", "crypto"];

/** Complaints about one file; `path` is relative to the project, as in src/engine/run.ts. */
export type Rule = (path: string, text: string) => string[];

const parsed = new Map<string, ts.SourceFile>();

/** All rules look at the same files. */
function parse(path: string, text: string): ts.SourceFile {
  const before = parsed.get(path);
  if (before?.text === text) return before;
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  parsed.set(path, source);
  return source;
}

function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  ts.forEachChild(node, (child) => walk(child, visit));
}

function at(source: ts.SourceFile, node: ts.Node, what: string): string {
  const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
  return `${source.fileName}:${line + 1}: ${what}`;
}

interface Import {
  readonly node: ts.Node;
  readonly name: string;
  /** A `type` is gone when the program runs; `later` is import(). */
  readonly kind: "value" | "type" | "later";
}

/** Every module that a file names: imports, re-exports, import() and import types. */
function imports(source: ts.SourceFile): Import[] {
  const found: Import[] = [];
  const add = (named: ts.Node | undefined, kind: Import["kind"]): void => {
    if (named !== undefined && ts.isStringLiteralLike(named)) {
      found.push({ node: named, name: named.text, kind });
    }
  };
  walk(source, (node) => {
    if (ts.isImportDeclaration(node)) {
      const isType = node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword;
      add(node.moduleSpecifier, isType ? "type" : "value");
    } else if (ts.isExportDeclaration(node)) {
      add(node.moduleSpecifier, node.isTypeOnly ? "type" : "value");
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add(node.argument.literal, "type");
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node.arguments[0], "later");
    }
  });
  return found;
}

export function importsOf(path: string, text: string): Import[] {
  return imports(parse(path, text));
}

/** The layer of a file in src/; -1 for src/index.ts, which stands above all. */
function layerOf(path: string): number | undefined {
  if (path === "src/index.ts") return -1;
  const layer = LAYERS.indexOf(/^src\/([^/]+)\//.exec(path)?.[1] ?? "");
  return layer < 0 ? undefined : layer;
}

export const importsPointDownward: Rule = (path, text) => {
  const source = parse(path, text);
  const from = layerOf(path);
  if (from === undefined) return [`${path}: not in one of the layers ${LAYERS.join(", ")}`];
  return imports(source).flatMap(({ node, name }) => {
    if (name === "situ") return [at(source, node, "imports the package from inside")];
    if (!name.startsWith(".")) return [];
    const target = normalize(join(dirname(path), name));
    if (target === "src/index.ts") return [at(source, node, "imports src/index.ts from below")];
    const to = layerOf(target);
    if (to === undefined) return [at(source, node, `imports ${target}, which is in no layer`)];
    if (to >= from) return [];
    return [at(source, node, `${LAYERS[from]} imports ${LAYERS[to]}, which lies above it`)];
  });
};

/** Folders of stores/ that kinds of tables share; every other one is a kind, and knows no sibling. */
const SHARED_STORES = ["shards", "remote"];

export const kindsKnowNoSiblings: Rule = (path, text) => {
  const kindOf = (file: string): string | undefined => /^src\/stores\/([^/]+)\//.exec(file)?.[1];
  const from = kindOf(path);
  if (from === undefined) return [];
  const source = parse(path, text);
  return imports(source).flatMap(({ node, name }) => {
    const to = name.startsWith(".") ? kindOf(normalize(join(dirname(path), name))) : undefined;
    if (to === undefined || to === from || SHARED_STORES.includes(to)) return [];
    return [at(source, node, `stores/${from} imports stores/${to}: share it in stores/shards`)];
  });
};

/** Examples show what a user would write, and a user has only the package. */
export const importsThePublicFace: Rule = (path, text) => {
  const source = parse(path, text);
  return imports(source).flatMap(({ node, name }) => {
    if (!name.startsWith(".")) return [];
    const target = normalize(join(dirname(path), name));
    return target.startsWith("examples/") ? [] : [at(source, node, `imports ${target}`)];
  });
};

export const noClocksOrDice: Rule = (path, text) => {
  if (path.startsWith("src/runtime/")) return [];
  const source = parse(path, text);
  const complaints: string[] = [];
  const complain = (node: ts.Node, what: string): void => {
    complaints.push(at(source, node, `${what}: ask src/runtime/ instead`));
  };
  const isTimeless = TIMELESS_LAYERS.some((layer) => path.startsWith(`src/${layer}/`));
  walk(source, (node) => {
    if (ts.isPropertyAccessExpression(node)) {
      const name = node.getText(source).replace(/^globalThis\./, "");
      if (CLOCKS_AND_DICE.includes(name)) complain(node, name);
    }
    // With an argument it only formats a time that somebody passed in.
    if (isNamed(node, "Date") && (node.arguments?.length ?? 0) === 0) complain(node, "Date()");
    if (ts.isIdentifier(node) && isTimeless && TIMERS.includes(node.text)) {
      complain(node, node.text);
    }
  });
  for (const { node, name } of imports(source)) {
    if (DICE_MODULES.includes(name)) complain(node, name);
    if (isTimeless && /^(node:)?timers/.test(name)) complain(node, name);
  }
  return complaints;
};

function isNamed(node: ts.Node, name: string): node is ts.NewExpression | ts.CallExpression {
  if (!ts.isNewExpression(node) && !ts.isCallExpression(node)) return false;
  return ts.isIdentifier(node.expression) && node.expression.text === name;
}

export const noDefaultExports: Rule = (path, text) => {
  const source = parse(path, text);
  const complaints: string[] = [];
  walk(source, (node) => {
    const isDefault =
      ts.isExportAssignment(node) ||
      node.kind === ts.SyntaxKind.DefaultKeyword ||
      (ts.isExportSpecifier(node) && node.name.text === "default");
    if (isDefault && !ts.isDefaultClause(node.parent)) {
      complaints.push(at(source, node, "default export"));
    }
  });
  return complaints;
};

export const noAny: Rule = (path, text) => {
  const source = parse(path, text);
  const complaints: string[] = [];
  walk(source, (node) => {
    if (node.kind === ts.SyntaxKind.AnyKeyword) complaints.push(at(source, node, "any"));
  });
  return complaints;
};

/** A barrel: a file that only passes on what others export. src/index.ts is the public face. */
export const noBarrels: Rule = (path, text) => {
  if (path === "src/index.ts") return [];
  if (/(^|\/)index\.ts$/.test(path)) return [`${path}: only src/index.ts may be called index.ts`];
  const { statements } = parse(path, text);
  const passesOn = (statement: ts.Statement): boolean =>
    ts.isExportDeclaration(statement) && statement.moduleSpecifier !== undefined;
  if (statements.length > 0 && statements.every(passesOn)) return [`${path}: a barrel`];
  return [];
};

/** A reader learns what a file is for at its top, or at the first thing that it exports. */
export const opensWithAnEssay: Rule = (path, text) => {
  const { statements } = parse(path, text);
  const isExported = (statement: ts.Statement): boolean =>
    ts.canHaveModifiers(statement) &&
    ts.getModifiers(statement)?.[0]?.kind === ts.SyntaxKind.ExportKeyword;
  const firsts = [
    statements.find((statement) => !ts.isImportDeclaration(statement)),
    statements.find(isExported),
  ];
  const places = [0, ...firsts.flatMap((first) => first?.getFullStart() ?? [])];
  const comments = places.flatMap((place) => ts.getLeadingCommentRanges(text, place) ?? []);
  const isEssay = ({ pos, end }: ts.CommentRange): boolean => {
    const comment = text.slice(pos, end);
    return (comment.match(/\p{L}{2,}/gu) ?? []).length >= 4 && !/biome-ignore|@ts-/.test(comment);
  };
  return comments.some(isEssay) ? [] : [`${path}: no comment says what it is for`];
};
