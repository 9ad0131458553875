// Runs of the suite as people start them: processes of their own, results in a folder of their own.
// Whatever they started is known from /proc, so that a test can see what they leave behind.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach } from "vitest";
import type { SuiteResult } from "../../benchmarks/report/result.ts";
import { compiled, projectRoot } from "../helpers/project-root.ts";

export const suiteScript = compiled("benchmarks/suite/main.js");
export const benchScript = join(projectRoot(), "scripts", "bench.mjs");

const folders: string[] = [];
const runs: SuiteRun[] = [];

afterEach(async () => {
  for (const run of runs.splice(0)) await run.end();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Removed after the test. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "situ-suite-test-"));
  folders.push(folder);
  return folder;
}

/** As small as a run can be: it shows that all works, not how quick it is. */
export const small = ["--quick", "--size", "500", "--rounds", "1", "--round-ms", "60"];

export function start(
  args: readonly string[],
  { script = suiteScript, env = process.env }: { script?: string; env?: NodeJS.ProcessEnv } = {},
): SuiteRun {
  const child = spawn(process.execPath, ["--expose-gc", script, ...args], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const run = new SuiteRun(child);
  runs.push(run);
  return run;
}

export class SuiteRun {
  readonly #child: ChildProcess;
  /** Exit code; null if a signal ended it. */
  readonly code: Promise<number | null>;
  stdout = "";
  stderr = "";

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.on("data", (chunk: Buffer) => {
      this.stdout += chunk.toString();
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    this.code = new Promise((resolve) => child.once("close", (code) => resolve(code)));
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** All processes that it has started, and theirs. */
  descendants(): Started[] {
    return descendantsOf(this.#child.pid ?? 0);
  }

  /** Resolves with its processes as soon as they are as wanted. */
  async until(isThere: (all: readonly Started[]) => boolean): Promise<Started[]> {
    for (;;) {
      const all = this.descendants();
      if (isThere(all)) return all;
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
        throw new Error(`it ended before that:\n${this.stderr}`);
      }
      await sleep(10);
    }
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.kill("SIGTERM");
    await this.code;
  }
}

export interface Started {
  readonly pid: number;
  /** Of its start: another process with the same number is not this one. */
  readonly started: string;
  readonly command: string;
}

function descendantsOf(parent: number): Started[] {
  const all = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => processOf(Number(name)) ?? []);
  const found: Started[] = [];
  const parents = new Set([parent]);
  // Children have higher numbers only until these wrap around: so until nothing more is found.
  for (let before = -1; before < found.length; ) {
    before = found.length;
    for (const each of all) {
      if (parents.has(each.pid) || !parents.has(each.parent)) continue;
      parents.add(each.pid);
      found.push(each);
    }
  }
  return found;
}

function processOf(pid: number): (Started & { readonly parent: number }) | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name may hold spaces and brackets; what follows it does not.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
    if (fields[0] === "Z") return undefined;
    return { pid, parent: Number(fields[1]), started: fields[19], command };
  } catch {
    // It ended between the listing and the reading.
    return undefined;
  }
}

export function isAlive({ pid, started }: Started): boolean {
  return processOf(pid)?.started === started;
}

/** Those that are told on the command lines of its servers and workers. */
export function foldersOf(all: readonly Started[]): string[] {
  const found = all.flatMap(({ command }) => command.match(/\/[^\s"]*situ-bench-\w+/g) ?? []);
  return [...new Set(found)];
}

export function isWorker({ command }: Started, engine: string): boolean {
  return command.includes("worker-process.js") && command.includes(`"engine":"${engine}"`);
}

export function resultIn(folder: string): SuiteResult {
  return JSON.parse(readFileSync(join(folder, "results.json"), "utf8")) as SuiteResult;
}

/** True for folders and processes that are gone, or soon will be: a killed process takes a moment. */
export async function isGone(isThere: () => boolean): Promise<boolean> {
  for (let attempt = 0; attempt < 12_000 && isThere(); attempt++) await sleep(20);
  return !isThere();
}

export function anyExists(paths: readonly string[]): boolean {
  return paths.some((path) => existsSync(path));
}
