// Brings a fresh clone to where everything runs: packages from the lock file, then the build.
// Does nothing twice: both steps are skipped or incremental when they are up to date. With
// --for-tests also what the tests compare Situ with (peers.mjs), at the same time.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Situ needs Node 20.19 or newer; this is ${process.version}.`);
  process.exit(1);
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: "inherit" });
  if (error) console.error(`${command}: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

let peers = Promise.resolve(0);
if (process.argv.includes("--for-tests")) {
  const script = join(root, "scripts", "peers.mjs");
  const child = spawn(process.execPath, [script, "--for-tests"], { cwd: root, stdio: "inherit" });
  peers = new Promise((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
}

const installed = join(root, "node_modules", ".package-lock.json");
const locked = join(root, "package-lock.json");
if (!existsSync(installed) || statSync(installed).mtimeMs < statSync(locked).mtimeMs) {
  run("npm", ["ci", "--no-fund", "--no-audit"]);
}
run(process.execPath, [join(root, "node_modules", "typescript", "bin", "tsc"), "-p", root]);
run(process.execPath, [join(root, "scripts", "bundle.mjs")]);
process.exitCode = await peers;
