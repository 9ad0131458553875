/** Small simulated NAM-DBs for tests: two tables' worth of records, compute servers that are open, and a few shortcuts. */

import {
  type ComputeServer,
  NamCluster,
  type NamClusterOptions,
} from "../../simulation/nam/cluster.ts";
import type { Routine } from "../../src/protocols/message.ts";
import { isLockedHigh } from "../../src/protocols/nam/header.ts";
import type { NamTable } from "../../src/protocols/nam/layout.ts";
import { type Settled, settle } from "../../src/protocols/nam/settle.ts";
import { Timestamps } from "../../src/protocols/nam/timestamps.ts";
import { type NamOutcome, NamTransaction } from "../../src/protocols/nam/transaction.ts";
import type { SituErrorCode } from "../../src/runtime/errors.ts";

/** Longer than three cache lines, so that reads and writes can tear. */
export const DATA_WORDS = 44;

export const RECORDS = { name: "records", keyWords: 1, dataWords: DATA_WORDS, cells: 96, ring: 2 };

export class NamScene {
  readonly cluster: NamCluster;
  readonly table: NamTable;
  readonly compute: ComputeServer[] = [];

  constructor(options: Partial<NamClusterOptions> = {}) {
    this.cluster = new NamCluster({
      seed: 1,
      memoryServers: 3,
      computeServers: 2,
      threadsPerServer: 1,
      timestamps: { layout: "vector" },
      tables: [RECORDS],
      ...options,
    });
    [this.table] = this.cluster.directory.tables;
    for (let i = 0; i < this.cluster.options.computeServers; i++) {
      const server = this.cluster.computeServer(i);
      this.cluster.run(server, this.cluster.open(server));
      this.compute.push(server);
    }
  }

  thread(server = 0, number = 0) {
    return this.compute[server].groups.flat()[number];
  }

  transaction(server = 0, number = 0): NamTransaction {
    return new NamTransaction(this.thread(server, number), this.compute[server].timestamps);
  }

  /** Writes values in one transaction; undefined deletes. */
  write(values: Readonly<Record<number, number | undefined>>, server = 0): NamOutcome {
    const transaction = this.transaction(server);
    for (const [key, value] of Object.entries(values)) {
      transaction.write(this.table, keyOf(Number(key)), value === undefined ? value : rowOf(value));
    }
    return this.run(transaction.commit(), server);
  }

  /** The values of keys in one transaction. */
  read(keys: readonly number[], server = 0): (number | undefined)[] {
    return this.readIn(this.transaction(server), keys, server);
  }

  readIn(transaction: NamTransaction, keys: readonly number[], server = 0): (number | undefined)[] {
    const wanted = keys.map((key) => ({ table: this.table, key: keyOf(key) }));
    return this.run(transaction.read(wanted), server).map((row) => {
      if (row?.some((word) => word !== row[0])) throw new Error("a torn row");
      return row?.[0];
    });
  }

  run<T>(routine: Routine<T>, server = 0): T {
    return this.cluster.run(this.compute[server], routine);
  }

  /** A compute server settles all threads of a slot of another's. */
  settle(slot: number, by = 1): Settled[] {
    return this.run(this.settling(slot), by);
  }

  settling(slot: number): Routine<Settled[]> {
    const timestamps = new Timestamps(this.cluster.directory, this.cluster.options.timestamps);
    return settle(this.cluster.threadsOf(slot), timestamps, this.cluster.claimant());
  }

  get served(): number {
    return this.cluster.served();
  }

  /** Cells whose lock is held. */
  locked(): number {
    const { table } = this;
    let locked = 0;
    for (const server of this.cluster.servers) {
      const { i32 } = server.region(table.segments.cells);
      for (let at = table.bodyWords + 1; at < i32.length; at += table.cellWords) {
        if (isLockedHigh(i32[at])) locked++;
      }
    }
    return locked;
  }
}

export function keyOf(key: number): Int32Array {
  return new Int32Array([key]);
}

/** All words are the same, so that a torn row shows. */
export function rowOf(value: number): Int32Array {
  return new Int32Array(DATA_WORDS).fill(value);
}

export function codeOf(work: () => unknown): SituErrorCode | undefined {
  try {
    work();
  } catch (error) {
    return (error as { code?: SituErrorCode }).code;
  }
  return undefined;
}
