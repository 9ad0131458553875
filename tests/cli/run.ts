/** Runs `situ` from the bundle, as a user does, in a folder and an environment of its own. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { destroy } from "../../src/index.ts";
import { compiled } from "../helpers/project-root.ts";

export const CLI = compiled("situ-cli.js");

/** Before the time of a test is over. */
const PATIENCE_MS = 240_000;

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The test's own variables, and none of Situ's that happen to be set. */
function cleanEnvironment(more: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("SITU_"));
  return { ...Object.fromEntries(kept), SITU_HISTORY: "", ...more };
}

/** A folder with the stores and processes of one test; `end` leaves nothing of them. */
export class Place {
  readonly folder = mkdtempSync(join(tmpdir(), "situ-cli-test-"));
  readonly #children: ChildProcess[] = [];
  readonly #stores = new Set<string>();

  /** The path of a store, which is destroyed in the end. */
  store(name = "store"): string {
    const path = join(this.folder, name);
    this.#stores.add(path);
    return path;
  }

  file(name: string): string {
    return join(this.folder, name);
  }

  start(args: readonly string[], env: NodeJS.ProcessEnv = {}): Started {
    const child = spawn(process.execPath, [CLI, ...args], {
      cwd: this.folder,
      env: cleanEnvironment(env),
    });
    this.#children.push(child);
    return new Started(child);
  }

  /** Runs it to its end; without input stdin is empty. */
  async situ(args: readonly string[], env: NodeJS.ProcessEnv = {}, input = ""): Promise<Ended> {
    const started = this.start(args, env);
    started.child.stdin!.on("error", () => {}).end(input);
    return started.ended();
  }

  async end(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGKILL");
      await once(child, "close");
    }
    for (const path of this.#stores) await destroy(path);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export class Started {
  readonly child: ChildProcess;
  stdout = "";
  stderr = "";
  readonly #closed: Promise<unknown>;

  constructor(child: ChildProcess) {
    this.child = child;
    this.#closed = once(child, "close");
    child.stdout!.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
  }

  /** Waits until stdout has what is looked for; fails if the process ends without it. */
  async says(what: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = what.exec(this.stdout);
      if (found !== null) return found;
      const isOver = this.child.exitCode !== null || this.child.signalCode !== null;
      if (isOver) throw new Error(`it ended without ${what}:\n${this.stdout}\n${this.stderr}`);
      await this.#patiently(Promise.race([once(this.child.stdout!, "data"), this.#closed]));
    }
  }

  async ended(): Promise<Ended> {
    await this.#patiently(this.#closed);
    return { code: this.child.exitCode, stdout: this.stdout, stderr: this.stderr };
  }

  /** A process that hangs says where, before the test's own time-out says nothing. */
  async #patiently(awaited: Promise<unknown>): Promise<void> {
    const patience = new AbortController();
    const isOver = setTimeout(PATIENCE_MS, true, { signal: patience.signal }).catch(() => false);
    const hangs = await Promise.race([awaited.then(() => false), isOver]);
    patience.abort();
    if (!hangs) return;
    const { pid, exitCode, spawnargs } = this.child;
    throw new Error(
      `process ${pid} hangs (exit code ${exitCode}): ${spawnargs.slice(2).join(" ")}\n` +
        `threads: ${threadsOf(pid!)}\nstdout: ${this.stdout}\nstderr: ${this.stderr}`,
    );
  }
}

/** What each thread waits for in the kernel, where that can be seen. */
function threadsOf(pid: number): string {
  try {
    const waits = readdirSync(`/proc/${pid}/task`).map((thread) => {
      const [name, where] = ["comm", "wchan"].map((file) =>
        readFileSync(`/proc/${pid}/task/${thread}/${file}`, "utf8").trim(),
      );
      return `${name} in ${where}`;
    });
    return waits.join(", ");
  } catch (error) {
    return (error as Error).message;
  }
}

/** Every line of stdout as JSON: anything else in it is an error. */
export function jsonLines(stdout: string): unknown[] {
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);
}
