/**
 * The package as it is packed: its types in the versions of TypeScript that it supports, from modules
 * and from CommonJS, and the package in a bundle.
 */

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nodeProgram, VERSIONS } from "../../scripts/nodes.mjs";
import { compiler, esbuild, TYPESCRIPTS } from "../../scripts/typescripts.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const run = promisify(execFile);
let folder: string;

/** What a program can do, with the types that it expects; `using` is left to newer compilers. */
const PROGRAM = `
const Task = table(
  "task",
  {
    id: autoIncrement(),
    title: str(40),
    state: enumOf("open", "closed"),
    due: nullable(timestamp()),
    owner: nullable(uuid()),
    size: u53(),
  },
  { key: "id", indexes: { byDue: { on: ["due"] }, byOwner: { on: ["owner"], unique: true } } },
);
const Other = table("other", { id: u32() }, { key: "id" });

export async function main(path: string): Promise<string> {
  const db = await open({ path, tables: [Task], memoryBytes: 16 * 2 ** 20, durability: "none" });
  const id: number = db.insert(Task, { title: "write", state: "open", size: 2 ** 40 });
  db.update(Task, id, { due: new Date(5), state: "closed" });
  const row = db.get(Task, id);
  const due: Date | null | undefined = row?.due;
  const found = db.scan(Task, { index: "byDue", gt: null, lte: 5 }).toArray();
  const state: "open" | "closed" = found[0].state;
  // @ts-expect-error it was not opened
  const wrong = (): unknown => db.get(Other, 1);
  // @ts-expect-error a callback that is async
  const late = (): unknown => db.transactSync(async (tx) => tx.get(Task, 1));
  const error: SituError = new RowError("SITU_EXISTS", "", { table: "task", key: 1 });
  const own: Database<"task"> = db;
  await db.transact(async (tx: AsyncTransaction) => tx.getMany(Task, [id]));
  await own.close();
  return JSON.stringify([id, due, state, typeof wrong, typeof late, error.code]);
}
`;
const NAMES =
  "autoIncrement, enumOf, nullable, open, RowError, SituError, str, table, timestamp, u32, u53, uuid";
const TYPES = "type AsyncTransaction, type Database";
const EXPECTED = `[1,"1970-01-01T00:00:00.005Z","closed","function","function","SITU_EXISTS"]`;

function write(name: string, text: string): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "situ-package-"));
  const packed = await run(
    "npm",
    ["pack", "--ignore-scripts", "--json", "--pack-destination", folder],
    {
      cwd: root,
    },
  );
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
  mkdirSync(join(folder, "node_modules", "situ"), { recursive: true });
  const place = ["-C", join(folder, "node_modules", "situ"), "--strip-components=1"];
  await run("tar", ["-xzf", join(folder, filename), ...place]);
  // Its dependency, and the types of Node.js, as they are installed here.
  for (const name of ["koffi", "@types", "undici-types"]) {
    symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  }
  write("package.json", `{ "private": true }`);
  write("main.mts", `import { ${NAMES}, ${TYPES} } from "situ";\n${PROGRAM}`);
  write("main.cts", `import { ${NAMES}, ${TYPES} } from "situ";\n${PROGRAM}`);
  write("main.ts", `import { ${NAMES}, ${TYPES} } from "situ";\n${PROGRAM}`);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const STRICT = {
  strict: true,
  skipLibCheck: false,
  // The library of the compiler itself is none of our business.
  skipDefaultLibCheck: true,
  noEmit: true,
  target: "es2022",
  types: ["node"],
  exactOptionalPropertyTypes: true,
};
const COMPILATIONS = {
  "node16, modules and CommonJS": {
    files: ["main.mts", "main.cts"],
    compilerOptions: { module: "node16" },
  },
  "nodenext, modules and CommonJS": {
    files: ["main.mts", "main.cts"],
    compilerOptions: { module: "nodenext" },
  },
  bundler: {
    files: ["main.ts"],
    compilerOptions: { module: "esnext", moduleResolution: "bundler" },
  },
};

/** Each compiler in one way, each way with two compilers; the newest is quick, and tries them all. */
const [oldest, older, newer, newest] = TYPESCRIPTS;
const PLANS = [
  [oldest, "node16, modules and CommonJS"],
  [older, "nodenext, modules and CommonJS"],
  [newer, "bundler"],
  [newest, "node16, modules and CommonJS"],
  [newest, "nodenext, modules and CommonJS"],
  [newest, "bundler"],
] as const;

describe("the types", () => {
  test.each(PLANS)(
    "TypeScript %s, %s",
    async (version, name) => {
      const { files, compilerOptions } = COMPILATIONS[name];
      const config = `tsconfig-${version}-${Object.keys(COMPILATIONS).indexOf(name)}.json`;
      write(config, JSON.stringify({ files, compilerOptions: { ...STRICT, ...compilerOptions } }));
      const compiled = run(process.execPath, [compiler(version), "-p", config], { cwd: folder });
      const said = await compiled.then(
        () => "nothing",
        (error: { stdout: string; stderr: string }) => `errors: ${error.stdout}${error.stderr}`,
      );
      expect(said).toBe("nothing");
    },
    300_000,
  );
});

/** As a command: its functions leave a process behind. */
function bundle(...args: string[]): Promise<unknown> {
  const program = join(esbuild, "bin", "esbuild");
  return run(process.execPath, [program, ...args, "--log-level=error"], { cwd: folder });
}

describe("the package", () => {
  test.each(VERSIONS)(
    "is imported and required by Node.js %s",
    async (version) => {
      for (const [name, format] of [
        ["main.mts", "esm"],
        ["main.cts", "cjs"],
      ] as const) {
        await bundle(name, `--format=${format}`, `--outfile=${name.replace("ts", "js")}`);
      }
      const body = `const { createRequire } = await import("node:module");
      const require = createRequire(process.cwd() + "/x.js");
      const { destroy } = await import("situ");
      for (const { main } of [await import("./main.mjs"), require("./main.cjs")]) {
        console.log(await main("./store"));
        await destroy("./store");
      }`;
      const args = ["--input-type=module", "-e", body];
      const { stdout, stderr } = await run(nodeProgram(version), args, { cwd: folder });
      expect(stdout.trim().split("\n")).toEqual([EXPECTED, EXPECTED]);
      expect(stderr).toBe("");
    },
    300_000,
  );

  test("says what to leave out of a bundle, and works when it is left out", async () => {
    write(
      "bundled-main.mjs",
      `import { open, destroy } from "situ";
      (async () => {
        try {
          const db = await open({ path: "./bundled", memoryBytes: ${16 * 2 ** 20} });
          await db.close();
          console.log("opened");
        } catch (error) {
          console.log(error.code, error.message);
        }
        await destroy("./bundled").catch(() => {});
      })();`,
    );
    const outcomes: string[] = [];
    for (const [format, external] of [
      ["esm", ["koffi"]],
      ["cjs", ["koffi"]],
      ["esm", ["koffi", "situ"]],
    ] as const) {
      const outfile = join(folder, `bundle.${format === "esm" ? "mjs" : "cjs"}`);
      const outside = external.map((each) => `--external:${each}`);
      await bundle(
        "bundled-main.mjs",
        "--bundle",
        "--platform=node",
        `--format=${format}`,
        `--outfile=${outfile}`,
        ...outside,
      );
      const { stdout } = await run(process.execPath, [outfile], { cwd: folder });
      outcomes.push(stdout.trim());
    }
    expect(outcomes[0]).toMatch(/^SITU_UNSUPPORTED .*part of a bundle.*--external:situ/);
    expect(outcomes[1]).toMatch(/^SITU_UNSUPPORTED .*part of a bundle.*--external:situ/);
    expect(outcomes[2]).toBe("opened");
  });
});
