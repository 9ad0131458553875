/**
 * The TypeScript of a document, as one program. The blocks of a page build on each other: what one
 * declares, the next may use, or declare again. So each block becomes a scope within the one before it, and
 * the imports of all blocks come first. Outside of all lie the account table and the database of the
 * README, which are the example everywhere.
 */

export interface Page {
  readonly path: string;
  /** The code of all ```ts blocks. */
  readonly program: string;
  /** What the page says it prints: the ```text blocks. */
  readonly output: string;
}

const EXAMPLE = `import { type Database as Database_, i64 as i64_, str as str_, table as table_, u32 as u32_ } from "situ";
const Account = table_("account", { id: u32_(), owner: str_(24), balance: i64_() }, { key: "id" });
declare const db: Database_;
`;

const FENCE = /^```(ts|text)\n([\s\S]*?)^```$/gm;
const IMPORT = /^import [^;]*;\n/gm;

export function pageOf(path: string, markdown: string): Page {
  const blocks = [...markdown.matchAll(FENCE)].map(([, language, code]) => ({ language, code }));
  const codes = blocks.filter(({ language }) => language === "ts").map(({ code }) => code);
  const imports = codes.flatMap((code) => code.match(IMPORT) ?? []);
  const scopes = codes.map((code) => code.replace(IMPORT, "").replace(/^export /gm, ""));
  const output = blocks.filter(({ language }) => language === "text").map(({ code }) => code);
  const nested = `{\n${scopes.join("{\n")}${"}".repeat(scopes.length)}\n`;
  return {
    path,
    program: codes.length === 0 ? "" : `${EXAMPLE}${mergedImports(imports)}${nested}`,
    output: output.join(""),
  };
}

/** Several blocks may import the same name. */
function mergedImports(imports: readonly string[]): string {
  const modules = new Map<string, Set<string>>();
  for (const statement of imports) {
    const [, names, module] = /^import (?:type )?\{([^}]*)\} from "([^"]+)";/.exec(statement) ?? [];
    if (module === undefined) throw new Error(`a snippet imports in another way: ${statement}`);
    const known = modules.get(module) ?? new Set();
    for (const name of names.split(",")) if (name.trim() !== "") known.add(name.trim());
    modules.set(module, known);
  }
  return [...modules]
    .map(([module, names]) => `import { ${[...names].join(", ")} } from "${module}";\n`)
    .join("");
}
