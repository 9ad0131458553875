/**
 * The head office: creates the store, starts the tellers, audits while they work, kills one of
 * them, and counts the money in the end. It opens the store as the tellers do; it is no server.
 */

import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Database, destroy, open } from "situ";
import { Account, FAMILY, familySum, Office, OPENING_BALANCE, Teller, tables } from "./bank.ts";
import type { Options } from "./options.ts";
import type { Killed, Result } from "./result.ts";
import { clock, count, line, PROGRESS_MS, progress, yellow } from "./screen.ts";

const NAMES = ["Ada", "Grace", "Edsger", "Barbara", "Donald", "Frances", "Alan", "Radia"];
const TELLER = fileURLToPath(new URL("./teller.js", import.meta.url));
const START_SECONDS = 120;
const STOP_SECONDS = 60;
const RECOVERY_SECONDS = 60;
const FAMILIES_PER_AUDIT = 20;
const AUDIT_MS = 20;

const familyTotal = BigInt(FAMILY) * OPENING_BALANCE;
const nameOf = (id: number): string => {
  const generation = Math.ceil(id / NAMES.length);
  return `${NAMES[(id - 1) % NAMES.length]}${generation > 1 ? ` ${generation}` : ""}`;
};
const secondsSince = (startMs: number): number => (performance.now() - startMs) / 1000;

export class HeadOffice {
  readonly options: Options;
  readonly folder = mkdtempSync(join(tmpdir(), "situ-bank-"));
  readonly children = new Map<number, ChildProcess>();
  /** Undefined until the store is open. */
  db!: Database;
  startMs = 0;
  killed: Killed | undefined;
  audits = { families: 0, outOfBalance: 0 };
  /** Set when something went wrong or the user pressed Ctrl-C: the day ends early. */
  interruption: { readonly exitCode: number; readonly why: string } | undefined;

  constructor(options: Options) {
    this.options = options;
  }

  async open(): Promise<void> {
    const { accounts } = this.options;
    const memoryBytes = 2 ** 24 + accounts * 256;
    const path = this.folder;
    this.db = await open({ path, tables, memoryBytes, sharing: "processes" });
    this.db.transactSync((tx) => tx.insert(Office, { id: 0, isOpen: false, isClosed: false }));
    for (let first = 0; first < accounts; first += FAMILY) {
      this.db.transactSync((tx) => {
        for (let id = first; id < first + FAMILY; id++) {
          tx.insert(Account, { id, balance: OPENING_BALANCE, marks: 0 });
        }
      });
    }
  }

  /** Starts the tellers and waits until each has signed in: its row is in the store. */
  async startTellers(): Promise<void> {
    const { tellers, accounts } = this.options;
    for (let id = 1; id <= tellers; id++) {
      const child = fork(TELLER, [this.folder, `${id}`, nameOf(id), `${accounts}`]);
      this.children.set(id, child);
      child.on("exit", (code, signal) => {
        if (code === 0 || this.killed?.id === id) return;
        this.interrupt(1, `teller ${nameOf(id)} ended early: ${signal ?? `exit code ${code}`}`);
      });
    }
    const startMs = performance.now();
    while (!this.interruption && this.tellers().length < tellers) {
      if (secondsSince(startMs) > START_SECONDS) this.interrupt(1, "the tellers did not start");
      await setTimeout(5);
    }
  }

  /** A day's work: until its time is over, or something happened. Returns how long it was. */
  async work(): Promise<number> {
    const { seconds } = this.options;
    this.db.transactSync((tx) => tx.update(Office, 0, { isOpen: true }));
    this.startMs = performance.now();
    let auditor = 0;
    let shown = { at: 0, transfers: 0 };
    for (;;) {
      const elapsed = secondsSince(this.startMs);
      if (this.interruption || elapsed >= seconds) return elapsed;
      if (this.killed === undefined && elapsed >= seconds / 2) {
        await this.killOne();
        continue;
      }
      auditor = this.audit(auditor);
      if (elapsed - shown.at >= PROGRESS_MS / 1000) {
        const transfers = this.transfers();
        const perSecond = (transfers - shown.transfers) / (elapsed - shown.at);
        shown = { at: elapsed, transfers };
        const { families, outOfBalance } = this.audits;
        const sum = outOfBalance === 0 ? "in balance" : `${outOfBalance} NOT in balance`;
        progress(
          elapsed,
          elapsed / seconds,
          `${count(transfers)} transfers  ${count(Math.round(perSecond))}/s  ` +
            `${count(families)} audits: ${sum}`,
        );
      }
      await setTimeout(AUDIT_MS);
    }
  }

  /** The money of a few families, each as of one moment, while the tellers move it about. */
  audit(first: number): number {
    const families = this.options.accounts / FAMILY;
    for (let i = 0; i < FAMILIES_PER_AUDIT; i++) {
      this.audits.families++;
      if (familySum(this.db, (first + i) % families) !== familyTotal) this.audits.outOfBalance++;
    }
    return (first + FAMILIES_PER_AUDIT) % families;
  }

  /** SIGKILL: no handler runs, nothing is cleaned up. Then waits until the others noticed. */
  async killOne(): Promise<void> {
    const { id, name, pid } = this.tellers()[Math.floor(this.options.tellers / 2)];
    const atSeconds = secondsSince(this.startMs);
    const killedMs = performance.now();
    this.killed = { id, atSeconds, recoveredAfterMs: undefined };
    this.children.get(id)!.kill("SIGKILL");
    line(`${clock(atSeconds)}  ${yellow(`${name} (pid ${pid}) is killed with SIGKILL at work`)}`);
    while (this.db.stats().executors.some((executor) => executor.pid === pid)) {
      if (this.interruption || secondsSince(killedMs) > RECOVERY_SECONDS) return;
      await setTimeout(1);
    }
    const recoveredAfterMs = performance.now() - killedMs;
    this.killed = { id, atSeconds, recoveredAfterMs };
    line(
      `${clock(secondsSince(this.startMs))}  ` +
        `another process cleaned up after ${name}, ${recoveredAfterMs.toFixed(0)} ms later`,
    );
  }

  /** Closes the office, and sees to it that every teller goes home. */
  async stopTellers(): Promise<void> {
    const alive = (): ChildProcess[] =>
      [...this.children.values()].filter((child) => child.exitCode === null && !child.signalCode);
    try {
      this.db?.transactSync((tx) => tx.put(Office, { id: 0, isOpen: true, isClosed: true }));
      const startMs = performance.now();
      while (alive().length > 0 && secondsSince(startMs) < STOP_SECONDS) await setTimeout(5);
      if (alive().length > 0) this.interrupt(1, `${alive().length} tellers did not go home`);
    } finally {
      for (const child of alive()) child.kill("SIGKILL");
      while (alive().length > 0) await setTimeout(5);
    }
  }

  /** The tellers are gone, so nothing changes while the money is counted. */
  count(seconds: number): Result {
    let after = 0n;
    let marks = 0;
    for (let id = 0; id < this.options.accounts; id++) {
      const account = this.db.get(Account, id)!;
      after += account.balance;
      marks += account.marks;
    }
    const tellers = this.tellers();
    const before = OPENING_BALANCE * BigInt(this.options.accounts);
    const transfers = this.transfers();
    return {
      demo: "bank",
      ok:
        after === before &&
        marks === 2 * transfers &&
        this.audits.outOfBalance === 0 &&
        this.killed?.recoveredAfterMs !== undefined,
      seconds: Number(seconds.toFixed(3)),
      accounts: this.options.accounts,
      sum: { before: Number(before), after: Number(after) },
      transfers,
      marks,
      tellers,
      killed: this.killed,
      audits: this.audits,
      counters: this.db.stats().counters,
    };
  }

  tellers(): { id: number; name: string; pid: number; transfers: number }[] {
    const ids = Array.from({ length: this.options.tellers }, (_, i) => i + 1);
    return ids.flatMap((id) => this.db.get(Teller, id) ?? []);
  }

  transfers(): number {
    return this.tellers().reduce((sum, { transfers }) => sum + transfers, 0);
  }

  interrupt(exitCode: number, why: string): void {
    this.interruption ??= { exitCode, why };
  }

  /** Leaves nothing behind: no memory, no folder. */
  async cleanUp(): Promise<void> {
    try {
      await this.db?.close();
      await destroy(this.folder);
    } finally {
      rmSync(this.folder, { recursive: true, force: true });
    }
  }
}
