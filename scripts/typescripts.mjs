// Brings in the versions of TypeScript that the package's types are tested with, and esbuild: each from
// npm, into a folder of its own in .nodes/, at a version that is written down here. A user of the package
// downloads none of this.
//
//   node scripts/typescripts.mjs --install    all of them; fails if one cannot be had
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The oldest that is supported, and the latest of each line when this was written. */
export const TYPESCRIPTS = ["5.4.5", "5.9.3", "6.0.3", "7.0.2"];
const ESBUILD = "0.28.2";

const folderOf = (name, version) => join(root, ".nodes", `${name}-${version}`);
const packageOf = (name, version) => join(folderOf(name, version), "node_modules", name);

/** The compiler of one version, installed or not: a script for Node.js. */
export const compiler = (version) => join(packageOf("typescript", version), "bin", "tsc");
/** The folder of esbuild's package. */
export const esbuild = packageOf("esbuild", ESBUILD);

/** Whether it is there, in the end. An install that was interrupted has another name. */
function install(name, version) {
  const place = folderOf(name, version);
  const isThere = () => existsSync(join(packageOf(name, version), "package.json"));
  if (isThere()) return true;
  const unfinished = `${place}-unfinished`;
  for (const old of [place, unfinished]) rmSync(old, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  writeFileSync(join(unfinished, "package.json"), JSON.stringify({ private: true }));
  const wanted = `${name}@${version}`;
  console.error(`> npm install ${wanted}`);
  const args = ["install", "--no-fund", "--no-audit", "--no-save", "--ignore-scripts", wanted];
  const { status } = spawnSync("npm", args, {
    cwd: unfinished,
    stdio: ["ignore", process.stderr, "inherit"],
  });
  if (status !== 0) return false;
  renameSync(unfinished, place);
  return isThere();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wanted = [...TYPESCRIPTS.map((version) => ["typescript", version]), ["esbuild", ESBUILD]];
  const missing = wanted.filter(([name, version]) => !install(name, version));
  for (const [name, version] of missing) console.error(`not installed: ${name} ${version}`);
  process.exitCode = missing.length === 0 ? 0 : 1;
}
