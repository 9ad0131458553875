/**
 * `situ demo`: several processes move money in one store while this one counts it. Half-way one of
 * them is killed in the middle of its work; the sum holds. Told line by line as it happens.
 *
 *   demo-bank.ts     the tables, a transfer, a count: all that Situ is used for
 *   demo-teller.ts   a process that moves money
 */

import { type ChildProcess, spawn } from "node:child_process";
import type { Database } from "../../database/database.ts";
import { open } from "../../database/open.ts";
import { nowMs, sleep } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { shownCount } from "../../runtime/units.ts";
import { EXIT_FAILED, EXIT_OK } from "../failures.ts";
import type { Screen } from "../screen.ts";
import type { Context, OptionValues, Run } from "./context.ts";
import {
  Account,
  count,
  Office,
  OPENING_BALANCE,
  TABLES,
  Teller,
  tellerName,
} from "./demo-bank.ts";
import { withTemporaryFolder } from "./temporary.ts";

const KILLED = 2;
const START_MS = 20_000;
const STOP_MS = 5_000;
const RECOVERY_MS = 3_000;
const LOOK_MS = 5;
const COUNT_MS = 500;
const LOAD_ROWS = 500;
const MEMORY_BYTES = 64 * 2 ** 20;

export const runDemo: Run<"demo"> = (values, context) =>
  withTemporaryFolder("demo", undefined, async (path) => {
    const demo = new Demo(path, values, context);
    try {
      return await demo.run();
    } finally {
      await demo.end();
    }
  });

class Demo {
  readonly #path: string;
  readonly #values: OptionValues<"demo">;
  readonly #screen: Screen;
  readonly #signal: AbortSignal;
  readonly #children = new Map<number, ChildProcess>();
  /** How a teller ended that should not have. */
  #failure: string | undefined;
  #db!: Database;
  #startMs = 0;
  #killed = { pid: 0, afterMs: 0, recoveredMs: Number.NaN };
  #counts = 0;
  #wrongCounts = 0;

  constructor(path: string, values: OptionValues<"demo">, { screen, signal }: Context) {
    this.#path = path;
    this.#values = values;
    this.#screen = screen;
    this.#signal = signal;
  }

  async run(): Promise<number> {
    const { accounts } = this.#values;
    this.#db = await open({
      path: this.#path,
      tables: TABLES,
      memoryBytes: MEMORY_BYTES,
      sharing: "processes",
    });
    this.#fill(accounts);
    const screen = this.#screen;
    screen.line(screen.bold(`One bank, ${this.#values.tellers} tellers, no server`));
    screen.line(
      `  ${shownCount(accounts)} accounts with ${shownCount(this.#total)} coins in ${this.#path}`,
    );
    screen.line(screen.dim("  Each teller is a process that maps the same memory."));
    await this.#startTellers();
    await this.#work();
    await this.#closeOffice();
    return this.#tell();
  }

  /** Whatever happened: no process is left. */
  async end(): Promise<void> {
    for (const child of this.#children.values()) if (isAlive(child)) child.kill("SIGKILL");
    while ([...this.#children.values()].some(isAlive)) await sleep(LOOK_MS);
    await this.#db?.close();
  }

  get #total(): bigint {
    return OPENING_BALANCE * BigInt(this.#values.accounts);
  }

  #fill(accounts: number): void {
    this.#db.transactSync((tx) => tx.insert(Office, { id: 0, isOpen: false, isClosed: false }));
    for (let first = 0; first < accounts; first += LOAD_ROWS) {
      this.#db.transactSync((tx) => {
        for (let id = first; id < Math.min(first + LOAD_ROWS, accounts); id++) {
          tx.insert(Account, { id, balance: OPENING_BALANCE, marks: 0 });
        }
      });
    }
  }

  async #startTellers(): Promise<void> {
    const { tellers } = this.#values;
    for (let id = 1; id <= tellers; id++) {
      const numbers = ["--teller", `${id}`, "--accounts", `${this.#values.accounts}`];
      const args = [process.argv[1], "demo-teller", "--path", this.#path, ...numbers];
      const child = spawn(process.execPath, args, {
        stdio: ["ignore", "ignore", "inherit", "ipc"],
        // Ctrl-C reaches every process of a terminal's group: when work ends is decided here.
        detached: true,
      });
      this.#children.set(id, child);
      child.on("exit", (code, signal) => {
        if (code === 0 || (id === KILLED && this.#killed.pid !== 0)) return;
        this.#failure = `${tellerName(id)} exited early: ${signal ?? `exit code ${code}`}`;
      });
    }
    const ready = (): boolean => this.#tellers().length === tellers;
    if (!(await this.#until(ready, START_MS))) throw broken("the tellers did not start in time");
    for (const { name, pid } of this.#tellers()) {
      this.#say(`${name} has opened the store as process ${pid}`);
    }
    this.#startMs = nowMs();
    this.#db.transactSync((tx) => tx.update(Office, 0, { isOpen: true }));
  }

  async #work(): Promise<void> {
    const workMs = this.#values.seconds * 1e3;
    let countMs = COUNT_MS;
    for (;;) {
      const spentMs = nowMs() - this.#startMs;
      if (spentMs >= workMs) return;
      if (this.#killed.pid === 0 && spentMs >= workMs / 2) await this.#kill();
      if (spentMs >= countMs) {
        countMs += COUNT_MS;
        this.#count();
      }
      this.#check();
      await sleep(LOOK_MS);
    }
  }

  /** All accounts as of one moment, while they change. */
  #count(): void {
    const { sum, marks, transfers } = count(this.#db);
    const holds = sum === this.#total && marks === 2 * transfers;
    this.#counts++;
    if (!holds) this.#wrongCounts++;
    const verdict = holds ? "the sum holds" : this.#screen.red(`${sum} coins: WRONG`);
    const perSecond = Math.round((transfers * 1e3) / (nowMs() - this.#startMs));
    this.#say(
      `${shownCount(transfers)} transfers, ${shownCount(perSecond)} per second, ${verdict}`,
    );
  }

  /** SIGKILL: no handler runs, nothing is tidied up. Then waits until another one did. */
  async #kill(): Promise<void> {
    const { name, pid } = this.#db.get(Teller, KILLED)!;
    const killedMs = nowMs();
    this.#killed = { pid, afterMs: killedMs - this.#startMs, recoveredMs: Number.NaN };
    this.#children.get(KILLED)!.kill("SIGKILL");
    this.#say(this.#screen.yellow(`${name} is killed with SIGKILL while it works`));
    const isGone = (): boolean =>
      !this.#db.stats().executors.some((executor) => executor.pid === pid);
    if (!(await this.#until(isGone, RECOVERY_MS)))
      throw broken(`no process recovered from the death of ${name}`);
    const recoveredMs = nowMs() - killedMs;
    this.#killed = { ...this.#killed, recoveredMs };
    this.#say(`another process has cleaned up after ${name}, ${recoveredMs.toFixed(0)} ms later`);
  }

  async #closeOffice(): Promise<void> {
    this.#db.transactSync((tx) => tx.update(Office, 0, { isClosed: true }));
    const isQuiet = (): boolean => ![...this.#children.values()].some(isAlive);
    if (!(await this.#until(isQuiet, STOP_MS))) throw broken("a teller did not exit in time");
  }

  #tell(): number {
    const screen = this.#screen;
    const { sum, marks, transfers } = count(this.#db);
    const isWhole = marks === 2 * transfers;
    const ok = sum === this.#total && isWhole && this.#wrongCounts === 0;
    const { seconds, accounts } = this.#values;
    const tellers = this.#tellers();
    const counts = { all: this.#counts, wrong: this.#wrongCounts };
    const before = this.#total;
    screen.json({
      ok,
      seconds,
      accounts,
      sum: { before, after: sum },
      transfers,
      marks,
      tellers,
      killed: this.#killed,
      counts,
    });
    screen.line();
    for (const { name, transfers: own } of tellers) {
      screen.line(`  ${name.padEnd(10)} ${shownCount(own).padStart(11)} transfers`);
    }
    screen.line();
    this.#verdict(sum === before, `${shownCount(before)} coins before, ${shownCount(sum)} after`);
    this.#verdict(isWhole, "no transfer is half done, not even the last one of the killed process");
    this.#verdict(counts.wrong === 0, `${counts.all} counts during the work, all of them correct`);
    return ok ? EXIT_OK : EXIT_FAILED;
  }

  #tellers(): { id: number; name: string; pid: number; transfers: number }[] {
    return this.#db
      .scan(Teller)
      .toArray()
      .sort((a, b) => a.id - b.id);
  }

  #verdict(holds: boolean, what: string): void {
    const { green, red } = this.#screen;
    this.#screen.line(`  ${holds ? green("✓") : red("✗ NOT:")} ${what}`);
  }

  #say(text: string): void {
    const spent = this.#startMs === 0 ? 0 : (nowMs() - this.#startMs) / 1e3;
    this.#screen.line(`${spent.toFixed(1).padStart(5)} s  ${text}`);
  }

  async #until(isSo: () => boolean, patienceMs: number): Promise<boolean> {
    const startMs = nowMs();
    while (!isSo()) {
      if (nowMs() - startMs > patienceMs) return false;
      this.#check();
      await sleep(LOOK_MS);
    }
    return true;
  }

  #check(): void {
    this.#signal.throwIfAborted();
    if (this.#failure !== undefined) throw broken(this.#failure);
  }
}

function isAlive({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

function broken(what: string): SituError {
  return new SituError("SITU_LOST", what);
}
