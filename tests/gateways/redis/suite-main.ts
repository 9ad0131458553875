/**
 * Redis's own test suite against the gateway, in its external-server mode: `npm run redis-suite`.
 * The suite is that of Redis 7.0.15, from Debian's source package, kept in a temporary folder. Tests
 * that cannot pass are named in suite-skips.txt, under the reason; docs/REDIS.md tells more.
 *
 *   npm run redis-suite -- [--unit unit/type/hash]… [--source DIR] [--threads N] [--verbose]
 *
 * Prints how many tests passed, failed and were skipped in each unit, and exits with 1 if one failed.
 */

import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ownerOfThis } from "../../../benchmarks/harness/guard/guard.ts";
import { destroy } from "../../../src/database/open.ts";
import { serve } from "../../../src/gateways/serve.ts";

const PACKAGE = "http://deb.debian.org/debian/pool/main/r/redis/redis_7.0.15.orig.tar.gz";
const PACKAGE_SHA256 = "4b1dc4ee6d622a09fff9c6777191209750fb5e5a725ef78ea012d6eef4c22982";
const FOLDER = "redis-7.0.15";

const UNITS = [
  "unit/type/string",
  "unit/type/hash",
  "unit/type/set",
  "unit/multi",
  "unit/expire",
  "unit/keyspace",
  "unit/scan",
  "unit/protocol",
  "unit/quit",
];

/** What the suite itself can leave out: tests about parts of Redis that are not here. */
const TAGS = "-needs:debug -needs:repl -needs:save -needs:config-maxmemory";

/** The suite looks for these beside its own source. */
const PROGRAMS = ["redis-server", "redis-cli", "redis-benchmark"];

interface Outcome {
  readonly passed: number;
  readonly skipped: number;
  readonly failures: readonly string[];
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      unit: { type: "string", multiple: true, default: UNITS },
      source: { type: "string" },
      threads: { type: "string", default: "1" },
      verbose: { type: "boolean", default: false },
    },
  });
  const source = values.source ?? (await unpackedSource());
  linkPrograms(source);
  adapt(source);
  const folder = mkdtempSync(join(tmpdir(), "situ-redis-suite-"));
  ownerOfThis("redis-suite").keep(folder);
  const path = join(folder, "store");
  const gateway = await serve({
    path,
    port: 0,
    durability: "none",
    memoryBytes: 1024 * 2 ** 20,
    threads: Number(values.threads),
  });
  try {
    let failed = 0;
    for (const unit of values.unit) {
      const outcome = await runUnit(source, unit, gateway.port, folder, values.verbose);
      report(unit, outcome);
      failed += outcome.failures.length;
    }
    return failed === 0 ? 0 : 1;
  } finally {
    await gateway.close();
    await destroy(path);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The suite's source, downloaded once. */
async function unpackedSource(): Promise<string> {
  const cache = join(tmpdir(), "situ-redis-source");
  const source = join(cache, FOLDER);
  if (existsSync(join(source, "runtest"))) return source;
  mkdirSync(cache, { recursive: true });
  console.log(`fetching ${PACKAGE}`);
  const response = await fetch(PACKAGE);
  if (!response.ok) throw new Error(`${PACKAGE}: ${response.status} ${response.statusText}`);
  const bytes = Buffer.from(await response.arrayBuffer());
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  if (sha256 !== PACKAGE_SHA256) throw new Error(`${PACKAGE} has SHA-256 ${sha256}`);
  const { status, stderr } = spawnSync("tar", ["-xz", "-C", cache], { input: bytes });
  if (status !== 0) throw new Error(`tar: ${stderr.toString()}`);
  return source;
}

function linkPrograms(source: string): void {
  if (spawnSync("which", ["tclsh"]).status !== 0) {
    throw new Error("tclsh is not installed; on Debian: apt-get install tcl");
  }
  for (const program of PROGRAMS) {
    const link = join(source, "src", program);
    if (existsSync(link)) continue;
    const { status, stdout } = spawnSync("which", [program], { encoding: "utf8" });
    if (status !== 0) throw new Error(`${program} is not installed`);
    symlinkSync(stdout.trim(), link);
  }
}

/**
 * Outside of its tests the suite uses two commands that are unknown here: before each unit it takes
 * all Lua functions away, and once it asks for the memory of a key. These are the only changes to it.
 */
function adapt(source: string): void {
  replace(
    source,
    "tests/support/server.tcl",
    /^ +r function flush$/m,
    "    catch {r function flush}",
  );
  replace(source, "tests/support/util.tcl", /\[r memory usage \$key\]/, "1");
}

function replace(source: string, name: string, what: RegExp, by: string): void {
  const file = join(source, name);
  const before = readFileSync(file, "utf8");
  const after = before.replace(what, () => by);
  if (after !== before) writeFileSync(file, after);
}

/** Names of tests, one a line; lines with "#" in front tell why. */
function skippedTests(): string[] {
  const file = new URL("suite-skips.txt", import.meta.url);
  // The compiled file lies in dist/, the list beside the source.
  const places = [
    file,
    new URL("../../../../tests/gateways/redis/suite-skips.txt", import.meta.url),
  ];
  const place = places.find((each) => existsSync(each));
  if (place === undefined) throw new Error("suite-skips.txt is not there");
  const lines = readFileSync(place, "utf8").split("\n");
  return lines.filter((line) => line !== "" && !line.startsWith("#"));
}

async function runUnit(
  source: string,
  unit: string,
  port: number,
  folder: string,
  verbose: boolean,
): Promise<Outcome> {
  const skipFile = join(folder, "skips");
  writeFileSync(skipFile, skippedTests().join("\n"));
  const args = ["--host", "127.0.0.1", "--port", String(port), "--singledb", "--single", unit];
  args.push("--skipfile", skipFile, "--tags", TAGS, "--durable");
  const child = spawn("tclsh", ["tests/test_helper.tcl", ...args], {
    cwd: source,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, TERM: "dumb" },
  });
  let output = "";
  const append = (chunk: Buffer): void => {
    output += chunk.toString("latin1");
    if (verbose) process.stdout.write(chunk);
  };
  child.stdout.on("data", append);
  child.stderr.on("data", append);
  const status = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  return outcomeOf(output, status);
}

/** From the suite's own lines: "[ok]: name (3 ms)". */
function outcomeOf(output: string, status: number | null): Outcome {
  let passed = 0;
  let skipped = 0;
  const failures: string[] = [];
  for (const [, kind, text] of output.matchAll(/^\[(\w+)\]: (.*(?:\n[^[].*)?)$/gm)) {
    if (kind === "ok") passed++;
    else if (kind === "skip" || kind === "ignore") skipped++;
    else if (kind === "err" || kind === "exception") failures.push(text);
  }
  if (status !== 0 && failures.length === 0) failures.push(output.slice(-2_000));
  return { passed, skipped, failures };
}

function report(unit: string, { passed, skipped, failures }: Outcome): void {
  const counts = `${passed} passed, ${failures.length} failed, ${skipped} skipped`;
  console.log(`${unit.padEnd(18)} ${counts}`);
  for (const failure of failures) console.log(`  FAILED ${failure.replace("\n", "\n         ")}`);
}

process.exitCode = await main();
