/**
 * What the body of `transact` gets where the data is on other machines: the same operations as
 * everywhere. Those that are issued in one tick form one batch: the rows that they need, and that the
 * transaction has not seen yet, are fetched with one message to each node, then the operations are
 * carried out here, in their order, on what the transaction knows. Writes stay here until the commit.
 */

import type { View } from "../../cluster/view.ts";
import { CONFLICT } from "../../engine/signals.ts";
import type { ConfigurationId } from "../../fabric/fabric.ts";
import {
  copyOf,
  type Entry,
  RemoteAccessSet,
  write,
} from "../../protocols/execute/remote-access-set.ts";
import { RemoteRows, type ScanSource } from "../../protocols/execute/remote-scan.ts";
import { RemoteCount } from "../../protocols/execute/remote-scan-count.ts";
import { planRemote, type RemotePlan } from "../../protocols/execute/remote-scan-plan.ts";
import type { RemoteTable } from "../../protocols/execute/remote-table.ts";
import { OK, type Routine } from "../../protocols/message.ts";
import type { AtSnapshot } from "../../protocols/phases/read.ts";
import { runSteps, type Scan } from "../../protocols/phases/scan.ts";
import { SituError } from "../../runtime/errors.ts";
import type { Plan } from "../../tables/bulk/plan.ts";
import {
  aggregateProgram,
  deleteProgram,
  explainedProgram,
  selectProgram,
  updateProgram,
} from "../../tables/bulk/requests.ts";
import type { Deleted, Updated } from "../../tables/bulk/runs.ts";
import type {
  CountOptions,
  GetOptions,
  IndexKey,
  IndexName,
  ScanOptions,
  UniqueIndex,
} from "../../tables/indexes/read-options.ts";
import type { RowValues } from "../../tables/indexes/structure.ts";
import type { InsertedKey, InsertOf, PutOf, Table } from "../../tables/table.ts";
import type { AsyncTransaction } from "../async-transaction.ts";
import { exists, listOf, missing } from "../row-errors.ts";
import { limitOf, planOf } from "../run/bulk-run.ts";
import { OperationQueue } from "../run/operation-queue.ts";
import { AsyncRowScan } from "../run/row-scan.ts";
import type { AsyncScan } from "../scan.ts";
import {
  aggregateRows,
  changeRows,
  type RemoteOperations,
  remoteChoice,
  takenRows,
} from "./remote-bulk.ts";

/** What a transaction needs of its database. */
export interface Fetcher {
  /** The configuration in which all is done now. A transaction belongs to one, and cannot go on in another. */
  readonly view: Pick<View, "nodes" | "configurationId">;
  tableOf(table: Table): RemoteTable;
  /** Fetches rows; what was read becomes part of the access set. False if one of them is locked. */
  fetch(entries: readonly Entry[], accesses: RemoteAccessSet): Promise<boolean>;
  /** A snapshot of the cluster that all is read from. */
  readonly readsAt?: AtSnapshot | undefined;
  /** With it: what is awaited before a read that met a commit is tried again. */
  readonly patience?: (() => () => Promise<void>) | undefined;
  /** Runs a coroutine of messages. */
  run<T>(routine: Routine<T>): Promise<T>;
  /** Waits a little for a later configuration than this one. */
  pause(configurationId: ConfigurationId, leftMs: number): Promise<void>;
}

interface Queued {
  readonly entries: readonly Entry[];
  /** Brings what else it needs; undefined if that is here. False if something is locked. */
  fetch?(): Promise<boolean> | undefined;
  /** Whether all that was issued before it must be done before it fetches anything. */
  readonly isLate?: boolean;
  run(): void;
  fail(error: unknown): void;
}

export class RemoteTransaction extends OperationQueue<Queued> implements AsyncTransaction {
  readonly accesses = new RemoteAccessSet();
  isDoomed = false;
  readonly view: Fetcher["view"];
  readonly #fetcher: Fetcher;
  #fetching: Promise<void> | undefined;
  /** Bulk operations, each of which takes many others. */
  readonly #running = new Set<Promise<void>>();
  #ended: SituError | undefined;

  constructor(fetcher: Fetcher) {
    super();
    this.#fetcher = fetcher;
    this.view = fetcher.view;
  }

  /** Whether the configuration has changed since: what was read may lie elsewhere, and be changed there. */
  get isStale(): boolean {
    return this.#fetcher.view !== this.view;
  }

  get<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<Row | undefined>;
  get<Row, Key, Changes, Ways, Name extends IndexName<Ways>>(
    table: Table<Row, Key, Changes, Ways>,
    key: NoInfer<IndexKey<Ways, Name>>,
    options: GetOptions<Name & UniqueIndex<Ways, Name>>,
  ): Promise<Row | undefined>;
  get<Row, Key>(table: Table<Row, Key>, key: unknown, options?: unknown): Promise<Row | undefined> {
    return this.#enqueueOne(table as Table, key, (entry) => {
      if (options !== undefined) throw noUniqueIndexes();
      return copyOf(entry.row) as Row | undefined;
    });
  }

  /** Where the protocol locks rows as they are read, in the message that reads it (FaSST §5). */
  getForUpdate<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<Row | undefined> {
    return this.#enqueueOne(
      table as Table,
      key,
      ({ row }) => copyOf(row) as Row | undefined,
      (entry) => {
        entry.wantsLock = true;
      },
    );
  }

  getMany<Row, Key>(
    table: Table<Row, Key>,
    keys: Iterable<NoInfer<Key>>,
  ): Promise<(Row | undefined)[]> {
    const wanted = listOf(table as Table, keys);
    let entries: Entry[];
    try {
      entries = wanted.map((key) => this.#entryOf(table as Table, key));
    } catch (error) {
      return this.#enqueue([], () => {
        throw error;
      });
    }
    return this.#enqueue(entries, () => entries.map(({ row }) => copyOf(row) as Row | undefined));
  }

  has<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<boolean> {
    return this.#enqueueOne(table as Table, key, ({ row }) => row !== undefined);
  }

  insert<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<InsertOf<Row, Writes>>,
  ): Promise<InsertedKey<Writes>> {
    return this.#enqueueRow(table as Table, row as RowValues, true, (entry, copy) => {
      if (entry.row !== undefined) throw exists(table as Table, row);
      write(entry, copy);
      const { autoKey } = table;
      return (autoKey === undefined ? undefined : copy[autoKey]) as InsertedKey<Writes>;
    });
  }

  put<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<PutOf<Row, Writes>>,
  ): Promise<void> {
    return this.#enqueueRow(table as Table, row as RowValues, false, write);
  }

  update<Row, Key, Changes>(
    table: Table<Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): Promise<void> {
    // Checks all types, now and not when its turn comes.
    let taken: Partial<RowValues>;
    try {
      taken = this.#fetcher.tableOf(table as Table).codec.takeChanges(changes as RowValues);
    } catch (error) {
      return this.#enqueue([], () => {
        throw error;
      });
    }
    return this.#enqueueOne(table as Table, key, (entry) => {
      if (entry.row === undefined) throw missing(table as Table, key);
      const { codec } = entry.table;
      const words = codec.encode(codec.merge(entry.row, taken));
      write(entry, codec.decode(codec.scratch, 0, words));
    });
  }

  delete<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<boolean> {
    return this.#enqueueOne(table as Table, key, (entry) => {
      const found = entry.row !== undefined;
      if (found) write(entry, undefined);
      return found;
    });
  }

  scan<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): AsyncScan<Row> {
    this.#check();
    const plan = planRemote("scan", this.#fetcher.tableOf(table as Table), options);
    return new AsyncRowScan(() => this.#rowsOf<Row>(plan));
  }

  async *#rowsOf<Row>(plan: RemotePlan): AsyncGenerator<Row, undefined> {
    const rows = new RemoteRows(plan, this.#scanSource());
    const read = (): boolean => rows.read();
    while (await this.#enqueue([], read, { fetch: () => rows.fetch() })) {
      for (const row of rows.batch) {
        this.#check();
        yield row as Row;
      }
    }
  }

  count<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): Promise<number> {
    let plan: RemotePlan;
    try {
      plan = planRemote("count", this.#fetcher.tableOf(table as Table), options);
    } catch (error) {
      return this.#enqueue([], () => {
        throw error;
      });
    }
    const count = new RemoteCount(plan, this.#scanSource(), (theirs) => this.#fetch(theirs));
    return this.#enqueue([], () => count.rows, { fetch: () => count.fetch(), isLate: true });
  }

  select(table: Table, options?: unknown): AsyncScan<never> {
    const program = selectProgram(table, options);
    const limit = limitOf(options);
    this.#check();
    return new AsyncRowScan(() => limited(takenRows(this.#operations(), table, program), limit));
  }

  aggregate(table: Table, options: unknown): Promise<never> {
    return this.#bulk(async () => {
      const program = aggregateProgram(table, options);
      return (await aggregateRows(this.#operations(), table, program)) as never;
    });
  }

  updateWhere(table: Table, options: unknown): Promise<Updated> {
    return this.#bulk(async () => {
      const program = updateProgram(table, options);
      return { ...(await changeRows(this.#operations(), table, program)), place: "host" };
    });
  }

  deleteWhere(table: Table, options: unknown): Promise<Deleted> {
    return this.#bulk(async () => {
      const program = deleteProgram(table, options);
      const { matched } = await changeRows(this.#operations(), table, program);
      return { matched, place: "host" };
    });
  }

  explain(table: Table, options?: unknown): Promise<Plan> {
    return this.#enqueue([], () => {
      const program = explainedProgram(table, options);
      this.#fetcher.tableOf(table);
      return planOf(program, remoteChoice(table, program, true));
    });
  }

  /**
   * Runs what takes many operations, and is one itself: its failure is not lost if nobody awaits it. The
   * transaction does not commit before it has ended.
   */
  #bulk<T>(run: () => Promise<T>): Promise<T> {
    return this.enqueue<T>((resolve, fail) => {
      const running: Promise<void> = run()
        .then(resolve, fail)
        .finally(() => this.#running.delete(running));
      this.#running.add(running);
      return { entries: [], fail, run: () => {} };
    });
  }

  #operations(): RemoteOperations {
    return {
      getMany: (table, keys) => this.getMany(table, keys),
      scan: (table, options) => this.scan(table, options),
      update: (table, key, changes) => this.update(table, key, changes),
      delete: (table, key) => this.delete(table, key),
      check: (table, changes) => {
        this.#fetcher.tableOf(table).codec.takeChanges(changes as RowValues);
      },
    };
  }

  settle(): Promise<void> | undefined {
    const isBusy = this.queue.length > 0 || this.#fetching !== undefined || this.#running.size > 0;
    return isBusy ? this.#drain() : undefined;
  }

  async #drain(): Promise<void> {
    for (;;) {
      if (this.queue.length > 0 || this.#fetching !== undefined) {
        this.flushAtEndOfTick();
        await this.#fetching;
      } else if (this.#running.size > 0) {
        await Promise.race(this.#running);
      } else return;
    }
  }

  protected flushAtEndOfTick(): void {
    if (this.#fetching === undefined) this.#flush();
  }

  /** No further operation is possible. */
  end(why: SituError): void {
    this.#ended = why;
  }

  #enqueueOne<T>(
    table: Table,
    key: unknown,
    run: (entry: Entry) => T,
    mark?: (entry: Entry) => void,
  ): Promise<T> {
    let entry: Entry;
    try {
      entry = this.#entryOf(table, key);
      mark?.(entry);
    } catch (error) {
      return this.#enqueue([], () => {
        throw error;
      });
    }
    return this.#enqueue([entry], () => run(entry));
  }

  #enqueueRow<T>(
    table: Table,
    row: RowValues,
    reads: boolean,
    run: (entry: Entry, copy: RowValues) => T,
  ): Promise<T> {
    let entry: Entry;
    let copy: RowValues;
    try {
      const remote = this.#fetcher.tableOf(table);
      if (table.autoKey !== undefined && row?.[table.autoKey] === undefined) throw noNumbers(table);
      // Checks all types, now and not when its turn comes.
      const words = remote.codec.encode(row);
      copy = remote.codec.decode(remote.codec.scratch, 0, words);
      entry = this.#entryOf(table, remote.keyOf(copy));
    } catch (error) {
      return this.#enqueue([], () => {
        throw error;
      });
    }
    return this.#enqueue(reads ? [entry] : [], () => run(entry, copy));
  }

  #entryOf(table: Table, key: unknown): Entry {
    return this.accesses.entryOf(this.#fetcher.tableOf(table), key);
  }

  #enqueue<T>(
    entries: readonly Entry[],
    run: () => T,
    more?: Pick<Queued, "fetch" | "isLate">,
  ): Promise<T> {
    return this.enqueue<T>((resolve, fail) => ({
      ...more,
      entries,
      fail,
      run: () => {
        try {
          this.#check();
          resolve(run());
        } catch (error) {
          fail(error);
        }
      },
    }));
  }

  #flush(): void {
    if (this.queue.length === 0) return;
    const late = this.queue.findIndex(({ isLate }, i) => isLate && i > 0);
    const queue = late < 0 ? this.queue : this.queue.slice(0, late);
    this.queue = late < 0 ? [] : this.queue.slice(late);
    if (this.isStale && this.#ended === undefined) {
      this.#fetched(queue, CONFLICT);
      return;
    }
    const wanted = new Set<Entry>();
    const fetches: Promise<boolean>[] = [];
    for (const each of queue) {
      for (const entry of each.entries) if (!entry.isKnown) wanted.add(entry);
      const fetch = this.#ended === undefined ? each.fetch?.() : undefined;
      if (fetch !== undefined) fetches.push(fetch);
    }
    // Once it has ended, nobody would release what a fetch locks.
    if (wanted.size > 0 && this.#ended === undefined) fetches.push(this.#fetch([...wanted]));
    if (fetches.length === 0) {
      for (const each of queue) each.run();
      this.#flush();
      return;
    }
    const [first] = fetches;
    this.#fetching = (fetches.length === 1 ? first : allOf(fetches)).then(
      (isFree) => this.#fetched(queue, isFree ? undefined : CONFLICT),
      (error: unknown) => this.#fetched(queue, error),
    );
  }

  #fetch(entries: readonly Entry[]): Promise<boolean> {
    this.accesses.reads += new Set(entries.map(({ node }) => node)).size;
    return this.#fetcher.fetch(entries, this.accesses);
  }

  async #sendPatiently(steps: readonly Scan[], again: () => Promise<void>): Promise<boolean> {
    for (let open = steps; ; open = open.filter(({ outcome }) => outcome !== OK)) {
      if (await this.#fetcher.run(runSteps(open))) return true;
      await again();
    }
  }

  #scanSource(): ScanSource {
    const { accesses } = this;
    return {
      nodes: this.view.nodes,
      snapshot: this.#fetcher.readsAt,
      partAt: (node) => accesses.partAt(node),
      send: (steps) => {
        accesses.reads += steps.length;
        return this.#fetcher.patience === undefined
          ? this.#fetcher.run(runSteps(steps))
          : this.#sendPatiently(steps, this.#fetcher.patience());
      },
      // What it holds itself, a step of a scan would take for another's.
      check: (table) => {
        if (accesses.hasLocked(table)) throw scanOfLocked(table);
      },
      writtenOf: (table) => accesses.writtenOf(table),
    };
  }

  #check(): void {
    if (this.#ended !== undefined) throw this.#ended;
  }

  #fetched(queue: readonly Queued[], error: unknown): void {
    this.#fetching = undefined;
    if (error !== undefined) this.isDoomed = true;
    for (const each of queue) {
      if (error === undefined) each.run();
      else each.fail(error);
    }
    // What was issued meanwhile.
    this.#flush();
  }
}

/** The first rows of some. */
async function* limited(
  rows: AsyncGenerator<unknown, undefined>,
  limit: number,
): AsyncGenerator<never, undefined> {
  if (limit === 0) return;
  let given = 0;
  for await (const row of rows) {
    yield row as never;
    if (++given === limit) return;
  }
}

async function allOf(fetches: readonly Promise<boolean>[]): Promise<boolean> {
  return (await Promise.all(fetches)).every((isFree) => isFree);
}

function scanOfLocked({ table }: RemoteTable): SituError {
  return new SituError(
    "SITU_UNSUPPORTED",
    `the transaction has locked rows of table ${table.name} with getForUpdate and cannot scan it ` +
      `any more: scan first, or use get`,
  );
}

function noNumbers({ name, autoKey }: Table): SituError {
  return new SituError(
    "SITU_UNSUPPORTED",
    `across machines nobody counts the keys of table ${name}: say which ${autoKey} the row has, or ` +
      `use a uuid() as the key`,
  );
}

function noUniqueIndexes(): SituError {
  return new SituError(
    "SITU_UNSUPPORTED",
    "across machines rows are found by their key, or with scan",
  );
}
