// Brings in the versions of TypeScript that the package's types are tested with, and esbuild: each from
// npm, into a folder of its own in .nodes/, at a version that is written down here. A user of the package
// downloads none of this.
//
//   node scripts/typescripts.mjs --install    all of them; fails if one cannot be had
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPackage } from "./install-package.mjs";

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

function install(name, version) {
  const isThere = () => existsSync(join(packageOf(name, version), "package.json"));
  return installPackage(`${name}@${version}`, folderOf(name, version), isThere);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wanted = [...TYPESCRIPTS.map((version) => ["typescript", version]), ["esbuild", ESBUILD]];
  const missing = wanted.filter(([name, version]) => !install(name, version));
  for (const [name, version] of missing) console.error(`not installed: ${name} ${version}`);
  process.exitCode = missing.length === 0 ? 0 : 1;
}
