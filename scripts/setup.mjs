// Brings a fresh clone to where everything runs: packages from the lock file, then the build. Leaves
// alone what is fresh (fresh.mjs).
//
//   --peers   also what Situ is compared with (peers.mjs), at the same time
//   --nodes   also the other versions of Node.js and of TypeScript that it is tested on (nodes.mjs,
//             typescripts.mjs)
import { spawn, spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildOnce, isBuilt, isInstalled, removeOrphans } from "./fresh.mjs";

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

function runInBackground(script) {
  const child = spawn(process.execPath, [join(root, "scripts", script), "--install"], {
    cwd: root,
    stdio: "inherit",
  });
  return new Promise((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
}

const others = { peers: ["peers.mjs"], nodes: ["nodes.mjs", "typescripts.mjs"] };
const installing = Object.entries(others)
  .filter(([name]) => process.argv.includes(`--${name}`))
  .flatMap(([, scripts]) => scripts.map(runInBackground));

if (!isInstalled(root)) run("npm", ["ci", "--no-fund", "--no-audit"]);
if (!isBuilt(root)) {
  buildOnce(root, () => {
    run(process.execPath, [join(root, "node_modules", "typescript", "bin", "tsc"), "-p", root]);
    removeOrphans(root);
    run(process.execPath, [join(root, "scripts", "bundle.mjs")]);
  });
}
process.exitCode = Math.max(0, ...(await Promise.all(installing)));
