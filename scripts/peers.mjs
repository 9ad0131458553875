// Brings in what Situ is compared with, and what looks at its reports: packages of npm into
// benchmarks/peers, servers and a browser from Debian's packages. What is there is left alone.
//
//   node scripts/peers.mjs --install         all that `npm test` needs; fails if something cannot be had
//   node scripts/peers.mjs --install etcd    only etcd, for `npm run cluster`
import { spawn } from "node:child_process";
import { accessSync, constants, existsSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isInstalled, noteAbi } from "./fresh.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const postgresFolder = "/usr/lib/postgresql/15/bin";

/** Each of these says whether it is there, in the end. They may be called at the same time. */
export async function installPackages() {
  const folder = join(root, "benchmarks", "peers");
  // better-sqlite3 is compiled for one ABI.
  const abi = process.versions.modules;
  if (isInstalled(folder, { abi })) return true;
  console.error("Installing the peers once; better-sqlite3 may compile for a minute or two.");
  // JOBS is for node-gyp: compile on all cores.
  const env = { ...process.env, JOBS: "max" };
  if (!(await run("npm", ["ci", "--no-fund", "--no-audit"], { cwd: folder, env }))) return false;
  noteAbi(folder, abi);
  return true;
}

export async function installRedis() {
  return isOnPath("redis-server") || (await installDebian("redis-server"));
}

export async function installEtcd() {
  return isOnPath("etcd") || (await installDebian("etcd-server"));
}

export async function installChromium() {
  return isOnPath("chromium") || (await installDebian("chromium"));
}

export async function installPostgres() {
  if (existsSync(join(postgresFolder, "pgbench"))) return true;
  if (!(await installDebian("postgresql-common"))) return false;
  // Otherwise the package makes a cluster of its own and starts a server for it.
  const settings = "/etc/postgresql-common/createcluster.conf";
  const text = existsSync(settings) ? readFileSync(settings, "utf8") : "";
  writeFileSync(settings, `${text}\ncreate_main_cluster = false\n`);
  try {
    return await installDebian("postgresql-15");
  } finally {
    writeFileSync(settings, text);
  }
}

const canUseApt = process.getuid?.() === 0 && isOnPath("apt-get");
// One at a time. Others on this machine may hold apt's lock, too: apt waits for them, not for ever.
const aptOptions = ["-q", "-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=3"];
const aptEnvironment = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
let aptQueue = Promise.resolve();
let updated;

function installDebian(name) {
  if (!canUseApt) {
    console.error(`${name} is missing, and only root can install it with apt-get.`);
    return false;
  }
  const installed = aptQueue.then(async () => {
    // It may fail for a source that has nothing to do with us; then the install tells.
    updated ??= apt("update");
    await updated;
    return apt("install", "-y", "--no-install-recommends", name);
  });
  aptQueue = installed;
  return installed;
}

function apt(command, ...args) {
  return run("apt-get", [command, ...aptOptions, ...args], { env: aptEnvironment });
}

/** Everything goes to stderr: the last line of stdout belongs to --json of a bench. */
function run(command, args, options) {
  console.error(`> ${command} ${args.join(" ")}`);
  const child = spawn(command, args, { stdio: ["ignore", process.stderr, "inherit"], ...options });
  return new Promise((resolve) => {
    child.once("error", (error) => {
      console.error(`${command}: ${error.message}`);
      resolve(false);
    });
    child.once("exit", (code) => resolve(code === 0));
  });
}

function isOnPath(program) {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

const forTests = {
  "the packages in benchmarks/peers (npm ci)": installPackages,
  "redis-server 7 (Debian: redis-server)": installRedis,
  "PostgreSQL 15 with pgbench (Debian: postgresql-15)": installPostgres,
  "etcd 3.4 or newer (Debian: etcd-server)": installEtcd,
  "Chromium (Debian: chromium)": installChromium,
};
/** What `npm run cluster` starts. */
const forCluster = {
  "etcd 3.4 or newer (Debian and Ubuntu: etcd-server; elsewhere https://etcd.io/docs/latest/install)":
    installEtcd,
};

async function installAll(wanted, why) {
  const installing = Object.entries(wanted).map(([name, install]) => [name, install()]);
  const missing = [];
  for (const [name, installed] of installing) {
    if (!(await installed)) missing.push(name);
  }
  if (missing.length === 0) return;
  console.error(`${why} These could not be installed:`);
  for (const name of missing) console.error(`  ${name}`);
  process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , option, name] = process.argv;
  if (option === "--install" && name === undefined) {
    await installAll(forTests, "The tests compare Situ with its peers.");
  } else if (option === "--install" && name === "etcd") {
    await installAll(forCluster, "A cluster keeps its configuration in etcd.");
  } else {
    console.error("node scripts/peers.mjs --install [etcd]");
    process.exitCode = 2;
  }
}
