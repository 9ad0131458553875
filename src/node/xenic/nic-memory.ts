/**
 * Host memory as a node's NIC sees it: tables that the host writes and the NIC reads, and two logs that the NIC appends to. The
 * host is told that there is something in a log only if it sleeps (log-applier.ts).
 */

import type { Name } from "../../protocols/names.ts";
import type { OpenedTable } from "../../protocols/xenic/client-messages.ts";
import type { HostMemory, LogRecord } from "../../protocols/xenic/host.ts";
import { LogWriter } from "../../protocols/xenic/shared-log.ts";
import { SharedTable } from "../../protocols/xenic/shared-table.ts";
import { assert } from "../../runtime/assert.ts";

/** What both threads of a node share. */
export interface SharedLogs {
  readonly commits: SharedArrayBuffer;
  readonly logged: SharedArrayBuffer;
  /** One word: whether the host sleeps, and wants to be called. */
  readonly sleep: SharedArrayBuffer;
}

export class NicMemory implements HostMemory {
  readonly shards: readonly number[];
  readonly commits: LogWriter;
  readonly logged: LogWriter;
  readonly #tables = new Map<number, SharedTable[]>();
  /** Of each coordinator: all its transactions below are over. */
  readonly #lows = new Map<number, number>();
  readonly #sleep: Int32Array;
  readonly #wake: () => void;
  /** How often the host was called. */
  wakes = 0;
  tables = 0;

  constructor(shards: readonly number[], logs: SharedLogs, wake: () => void) {
    this.shards = shards;
    this.commits = new LogWriter(logs.commits);
    this.logged = new LogWriter(logs.logged);
    this.#sleep = new Int32Array(logs.sleep);
    this.#wake = wake;
    for (const shard of shards) this.#tables.set(shard, []);
  }

  /** Copies of a new table, by their shards. */
  addTable({ number, shape }: OpenedTable): Map<number, SharedTable> {
    const added = new Map<number, SharedTable>();
    for (const [shard, tables] of this.#tables) {
      tables[number] = new SharedTable(shape);
      added.set(shard, tables[number]);
    }
    this.tables = Math.max(this.tables, number + 1);
    return added;
  }

  table(shard: number, table: number): SharedTable {
    const found = this.#tables.get(shard)?.[table];
    assert(found !== undefined, "rows are asked for where a copy of them is");
    return found;
  }

  appendCommit(record: LogRecord): void {
    this.commits.push(record);
    if (this.commits.release(always)) this.#call();
  }

  raiseLow({ coordinator, low }: Name): void {
    if (low <= (this.#lows.get(coordinator) ?? 0)) return;
    this.#lows.set(coordinator, low);
    this.#release();
  }

  /** What the host has applied since this was asked last. */
  takeApplied(): { readonly commits: LogRecord[]; readonly logged: LogRecord[] } {
    const commits = this.commits.takeApplied();
    const logged = this.logged.takeApplied();
    // What had found no room has one now.
    if (commits.length > 0 && this.commits.release(always)) this.#call();
    if (logged.length > 0) this.#release();
    return { commits, logged };
  }

  #release(): void {
    const isOver = ({ name }: LogRecord): boolean =>
      name.sequence < (this.#lows.get(name.coordinator) ?? 0);
    if (this.logged.release(isOver)) this.#call();
  }

  #call(): void {
    if (Atomics.exchange(this.#sleep, 0, 0) === 0) return;
    this.wakes++;
    this.#wake();
  }
}

const always = (): boolean => true;
