/** Code in other threads and processes. They import the compiled Situ: `npm run build` first. */

import { type ChildProcess, spawn } from "node:child_process";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { ownMemory } from "../../benchmarks/harness/own-memory.ts";
import { compiled } from "./project-root.ts";
import type { TemporaryStores } from "./store.ts";

const SITU = pathToFileURL(compiled("situ.js")).href;

/** A worker thread; `code` is the body of an async function of (situ, data, parentPort). */
export function startWorker(stores: TemporaryStores, code: string, data: unknown): RunningWorker {
  const running = new RunningWorker(code, data);
  stores.later(() => running.end());
  return running;
}

export class RunningWorker {
  readonly worker: Worker;
  readonly messages: unknown[] = [];
  /** Fulfilled with what the code returned. */
  readonly result: Promise<unknown>;

  constructor(code: string, data: unknown) {
    const source = `
      const { parentPort, workerData } = require("node:worker_threads");
      (async () => {
        const situ = await import(${JSON.stringify(SITU)});
        const result = await (async (situ, data, port) => {${code}})(situ, workerData, parentPort);
        parentPort.postMessage({ result });
      })().catch((error) => {
        parentPort.postMessage({ error: { code: error.code, message: error.message } });
      });`;
    this.worker = new Worker(source, { eval: true, workerData: data });
    this.result = new Promise((resolve, reject) => {
      this.worker.on("message", (message: unknown) => {
        this.messages.push(message);
        if (typeof message !== "object" || message === null) return;
        const said = message as { result?: unknown; error?: { code?: string; message: string } };
        if (said.error) reject(Object.assign(new Error(said.error.message), said.error));
        else if ("result" in said) resolve(said.result);
      });
      this.worker.on("error", reject);
      this.worker.on("exit", () => reject(new Error("the worker ended without a result")));
    });
    this.result.catch(() => {});
  }

  async end(): Promise<void> {
    await this.worker.terminate();
  }
}

export interface ChildOutcome {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What the code returned, if it got so far. */
  readonly result: unknown;
  readonly error: { readonly code?: string; readonly message: string } | undefined;
  readonly stderr: string;
}

const RESULT = "result of the child: ";

/**
 * A process; `code` is the body of an async function of (situ, data). With `ownMemory` it has a
 * /dev/shm of its own, of that size if one is given.
 */
export function startChild(
  stores: TemporaryStores,
  code: string,
  data: unknown,
  { ownMemory: own = false }: { readonly ownMemory?: boolean | string } = {},
): { child: ChildProcess; outcome: Promise<ChildOutcome> } {
  const source = `
    const situ = await import(${JSON.stringify(SITU)});
    const data = JSON.parse(process.env.SITU_TEST_DATA);
    const say = (what) => process.stdout.write(${JSON.stringify(`\n${RESULT}`)} + JSON.stringify(what) + "\\n");
    try {
      const result = await (async (situ, data) => {${code}})(situ, data);
      say({ result });
    } catch (error) {
      say({ error: { code: error.code, message: String(error.message) } });
    }`;
  const [command, ...args] = [
    ...(own === false ? [] : ownMemory(own === true ? undefined : own)),
    ...[process.execPath, "--input-type=module", "-e", source],
  ];
  // In a /dev/shm of its own there is no folder of this test file.
  const { SITU_MEMORY_DIR: _, ...without } = process.env;
  const child = spawn(command, args, {
    env: { ...(own === false ? process.env : without), SITU_TEST_DATA: JSON.stringify(data) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const outcome = new Promise<ChildOutcome>((resolve) => {
    child.on("close", (status, signal) => {
      const line = stdout.split("\n").find((each) => each.startsWith(RESULT));
      const said = JSON.parse(line?.slice(RESULT.length) ?? "{}") as Partial<ChildOutcome>;
      resolve({ status, signal, result: said.result, error: said.error, stderr });
    });
  });
  stores.later(async () => {
    child.kill("SIGKILL");
    await outcome;
  });
  return { child, outcome };
}

/** Runs a process to its end; `timeoutMs` bounds one that hangs. */
export function runChild(
  stores: TemporaryStores,
  code: string,
  data: unknown,
  timeoutMs = 240_000,
): Promise<ChildOutcome> {
  const { child, outcome } = startChild(stores, code, data);
  const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
  return outcome.finally(() => clearTimeout(timer));
}
