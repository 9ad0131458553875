// npm run bench -- <name> [options]: brings in what the benchmark is compared with, then runs it.
// A peer that cannot be installed does not stop the run: the report names it as missing.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { optionsUsage, parseBenchArguments } from "../dist/benchmarks/harness/options.js";

const benches = {
  memory: {
    about: "reads and transfers on one machine against lmdb, SQLite and Redis",
    needs: [installPackages, installRedis],
  },
  snapshots: {
    about: "what snapshots cost, and ordered tables against lmdb and SQLite",
    needs: [installPackages],
  },
  durable: {
    about: "log, commits that wait for the disk and recovery, against PostgreSQL and bare syncs",
    needs: [installPostgres],
  },
  fabric: {
    about:
      "messages and a cluster on loopback against Redis and etcd, round trips, simulated FaSST",
    needs: [installPackages, installRedis, installEtcd],
  },
};

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const args = process.argv.slice(2);

function usage(problem) {
  console.error(`${problem}\n\nnpm run bench -- <name> [options]\n`);
  for (const [name, { about }] of Object.entries(benches)) {
    console.error(`  ${name.padEnd(14)} ${about}`);
  }
  console.error(`\n${optionsUsage}`);
  process.exit(2);
}

// Everything but the report goes to stderr: the last line of stdout belongs to --json.
function run(command, commandArgs, options = {}) {
  console.error(`> ${command} ${commandArgs.join(" ")}`);
  const stdio = ["ignore", process.stderr, "inherit"];
  const { status, error } = spawnSync(command, commandArgs, { stdio, ...options });
  if (error) console.error(`${command}: ${error.message}`);
  return status === 0;
}

function installPackages() {
  const folder = join(root, "benchmarks", "peers");
  const installed = join(folder, "node_modules", ".package-lock.json");
  const locked = join(folder, "package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(locked).mtimeMs) return;
  console.error("Installing the peers once; better-sqlite3 may compile for a minute or two.");
  run("npm", ["ci", "--no-fund", "--no-audit"], { cwd: folder });
}

function installRedis() {
  if (!spawnSync("redis-server", ["--version"]).error) return;
  installDebian("redis-server");
}

function installEtcd() {
  if (!spawnSync("etcd", ["--version"]).error) return;
  installDebian("etcd-server");
}

function installPostgres() {
  if (existsSync("/usr/lib/postgresql/15/bin/pgbench")) return;
  // Otherwise the package makes a cluster of its own and starts a server for it.
  const settings = "/etc/postgresql-common/createcluster.conf";
  if (!installDebian("postgresql-common")) return;
  const text = existsSync(settings) ? readFileSync(settings, "utf8") : "";
  writeFileSync(settings, `${text}\ncreate_main_cluster = false\n`);
  installDebian("postgresql-15");
  writeFileSync(settings, text);
}

/** Says whether the package could be installed. */
function installDebian(name) {
  if (process.getuid?.() !== 0 || spawnSync("apt-get", ["--version"]).error) {
    console.error(`${name} is missing; install it to compare with it.`);
    return false;
  }
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  run("apt-get", ["update", "-q"], { env });
  return run("apt-get", ["install", "-q", "-y", "--no-install-recommends", name], { env });
}

if (args.includes("--help")) usage("Measures Situ against its peers, in one run.");

let parsed;
try {
  parsed = parseBenchArguments(args);
} catch (error) {
  usage(error.message);
}
const [name, ...surplus] = parsed.names;
if (name === undefined) usage("Which benchmark?");
if (!Object.hasOwn(benches, name)) usage(`There is no benchmark "${name}".`);
if (surplus.length > 0) usage(`One benchmark at a time; "${surplus.join(" ")}" is too much.`);

for (const install of benches[name].needs) install();

const script = join(root, "dist", "benchmarks", name, "main.js");
// Garbage of one contestant is collected before the next one's turn.
const child = spawn(process.execPath, ["--expose-gc", script, ...args], { stdio: "inherit" });
// The child stops its servers and removes its folders; this process only waits for that. Ctrl-C
// reaches it by itself.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("exit", (code, signal) => {
  if (signal) console.error(`The benchmark was ended by ${signal}.`);
  process.exit(code ?? 1);
});
