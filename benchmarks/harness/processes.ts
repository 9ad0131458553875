// Measuring in other processes, the parent's side: starts them, tells them what to do, waits for
// what they say. `serve` in process-side.ts is the other side.
import { type ChildProcess, fork } from "node:child_process";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { guardProcesses, onRelease } from "./resources.ts";

/** What travels to the process: something to do, or to end. */
export type ToProcess<To> = { readonly message: To } | { readonly stop: true };
/** What travels back: an answer, or that it has opened everything and listens. */
export type FromProcess<From> = { readonly message: From } | { readonly ready: true };

interface Waiting<From> {
  resolve(message: FromProcess<From>): void;
  reject(error: Error): void;
}

/** `To` is what it is told, `From` what it answers. */
export class MeasuringProcess<To, From> {
  readonly #name: string;
  readonly #child: ChildProcess;
  /** Answers that nobody has asked for yet. */
  readonly #early: FromProcess<From>[] = [];
  #waiting: Waiting<From> | undefined;
  #ended: string | undefined;

  private constructor(name: string, child: ChildProcess) {
    this.#name = name;
    this.#child = child;
    child.on("message", (message: FromProcess<From>) => {
      const waiting = this.#waiting;
      this.#waiting = undefined;
      if (waiting === undefined) this.#early.push(message);
      else waiting.resolve(message);
    });
    child.on("exit", (code, signal) => {
      this.#ended = `${name} ended early (${signal ?? `exit code ${code}`})`;
      this.#waiting?.reject(new Error(this.#ended));
    });
  }

  /**
   * Resolves when the process has opened what it needs. `through` is a command that runs what follows
   * its arguments, as `nice`.
   */
  static async start<To, From>(
    script: URL,
    task: unknown,
    through: readonly string[] = [],
  ): Promise<MeasuringProcess<To, From>> {
    const file = fileURLToPath(script);
    guardProcesses();
    const [execPath, ...execArgv] = [...through, process.execPath];
    const child = fork(
      file,
      [JSON.stringify(task)],
      through.length === 0 ? {} : { execPath, execArgv },
    );
    onRelease(() => {
      if (child.exitCode === null) child.kill("SIGKILL");
    });
    const started = new MeasuringProcess<To, From>(basename(file, ".js"), child);
    await started.#next();
    return started;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  tell(message: To): void {
    this.#send({ message });
  }

  /** The next thing that it says. */
  async reply(): Promise<From> {
    const next = await this.#next();
    if ("message" in next) return next.message;
    throw new Error(`${this.#name} says that it is ready, again`);
  }

  ask(message: To): Promise<From> {
    const reply = this.reply();
    this.tell(message);
    return reply;
  }

  async stop(): Promise<void> {
    if (this.#ended !== undefined) throw new Error(this.#ended);
    const ended = new Promise<number | null>((resolve) => this.#child.once("exit", resolve));
    this.#send({ stop: true });
    const code = await ended;
    if (code !== 0) throw new Error(`${this.#name} ended with exit code ${code}`);
  }

  /** For one that failed, or may not listen any more. */
  kill(): void {
    if (this.#ended === undefined) this.#child.kill("SIGKILL");
  }

  #send(message: ToProcess<To>): void {
    // Whoever waits for an answer hears of its end; without this, the parent would end with it.
    this.#child.send(message, () => {});
  }

  #next(): Promise<FromProcess<From>> {
    const early = this.#early.shift();
    if (early !== undefined) return Promise.resolve(early);
    if (this.#ended !== undefined) return Promise.reject(new Error(this.#ended));
    if (this.#waiting !== undefined) throw new Error(`${this.#name} is being listened to already`);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }
}
