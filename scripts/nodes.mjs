// Brings in the versions of Node.js that the tests run Situ on: each from npm's package for this
// platform, into a folder of its own in .nodes/, at a version that is written down here.
// A user of the package downloads none of this.
//
//   node scripts/nodes.mjs --install    all of them; fails if one cannot be had
//   node scripts/nodes.mjs --engine     runs the tests of memory and engine on the one that users should prefer
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPackage } from "./install-package.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, ".nodes");

/** The latest of each line when this was written. */
export const VERSIONS = ["20.20.2", "22.23.3", "24.21.0", "26.10.0"];

/** The program of one version, installed or not. */
export function nodeProgram(version) {
  if (process.versions.node === version) return process.execPath;
  return join(folder, version, "node_modules", packageName(), "bin", "node");
}

function packageName() {
  return `node-${process.platform}-${process.arch}`;
}

function isThere(version) {
  if (!existsSync(nodeProgram(version))) return false;
  const { stdout } = spawnSync(nodeProgram(version), ["--version"], { encoding: "utf8" });
  return stdout?.trim() === `v${version}`;
}

function install(version) {
  const wanted = `${packageName()}@${version}`;
  return installPackage(wanted, join(folder, version), () => isThere(version));
}

function installForTests() {
  const missing = VERSIONS.filter((version) => !install(version));
  if (missing.length === 0) return;
  console.error(
    `The tests run Situ on these versions of Node.js, too. They could not be installed:`,
  );
  for (const version of missing) console.error(`  ${version} (npm: ${packageName()})`);
  process.exitCode = 1;
}

/** The whole of them: the engine is where a version's own way with memory would be noticed. */
function testEngine() {
  const version = VERSIONS.find((each) => each.startsWith("24."));
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const args = [vitest, "run", "tests/memory/", "tests/engine/"];
  console.error(`> node ${version}: vitest ${args.slice(1).join(" ")}`);
  const { status } = spawnSync(nodeProgram(version), args, { cwd: root, stdio: "inherit" });
  process.exitCode = status ?? 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv[2] === "--install") {
    installForTests();
  } else if (process.argv[2] === "--engine") {
    testEngine();
  } else {
    console.error("node scripts/nodes.mjs --install | --engine");
    process.exitCode = 2;
  }
}
