// A server of our own, as a child process: started on free loopback ports, waited for until it
// accepts connections, stopped by its pid, also when the bench fails. What the machine runs already
// is never used or touched.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { guardProcesses, onRelease } from "./resources.ts";

export const loopback = "127.0.0.1";
const startDeadlineMs = 120_000;
const stopDeadlineMs = 10_000;
const pollMs = 20;

export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  readonly #release: () => void;
  #log = "";

  constructor(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
    guardProcesses();
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env });
    this.#child = child;
    this.#ended = new Promise((resolve) => child.once("close", () => resolve()));
    this.#release = onRelease(() => {
      // Not politely: it must not write into a folder that is being removed, nor outlive the bench.
      this.#signal("SIGKILL");
    });
    const append = (chunk: Buffer): void => {
      this.#log = (this.#log + chunk.toString()).slice(-2000);
    };
    child.stdout?.on("data", append);
    child.stderr?.on("data", append);
    child.on("error", (error) => append(Buffer.from(error.message)));
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Ends it, and throws what it has said, if it is not ready in time. */
  async ready(isReady: () => Promise<boolean>): Promise<void> {
    const start = performance.now();
    while (!(await isReady())) {
      if (this.hasEnded || performance.now() - start > startDeadlineMs) {
        this.#release();
        throw new Error(this.#log.trim() || `exit code ${this.#child.exitCode}`);
      }
      await sleep(pollMs);
    }
  }

  /** Has it stand still, or go on: to others it is there, and does not answer. */
  pause(isPaused: boolean): void {
    this.#signal(isPaused ? "SIGSTOP" : "SIGCONT");
  }

  /** Ends it as a machine that loses its power would: at once, in the middle of whatever it does. */
  async kill(): Promise<void> {
    this.#release();
    await this.#ended;
  }

  /** Resolves when the process has ended: by itself, or killed if that takes too long. */
  async stop(): Promise<void> {
    this.#signal("SIGTERM");
    this.#signal("SIGCONT");
    await Promise.race([this.#ended, sleep(stopDeadlineMs, undefined, { ref: false })]);
    this.#release();
    await this.#ended;
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    // By pid and not child.kill(): an exit handler must work while events no longer arrive.
    if (pid !== undefined && !this.hasEnded) killQuietly(pid, signal);
  }
}

/** A port of loopback, or the path of a Unix socket. */
export async function accepts(place: number | string): Promise<boolean> {
  const socket = typeof place === "number" ? connect(place, loopback) : connect(place);
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

function killQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended by itself between the check and the signal.
  }
}
