// What is up to date is left alone. Contents are compared, not times: a change of the branch touches
// files that are the same again, and leaves others older than what was built from them.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

/**
 * Whether node_modules holds what the lock file says. npm removes its own list before it changes
 * anything and writes it last, so an install that was interrupted is none. What was compiled for
 * another version of Node's ABI (only peers are; koffi and the tools use Node-API) is none either.
 */
export function isInstalled(folder, { abi } = {}) {
  const locked = readJson(join(folder, "package-lock.json"))?.packages;
  const installed = readJson(join(folder, "node_modules", ".package-lock.json"))?.packages;
  if (locked === undefined || installed === undefined) return false;
  for (const [path, wanted] of Object.entries(locked)) {
    if (path === "") continue;
    const found = installed[path];
    // Binaries for other systems.
    if (found === undefined && wanted.optional) continue;
    if (found?.version !== wanted.version || found.integrity !== wanted.integrity) return false;
    if (!existsSync(join(folder, path))) return false;
  }
  if (!Object.keys(installed).every((path) => path in locked)) return false;
  return abi === undefined || readJson(abiPath(folder)) === abi;
}

/** To call after an install of what is compiled on this machine. */
export function noteAbi(folder, abi) {
  writeFileSync(abiPath(folder), JSON.stringify(abi));
}

function abiPath(folder) {
  return join(folder, "node_modules", ".abi.json");
}

/** What the build reads. Scripts run as they are, except for the one that bundles. */
const FOLDERS = ["src", "simulation", "workloads", "benchmarks", "examples", "tests"];
const FILES = ["tsconfig.json", "package-lock.json", "scripts/bundle.mjs"];

function sourcesOf(root) {
  const found = FILES.filter((path) => existsSync(join(root, path)));
  const walk = (folder) => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory() && entry.name !== "node_modules") walk(path);
      else if (entry.isFile() && path.endsWith(".ts")) found.push(path);
    }
  };
  for (const folder of FOLDERS) if (existsSync(join(root, folder))) walk(folder);
  return found.sort();
}

function fingerprintOf(root) {
  const hash = createHash("sha256");
  for (const path of sourcesOf(root)) {
    const text = readFileSync(join(root, path));
    hash.update(`${path} ${text.length}\n`).update(text);
  }
  return hash.digest("hex");
}

/** Who builds by hand (tsc, bundle.mjs) changes these. */
function outputsOf(root) {
  const dist = join(root, "dist");
  const names = readdirSync(dist).filter((name) => /\.js$|^\.tsbuildinfo$/.test(name));
  return names.sort().map((name) => [name, statSync(join(dist, name)).mtimeMs]);
}

const stampPath = (root) => join(root, "dist", ".build.json");

/** Whether dist/ was built, to the end, from the sources as they are. */
export function isBuilt(root) {
  const stamp = readJson(stampPath(root));
  if (stamp === undefined || stamp.sources !== fingerprintOf(root)) return false;
  return JSON.stringify(stamp.outputs) === JSON.stringify(outputsOf(root));
}

/** Calls `build`, which throws if it fails; until it is through, dist/ counts as not built. */
export function buildOnce(root, build) {
  rmSync(stampPath(root), { force: true });
  // Sources that change during the build are built the next time.
  const sources = fingerprintOf(root);
  build();
  writeFileSync(stampPath(root), JSON.stringify({ sources, outputs: outputsOf(root) }));
}

/** What the compiler made of sources that are gone: a script would still find it. */
export function removeOrphans(root) {
  const dist = join(root, "dist");
  const sources = new Set(sourcesOf(root));
  for (const folder of FOLDERS) {
    if (!existsSync(join(dist, folder))) continue;
    for (const entry of readdirSync(join(dist, folder), { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      const [, stem] = /^(.*?)\.(?:js|d\.ts)(?:\.map)?$/.exec(path) ?? [];
      if (!entry.isFile() || stem === undefined) continue;
      const source = `${relative(dist, stem).split(sep).join("/")}.ts`;
      // Written by the bundler, anew each time.
      if (source.startsWith("tests/bundled/")) continue;
      if (!sources.has(source)) rmSync(path);
    }
  }
}
