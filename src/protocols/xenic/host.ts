/**
 * The host's side of Xenic (§4.2, step 7): the tables of all shards of which the node has a copy, the log that its NIC
 * appends to, and the workers that apply it off the critical path.
 *
 *   commits   of COMMIT, at a primary: applied in their order, each acknowledged to the NIC, which unpins its rows
 *   logged    of LOG, at a backup: applied in their order as soon as the transaction is over everywhere
 *
 * A LOG record must not be applied before: until all backups have answered nobody knows whether the transaction commits, and
 * a recovery may drop it. Coordinators say with each message which of their transactions are over (their low); the NIC
 * puts that into host memory with everything else. Two records of one row lie in the log in the order of their
 * commits, because the second one's lock was granted after the first had been logged everywhere. So the log is applied from
 * its beginning up to the first record that is not over.
 *
 * Local transactions read here. The newest value of a row may be in the log and not in the table yet, so both are
 * looked at. That is not all (papers' first hole): a transaction is acknowledged when its backups have logged it, before its
 * COMMIT has come here. Only the NIC's lock tells of it; see local.ts.
 */

import { assert } from "../../runtime/assert.ts";
import type { Name } from "../names.ts";
import type { TwoWords } from "./caching-index.ts";
import type { HostAnswer, HostRead } from "./host-lookup.ts";
import { type HostRow, HostTable, type HostTableShape } from "./host-table.ts";
import { ABSENT, type Item, ownerOf, type RowName, rowId, type Value } from "./message.ts";

export interface LogRecord {
  readonly name: Name;
  /** In which it was logged. */
  readonly configurationId: number;
  /** All shards that the transaction writes. */
  readonly shards: readonly number[];
  /** Of a LOG record. */
  readonly shard: number;
  readonly items: readonly Item[];
  /** A LOG record at the primary itself: it is kept for a recovery only, since COMMIT brings the same. */
  readonly isKept: boolean;
}

/** A table in host memory, as the NIC reads it. */
export interface ReadableTable {
  readonly segments: number;
  readonly keyWords: number;
  readonly valueWords: number;
  /** Changes whenever a row moves. */
  readonly generation: number;
  /** Whether there is no room for another row. */
  readonly isFull: boolean;
  homeOf(key: number): number;
  segmentOf(home: number): number;
  /** What lies there, and the row if it is among it; undefined if the host was writing: then it is read again. */
  read(
    read: HostRead,
    key: number,
  ): (HostAnswer & { readonly row: HostRow | undefined }) | undefined;
}

/** What a NIC needs of its host's memory: tables that it reads, and logs that it appends to. */
export interface HostMemory {
  /** Shards of which there is a copy here. */
  readonly shards: readonly number[];
  readonly tables: number;
  /** Records that are not applied. */
  readonly commits: { readonly length: number };
  readonly logged: { readonly length: number; push(record: LogRecord): unknown };
  table(shard: number, table: number): ReadableTable;
  appendCommit(record: LogRecord): void;
  raiseLow(name: Name): void;
}

export interface ReadRow {
  readonly version: TwoWords;
  readonly value: Value;
}

export const NO_VERSION: TwoWords = { high: 0, low: 0 };
const NO_ROW: ReadRow = { version: NO_VERSION, value: ABSENT };

export class XenicHost implements HostMemory {
  readonly commits: LogRecord[] = [];
  logged: LogRecord[] = [];
  /** Of each coordinator: all its transactions below are over. */
  readonly lows = new Map<number, number>();
  readonly #tables = new Map<number, HostTable[]>();
  readonly #shapes: readonly HostTableShape[];
  readonly #shardOf: (table: number, key: number) => number;
  /** Rows of `commits`: the newest of each, and how many there are. */
  readonly #tail = new Map<string, { count: number; row: ReadRow }>();

  constructor(
    shards: readonly number[],
    shapes: readonly HostTableShape[],
    shardOf: (table: number, key: number) => number,
  ) {
    this.#shapes = shapes;
    this.#shardOf = shardOf;
    for (const shard of shards) {
      this.#tables.set(
        shard,
        shapes.map((shape) => new HostTable(shape)),
      );
    }
  }

  get tables(): number {
    return this.#shapes.length;
  }

  /** Shards of which there is a copy here. */
  get shards(): number[] {
    return [...this.#tables.keys()];
  }

  table(shard: number, table: number): HostTable {
    const found = this.#tables.get(shard)?.[table];
    assert(found !== undefined, "rows are asked for where a copy of them is");
    return found;
  }

  tableOf({ table, key }: RowName): HostTable {
    return this.table(this.#shardOf(table, key), table);
  }

  /** The newest value that this host knows. */
  read(row: RowName): ReadRow {
    return this.#tail.get(rowId(row))?.row ?? this.tableOf(row).get(row.key) ?? NO_ROW;
  }

  appendCommit(record: LogRecord): void {
    this.commits.push(record);
    const version = ownerOf(record.name);
    for (const item of record.items) {
      const id = rowId(item);
      const row = { version, value: item.value ?? ABSENT };
      const before = this.#tail.get(id);
      this.#tail.set(id, { count: (before?.count ?? 0) + 1, row });
    }
  }

  /** A worker applies up to so many COMMIT records, and gives them back for the NIC to unpin their rows. */
  applyCommits(most: number): LogRecord[] {
    const applied = this.commits.splice(0, most);
    for (const record of applied) {
      this.#apply(record);
      for (const item of record.items) this.#passTail(rowId(item));
    }
    return applied;
  }

  /** The same for LOG records whose transactions are over. */
  applyLogged(most: number): LogRecord[] {
    let count = 0;
    for (const { name } of this.logged) {
      if (count === most || name.sequence >= (this.lows.get(name.coordinator) ?? 0)) break;
      count++;
    }
    const applied = this.logged.splice(0, count);
    for (const record of applied) if (!record.isKept) this.#apply(record);
    return applied;
  }

  raiseLow({ coordinator, low }: Name): void {
    if (low > (this.lows.get(coordinator) ?? 0)) this.lows.set(coordinator, low);
  }

  /** After a recovery: all that lies in the log is applied, but for what was aborted. */
  settle(isAborted: (name: Name) => boolean): void {
    this.applyCommits(this.commits.length);
    for (const record of this.logged) {
      if (!record.isKept && !isAborted(record.name)) this.#apply(record);
    }
    this.logged = [];
  }

  /** What a recovery has committed and this primary has not heard of. */
  install(name: Name, items: readonly Item[]): void {
    this.#apply({ name, items });
  }

  #apply({ name, items }: Pick<LogRecord, "name" | "items">): void {
    const version = ownerOf(name);
    for (const item of items) {
      const value = item.value ?? ABSENT;
      this.tableOf(item).apply(item.key, version, value);
    }
  }

  #passTail(id: string): void {
    const entry = this.#tail.get(id);
    assert(entry !== undefined, "a record that is applied was in the log");
    if (--entry.count === 0) this.#tail.delete(id);
  }
}
