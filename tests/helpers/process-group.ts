/** Processes that tests talk with: one by one, or as a crew that works through orders. */

import { type Running, start, until } from "./engine-processes.ts";

/** Longer than any process works on an order, on any machine. */
const ANSWER_MS = 240_000;

/** A process that talks: lines on its standard output, and a word to let it go on. */
export class Talker {
  readonly running: Running;
  readonly lines: string[] = [];
  ended = false;
  #rest = "";

  constructor(script: string, order: unknown, env: NodeJS.ProcessEnv = {}) {
    this.running = start(script, order, env);
    this.running.child.stdout?.on("data", (text: string) => {
      const lines = (this.#rest + text).split("\n");
      this.#rest = lines.pop() ?? "";
      this.lines.push(...lines);
    });
    void this.running.ended.then(() => {
      this.ended = true;
    });
  }

  /** Waits until it has said this. */
  async hear(what: string): Promise<void> {
    await until(what, () => this.lines.includes(what) || this.ended);
    if (this.lines.includes(what)) return;
    const { code, signal, stderr } = await this.running.ended;
    throw new Error(`the process ended before ${what}: ${code ?? signal}\n${stderr}`);
  }

  /** The next thing it says after "ready", which must be JSON. */
  async answer<Report>(): Promise<Report> {
    const has = (): boolean => this.lines.length > 1;
    await until("an answer", () => has() || this.ended, ANSWER_MS);
    if (has()) return JSON.parse(this.lines.pop() ?? "") as Report;
    const { code, signal, stderr } = await this.running.ended;
    throw new Error(`the process ended without an answer: ${code ?? signal}\n${stderr}`);
  }

  go(): void {
    this.running.child.stdin?.write("go\n");
  }

  /** Waits for its end, and returns its last line, which must be JSON. */
  async report<Report>(): Promise<Report> {
    const { code, signal, stderr } = await this.running.ended;
    if (code !== 0) throw new Error(`the process ended with ${code ?? signal}\n${stderr}`);
    return JSON.parse(this.lines[this.lines.length - 1]) as Report;
  }
}

/** Processes that stay, and work through orders side by side. */
export class Crew {
  readonly #members: Talker[];

  /** Every other member dawdles: its order says so, and every step that others see is an atomic. */
  constructor(script: string, size: number, order: object) {
    this.#members = Array.from({ length: size }, (_, member) => {
      const dawdles = member % 2 === 0;
      const env = dawdles ? { SITU_ATOMICS: "all" } : {};
      return new Talker(script, { ...order, member, dawdles }, env);
    });
  }

  /** Gives each of the first members an order, and returns what they report. */
  async run<Report>(orders: readonly unknown[]): Promise<Report[]> {
    const members = orders.map((_, i) => this.#members[i]);
    await Promise.all(members.map((member) => member.hear("ready")));
    for (const [i, order] of orders.entries()) {
      members[i].running.child.stdin?.write(`${JSON.stringify(order)}\n`);
    }
    return Promise.all(members.map((member) => member.answer<Report>()));
  }

  /** Lets all come to their end. */
  async end(): Promise<void> {
    for (const { running } of this.#members) running.child.stdin?.end();
    await Promise.all(this.#members.map(({ running }) => running.ended));
  }
}
