/**
 * The host's worker of Xenic (§4.2, step 7): applies what its NIC has logged to the tables, off the critical path. While there
 * is something now and then it looks by itself, every few milliseconds; when there was nothing for a while it sleeps until the NIC calls.
 */

import type { OpenedTable } from "../../protocols/xenic/client-messages.ts";
import { ABSENT, ownerOf, type RowName } from "../../protocols/xenic/message.ts";
import type { Placement } from "../../protocols/xenic/ports.ts";
import { type AppliedRecord, LogReader } from "../../protocols/xenic/shared-log.ts";
import { SharedTable } from "../../protocols/xenic/shared-table.ts";
import { assert } from "../../runtime/assert.ts";
import { XENIC_APPLY_RECORDS, XENIC_LOOK_MS, XENIC_LOOKS } from "../../runtime/limits.ts";
import type { SharedLogs } from "./nic-memory.ts";

export class LogApplier {
  /** Turns in which it has looked: those it was called to, and those of its own timer. */
  calls = 0;
  looks = 0;
  applied = 0;
  readonly #tables = new Map<number, SharedTable[]>();
  readonly #commits: LogReader;
  readonly #logged: LogReader;
  readonly #sleep: Int32Array;
  readonly #placement: Placement;
  #vain = 0;
  #isAwake = false;
  #isClosed = false;

  constructor(logs: SharedLogs, placement: Placement) {
    this.#commits = new LogReader(logs.commits);
    this.#logged = new LogReader(logs.logged);
    this.#sleep = new Int32Array(logs.sleep);
    this.#placement = placement;
    Atomics.store(this.#sleep, 0, 1);
  }

  addTable({ number, shape }: OpenedTable, copies: ReadonlyMap<number, SharedArrayBuffer>): void {
    for (const [shard, memory] of copies) {
      let tables = this.#tables.get(shard);
      if (tables === undefined) {
        tables = [];
        this.#tables.set(shard, tables);
      }
      tables[number] = new SharedTable(shape, memory);
    }
  }

  /** The table of a row; undefined if no copy of it is here. */
  tableOf({ table, key }: RowName): SharedTable | undefined {
    return this.#tables.get(this.#placement.shardOf(table, key))?.[table];
  }

  get isAsleep(): boolean {
    return !this.#isAwake;
  }

  /** The NIC calls. */
  wake(): void {
    this.calls++;
    this.#vain = 0;
    if (!this.#isAwake) this.#turn();
  }

  close(): void {
    this.#isClosed = true;
  }

  #turn(): void {
    this.#isAwake = false;
    if (this.#isClosed) return;
    const apply = (record: AppliedRecord): void => this.#apply(record);
    const count =
      this.#commits.apply(XENIC_APPLY_RECORDS, apply) +
      this.#logged.apply(XENIC_APPLY_RECORDS, apply);
    this.applied += count;
    this.looks++;
    this.#vain = count === 0 ? this.#vain + 1 : 0;
    if (!this.#commits.isEmpty || !this.#logged.isEmpty) {
      this.#isAwake = true;
      setImmediate(() => this.#turn());
      return;
    }
    if (this.#vain <= XENIC_LOOKS) {
      this.#isAwake = true;
      setTimeout(() => this.#turn(), XENIC_LOOK_MS).unref();
      return;
    }
    Atomics.store(this.#sleep, 0, 1);
    // What came before the NIC could see that this sleeps.
    if (this.#commits.isEmpty && this.#logged.isEmpty) return;
    if (Atomics.exchange(this.#sleep, 0, 0) === 1) this.#turn();
  }

  #apply({ name, items }: AppliedRecord): void {
    const version = ownerOf(name);
    for (const item of items) {
      const table = this.tableOf(item);
      assert(table !== undefined, "a record is applied where there is a copy");
      table.apply(item.key, version, item.value ?? ABSENT);
    }
  }
}
