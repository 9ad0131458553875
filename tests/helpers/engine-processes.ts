/** Processes of tests: compiled scripts of tests/processes/, started, watched and never left over. */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { destroy } from "../../src/index.ts";
import { compiled } from "./project-root.ts";

/** The bundled form of a script in tests/processes/: workers and processes run plain Node. */
export function scriptPath(name: string): string {
  const path = compiled(`tests/bundled/${name}.js`);
  if (!existsSync(path)) throw new Error(`${path} is missing: run npm run build`);
  return path;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly pid: number;
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

const running = new Set<ChildProcess>();

/** Starts a script with one argument, a JSON text. Its standard input ends when it shall end. */
export function start(name: string, argument: unknown, env: NodeJS.ProcessEnv = {}): Running {
  const child = spawn(process.execPath, [scriptPath(name), JSON.stringify(argument)], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  running.add(child);
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  // A process that is killed cannot read what is written to it.
  child.stdin.on("error", () => {});
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      running.delete(child);
      resolve({ code, signal, stdout, stderr });
    });
  });
  return { pid: child.pid!, child, ended };
}

/** Ends what a failed test left running; only processes that were started here. */
export function endAll(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** One letter of /proc/<pid>/stat: R running, S sleeping, T stopped, Z gone but not collected. */
export function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2)[0];
  } catch {
    return "";
  }
}

/** Far more than anything needs, on any machine. */
const LONGEST_WAIT_MS = 240_000;

/** Waits until something holds; the time is for what never does. */
export async function until(
  what: string,
  holds: () => boolean,
  timeoutMs = LONGEST_WAIT_MS,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** A folder for one store. `remove` takes the store's memory with it, whatever happened. */
export class StoreFolder {
  readonly path = mkdtempSync(join(tmpdir(), "situ-test-"));

  async remove(): Promise<void> {
    try {
      // Killed processes may still be on their way out when a failed test gets here.
      const deadline = performance.now() + LONGEST_WAIT_MS / 4;
      for (;;) {
        try {
          await destroy(this.path);
          break;
        } catch (error) {
          if (performance.now() > deadline) throw error;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    } finally {
      rmSync(this.path, { recursive: true, force: true });
    }
  }
}
