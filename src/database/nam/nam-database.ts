/**
 * A database on memory servers: this process is a compute server of NAM-DB (docs/decisions/0120). It has the same face as a
 * database on other clusters. Transactions have snapshot isolation and have to say so, because others promise more. What
 * memory servers cannot do fails with SITU_UNSUPPORTED.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import type { Driver } from "../../protocols/driver.ts";
import { planRemote } from "../../protocols/execute/remote-scan-plan.ts";
import { RemoteTable } from "../../protocols/execute/remote-table.ts";
import { catalogueVersions, listTables, openTable } from "../../protocols/nam/catalogue.ts";
import type { NamDirectory } from "../../protocols/nam/compute-thread.ts";
import type { NamTable } from "../../protocols/nam/layout.ts";
import type { Members } from "../../protocols/nam/members.ts";
import { tableOf as extentsOf } from "../../protocols/nam/segments.ts";
import { Timestamps } from "../../protocols/nam/timestamps.ts";
import { NamTransaction } from "../../protocols/nam/transaction.ts";
import { SituError } from "../../runtime/errors.ts";
import { Random } from "../../runtime/random.ts";
import type { CountOptions, ScanOptions } from "../../tables/indexes/read-options.ts";
import type { Placement } from "../../tables/partitions.ts";
import { schemaOf } from "../../tables/schema.ts";
import type { InsertedKey, InsertOf, PutOf, Table } from "../../tables/table.ts";
import { type InteractiveTransaction, ROW_OPERATIONS } from "../async-transaction.ts";
import type { RemoteDatabase as PublicRemoteDatabase } from "../database.ts";
import { isDuration, notADuration } from "../open-options.ts";
import { Admission } from "../remote/admission.ts";
import type { ExtentHints } from "../remote/connect-options.ts";
import type { Fetcher, RemoteTransaction } from "../remote/remote-transaction.ts";
import { listOf } from "../row-errors.ts";
import type { AsyncLimits } from "../run/async-retry.ts";
import { handleOf } from "../run/interactive.ts";
import { AsyncRowScan } from "../run/row-scan.ts";
import { TransactionRunner } from "../run/runner.ts";
import type { AsyncScan } from "../scan.ts";
import {
  checkOptions,
  nested,
  notAFunction,
  type TransactOptions,
  unknownTable,
} from "../transact-options.ts";
import { NamExecution, type NamHost, noBulk } from "./nam-execution.ts";
import { NamMembers } from "./nam-members.ts";
import { checkNamTable, NamRows } from "./nam-rows.ts";
import { NamSnapshot } from "./nam-snapshot.ts";
import { NamThreads } from "./nam-threads.ts";

/** What it needs in order to reach its memory servers. */
export interface NamConnection {
  readonly driver: Driver;
  /** Tables are added as they become known, each at the place of its number. */
  readonly directory: NamDirectory & { readonly tables: NamTable[]; readonly members: Members };
  readonly view: Fetcher["view"];
  readonly placement: Placement;
  readonly timeoutMs: number;
  close(): Promise<void>;
}

export class NamDatabase implements PublicRemoteDatabase {
  readonly #connection: NamConnection;
  readonly #runner: TransactionRunner<RemoteTransaction, AsyncLimits>;
  readonly #admission: Admission;
  readonly #threads: NamThreads;
  readonly #host: NamHost;
  /** By a table's ordinal. */
  readonly #tables = new Map<number, { readonly remote: RemoteTable; readonly rows: NamRows }>();
  #versions: readonly number[] = [];
  #isClosed = false;
  #closing: Promise<void> | undefined;

  /** Use `open({ connect })`. */
  constructor(connection: NamConnection) {
    const { driver, directory, view } = connection;
    const random = new Random();
    const timestamps = new Timestamps(directory, { layout: "vector" });
    this.#connection = connection;
    this.#admission = new Admission(driver.endpoint.clock);
    const members =
      directory.members.copies === 1
        ? undefined
        : new NamMembers({
            driver,
            directory,
            random,
            refreshTables: (servers) => this.#learnTables(servers),
            moved: () => this.#moved(),
          });
    this.#threads = new NamThreads({
      members,
      driver,
      directory,
      timestamps,
      random,
      refreshTables: () => this.#refreshTables(),
    });
    this.#host = {
      driver,
      timestamps,
      random,
      view,
      threads: this.#threads,
      tableOf: (table) => this.#tableOf(table).remote,
      rowsOf: ({ table: { table } }) => this.#tableOf(table).rows,
    };
    this.#runner = new TransactionRunner(
      (limits: AsyncLimits) => new NamExecution(this.#host, limits),
    );
  }

  /** For `open`: enters the memory, and makes its tables known. */
  async openTables(
    tables: readonly Table[],
    hints: Readonly<Record<string, ExtentHints>>,
  ): Promise<void> {
    for (const table of tables) checkNamTable(table);
    const { driver, directory, placement, timeoutMs } = this.#connection;
    const { servers, members } = directory;
    for (const table of tables) {
      const rows = new NamRows(table, hints[table.name] ?? {});
      const schema = JSON.stringify(schemaOf(table));
      const { id, shape } = await driver.start(openTable(directory, schema, rows.shape), timeoutMs);
      directory.tables[id] ??= extentsOf(id, shape, servers, members);
      rows.opened(directory.tables[id]);
      this.#tables.set(table.ordinal, { remote: new RemoteTable(table, placement), rows });
    }
    await this.#threads.open(timeoutMs);
  }

  async #refreshTables(): Promise<void> {
    const { driver, directory, timeoutMs } = this.#connection;
    const servers = directory.members.alive;
    // Before it has a thread to read with, there is nothing to compare with either.
    const versions = this.#threads.isOpen
      ? await driver.start(catalogueVersions(this.#threads.reader, servers), timeoutMs)
      : [];
    if (this.#threads.isOpen && versions.every((each, i) => each === this.#versions[i])) return;
    await this.#learnTables(servers);
    this.#versions = versions;
  }

  async #learnTables(from: readonly NodeId[]): Promise<void> {
    const { driver, directory, timeoutMs } = this.#connection;
    const { servers, members, formation = 0 } = directory;
    for (const { id, shape } of await driver.start(listTables(from, formation), timeoutMs)) {
      directory.tables[id] ??= extentsOf(id, shape, servers, members);
    }
  }

  /** The members are others: their parts of the catalogue are counted anew. */
  async #moved(): Promise<void> {
    this.#versions = [];
    if (!this.#isClosed && this.#threads.isOpen) await this.#threads.renew();
  }

  /** Of other compute servers that were taken for dead and settled here: what became of their transactions. */
  get settled(): Readonly<Record<string, number>> {
    return this.#threads.settled;
  }

  get<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<Row | undefined> {
    return this.#alone((tx) => tx.get(table, key));
  }

  getMany<Row, Key>(
    table: Table<Row, Key>,
    keys: Iterable<NoInfer<Key>>,
  ): Promise<(Row | undefined)[]> {
    const wanted = listOf(table, keys);
    return this.#alone((tx) => tx.getMany(table, wanted));
  }

  insert<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<InsertOf<Row, Writes>>,
  ): Promise<InsertedKey<Writes>> {
    return this.#alone((tx) => tx.insert(table, row)) as Promise<InsertedKey<Writes>>;
  }

  put<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<PutOf<Row, Writes>>,
  ): Promise<void> {
    return this.#alone((tx) => tx.put(table, row));
  }

  update<Row, Key, Changes>(
    table: Table<Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): Promise<void> {
    return this.#alone((tx) => tx.update(table, key, changes));
  }

  delete<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<boolean> {
    return this.#alone((tx) => tx.delete(table, key));
  }

  /** Runs `body` with snapshot isolation, which `options` must ask for. */
  async transact<T>(
    body: (tx: RemoteTransaction) => T | PromiseLike<T>,
    options: TransactOptions = {},
  ): Promise<Awaited<T>> {
    if (typeof body !== "function") throw notAFunction("transact", body);
    return await this.#runner.track(this.#run(body, this.#limitsOf("transact", options)));
  }

  async begin(options: TransactOptions = {}): Promise<InteractiveTransaction> {
    return handleOf(await this.#runner.begin(this.#limitsOf("begin", options)), ROW_OPERATIONS);
  }

  /** What is committed now, for reading rows by their keys. It is the vector: nobody is told of it, nobody waits. */
  async snapshot(): Promise<NamSnapshot> {
    this.#check();
    const { driver, timeoutMs } = this.#connection;
    const attempt = new NamTransaction(this.#threads.reader, this.#host.timestamps);
    await this.#runner.track(driver.start(attempt.begin(), timeoutMs));
    return new NamSnapshot({
      host: this.#host,
      attempt,
      timeoutMs,
      rowsOf: (table) => this.#tableOf(table).rows,
      check: () => this.#check(),
    });
  }

  /** The rows of a table in the state of a snapshot, which each iteration takes when it begins. */
  scan<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): AsyncScan<Row> {
    this.#check();
    planRemote("scan", this.#tableOf(table as Table).remote, options);
    return new AsyncRowScan(() => this.#rowsOf(table, options));
  }

  async *#rowsOf<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options: ScanOptions<NoInfer<Ways>> | undefined,
  ): AsyncGenerator<Row, undefined> {
    await using snapshot = await this.snapshot();
    yield* snapshot.scan(table, options);
  }

  async count<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): Promise<number> {
    await using snapshot = await this.snapshot();
    return await snapshot.count(table, options);
  }

  select(): never {
    throw noBulk();
  }

  async aggregate(): Promise<never> {
    throw noBulk();
  }

  async updateWhere(): Promise<never> {
    throw noBulk();
  }

  async deleteWhere(): Promise<never> {
    throw noBulk();
  }

  async explain(): Promise<never> {
    throw noBulk();
  }

  async call(): Promise<never> {
    throw unsupported("run no procedures: what you would call runs here, in transact");
  }

  /** What `graph` asks for. */
  async openGraph(): Promise<never> {
    throw unsupported(
      'have no graphs: keep them on a cluster with the protocol "rpc" or "one-sided", or in a store of one machine',
    );
  }

  watch(): never {
    throw unsupported("have no log to watch");
  }

  transactSync(): never {
    throw unsupported("are other machines, and transactSync cannot wait for them: use transact");
  }

  async close(): Promise<void> {
    if (this.#runner.callbacks.isSurelyInside()) throw nested();
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    await this.#runner.close(closed());
    await this.#threads.close();
    await this.#connection.close();
  }

  /** An operation on its own is one transaction, and says nothing of isolation: there is nothing to skew. */
  #alone<T>(body: (tx: RemoteTransaction) => T | PromiseLike<T>): Promise<Awaited<T>> {
    return this.transact(body, { isolation: "snapshot" });
  }

  #run<T>(
    body: (tx: RemoteTransaction) => T | PromiseLike<T>,
    limits: AsyncLimits,
  ): Promise<Awaited<T>> {
    return this.#admission.run(limits.timeoutMs, limits.signal, (timeoutMs) =>
      this.#runner.run(body, { ...limits, timeoutMs }),
    );
  }

  #limitsOf(call: "transact" | "begin", options: TransactOptions): AsyncLimits {
    this.#check();
    if (this.#runner.callbacks.isInside()) throw nested();
    checkOptions(call, options);
    const { isolation, durability, signal, timeoutMs = this.#connection.timeoutMs } = options;
    if (durability !== undefined) throw unsupported("have no disk: leave out durability");
    if (isolation !== "snapshot") throw notSerializable(call);
    if (isDuration(timeoutMs)) return { timeoutMs, signal };
    throw new SituError("SITU_CONFIG", notADuration("timeoutMs", timeoutMs));
  }

  #tableOf(table: Table): { readonly remote: RemoteTable; readonly rows: NamRows } {
    const found = this.#tables.get(table?.ordinal);
    if (found !== undefined) return found;
    throw unknownTable(table);
  }

  #check(): void {
    if (this.#isClosed) throw closed();
  }
}

function notSerializable(call: string): SituError {
  return new SituError(
    "SITU_UNSUPPORTED",
    `memory servers (protocol "nam") give snapshot isolation, not serializability: pass { isolation: "snapshot" } to ${call}, ` +
      'read with getForUpdate what must not change under you, or use a cluster with the protocol "rpc" or "one-sided"',
  );
}

function unsupported(what: string): SituError {
  return new SituError("SITU_UNSUPPORTED", `memory servers (protocol "nam") ${what}`);
}

function closed(): SituError {
  return new SituError("SITU_CLOSED", "the connection to the cluster is closed: open it again");
}
