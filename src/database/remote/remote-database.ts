/**
 * A database on other machines, with the same face as a local one. What needs an answer at once
 * cannot be had across machines: reads are promises, and there is no `transactSync`.
 */

import { type Called, CallInDoubt, type Returned } from "../../cluster/call.ts";
import type { ClusterClient } from "../../cluster/client.ts";
import { Deadline, type TimeLeft } from "../../cluster/session.ts";
import { currentPlacement, type View } from "../../cluster/view.ts";
import type { ConfigurationId, Endpoint, NodeId } from "../../fabric/fabric.ts";
import type { Coordinator, Held, Outcome, Parts } from "../../protocols/coordinator.ts";
import type { Driver } from "../../protocols/driver.ts";
import { fetchRows } from "../../protocols/execute/fetch.ts";
import type { RememberedRows } from "../../protocols/execute/remembered-rows.ts";
import type { Entry, RemoteAccessSet } from "../../protocols/execute/remote-access-set.ts";
import { RemoteTable } from "../../protocols/execute/remote-table.ts";
import { getByVerb, recallByVerb, SingleGet } from "../../protocols/execute/single-get.ts";
import type { Routine } from "../../protocols/message.ts";
import type { Origin } from "../../protocols/origin.ts";
import { sleep } from "../../runtime/clock.ts";
import { SituError, TimeoutError } from "../../runtime/errors.ts";
import { refuseUnknownOptions } from "../../runtime/known-options.ts";
import { DEFAULT_MAX_SNAPSHOT_MS, FOLLOW_MAX_MS, OUTCOME_GRACE_MS } from "../../runtime/limits.ts";
import { Random } from "../../runtime/random.ts";
import type { Plan } from "../../tables/bulk/plan.ts";
import type { Deleted, Updated } from "../../tables/bulk/runs.ts";
import type { AssociationTypes, ObjectKinds } from "../../tables/graph/definition.ts";
import { clusterGraphs } from "../../tables/graph/row-tables.ts";
import type { CountOptions, ScanOptions } from "../../tables/indexes/read-options.ts";
import type { RowValues } from "../../tables/indexes/structure.ts";
import type { InsertedKey, InsertOf, PutOf, Table } from "../../tables/table.ts";
import { type InteractiveTransaction, ROW_OPERATIONS } from "../async-transaction.ts";
import type { CallOptions, RemoteDatabase as PublicRemoteDatabase } from "../database.ts";
import { isDuration, notADuration } from "../open-options.ts";
import { listOf } from "../row-errors.ts";
import { handleOf } from "../run/interactive.ts";
import { TransactionRunner } from "../run/runner.ts";
import type { AsyncScan } from "../scan.ts";
import { checkOptions, nested, notAFunction, type TransactOptions } from "../transact-options.ts";
import { Admission } from "./admission.ts";
import { Begun, Doubts } from "./doubts.ts";
import { type Follower, isPassing } from "./follower.ts";
import { type ClusterGraphs, openRemoteGraph } from "./graph/open-remote-graph.ts";
import type { RemoteGraph } from "./graph/remote-graph.ts";
import { MetNodes } from "./met-nodes.ts";
import { RemoteExecution, type RemoteLimits } from "./remote-execution.ts";
import { type LoneScans, scanAlone } from "./remote-scan-alone.ts";
import { RemoteSnapshot } from "./remote-snapshot.ts";
import { type Fetcher, RemoteTransaction } from "./remote-transaction.ts";
import { type SnapshotHost, TakenSnapshot } from "./taken-snapshot.ts";

/** An endpoint that may know whom it reaches. */
export interface ReachingEndpoint extends Endpoint {
  isConnected?(node: NodeId): boolean;
}

/** What a database needs in order to reach its nodes. */
export interface ClusterConnection {
  readonly endpoint: ReachingEndpoint;
  readonly driver: Driver;
  readonly client: ClusterClient;
  readonly timeoutMs: number;
  /** How long snapshots may be kept; by default a minute. */
  readonly maxSnapshotMs?: number;
  /** Whether rows are found by verb (FaRM) or by message (FaSST). */
  readonly readsByVerb: boolean;
  /** At a node: what commits here, and locks rows as they are read. Clients submit. */
  readonly own?: OwnCommits;
  /** At a client: how it learns of later configurations. A node is told. */
  readonly follower?: Follower;
  /** For pauses between attempts; a simulation passes its own. */
  readonly random?: Random;
}

export interface OwnCommits {
  commit(
    parts: Parts,
    held: Held | undefined,
    time: TimeLeft,
    origin: Origin | undefined,
  ): Routine<Outcome>;
  /** Undefined where the protocol does not lock rows as it reads them. */
  readonly locks: Coordinator | undefined;
}

export class RemoteDatabase implements PublicRemoteDatabase, Fetcher {
  readonly #connection: ClusterConnection;
  readonly #runner: TransactionRunner<RemoteTransaction, RemoteLimits>;
  /** At a client. A node has limits of its own for its procedures. */
  readonly #admission: Admission | undefined;
  readonly #random: Random;
  readonly #nodes: MetNodes;
  readonly #doubts: Doubts;
  readonly #snapshots = new Set<RemoteSnapshot>();
  readonly #snapshotHost: SnapshotHost;
  /** By a table's ordinal. */
  readonly #tables: (RemoteTable | undefined)[] = [];
  #graphs: Promise<ClusterGraphs> | undefined;
  #isClosed = false;
  #closing: Promise<void> | undefined;

  /** Use `open({ connect })`. */
  constructor(connection: ClusterConnection) {
    this.#connection = connection;
    const { random = new Random(), endpoint, own } = connection;
    this.#random = random;
    this.#nodes = new MetNodes(connection);
    this.#doubts = new Doubts(connection, (than, leftMs) => this.pause(than, leftMs));
    this.#snapshotHost = this.#newSnapshotHost(connection);
    this.#admission = own === undefined ? new Admission(endpoint.clock) : undefined;
    this.#runner = new TransactionRunner(
      (limits: RemoteLimits) => new RemoteExecution(connection, this, this.#doubts, random, limits),
    );
  }

  /** For `open`: makes tables known to all nodes that can be reached; to others when they can be. */
  async openTables(tables: readonly Table[]): Promise<void> {
    const { client, timeoutMs } = this.#connection;
    const remotes = tables.map((table) => {
      if (table.expires !== undefined) throw unsupported(`expiry of rows (table ${table.name})`);
      return new RemoteTable(table, currentPlacement(client.view));
    });
    await this.#nodes.open(remotes, timeoutMs);
    for (const remote of remotes) {
      const { ordinal } = remote.table;
      while (this.#tables.length <= ordinal) this.#tables.push(undefined);
      this.#tables[ordinal] = remote;
    }
  }

  /** A row by its key: one round trip to its primary, linearizable. */
  get<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<Row | undefined> {
    return new Promise((resolve, reject) => {
      this.#check();
      const { driver, timeoutMs, readsByVerb } = this.#connection;
      this.#nodes.look();
      const remote = this.tableOf(table as Table);
      const found = resolve as (row: RowValues | undefined) => void;
      if (readsByVerb) void getByVerb(driver, remote, key, timeoutMs).then(found, reject);
      else new SingleGet(driver, remote, key, timeoutMs, found, reject).start();
    });
  }

  getMany<Row, Key>(
    table: Table<Row, Key>,
    keys: Iterable<NoInfer<Key>>,
  ): Promise<(Row | undefined)[]> {
    const wanted = listOf(table, keys);
    return this.transact((tx) => tx.getMany(table, wanted));
  }

  insert<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<InsertOf<Row, Writes>>,
  ): Promise<InsertedKey<Writes>> {
    return this.transact((tx) => tx.insert(table, row)) as Promise<InsertedKey<Writes>>;
  }

  put<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<PutOf<Row, Writes>>,
  ): Promise<void> {
    return this.transact((tx) => tx.put(table, row));
  }

  update<Row, Key, Changes>(
    table: Table<Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): Promise<void> {
    return this.transact((tx) => tx.update(table, key, changes));
  }

  delete<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<boolean> {
    return this.transact((tx) => tx.delete(table, key));
  }

  /**
   * Runs `body` as a strictly serializable transaction over all nodes. It is run again when another
   * transaction got in between, so it should do nothing but use `tx`.
   */
  async transact<T>(
    body: (tx: RemoteTransaction) => T | PromiseLike<T>,
    options: TransactOptions = {},
  ): Promise<Awaited<T>> {
    if (typeof body !== "function") throw notAFunction("transact", body);
    return await this.#runner.track(this.#run(body, this.#limitsOf("transact", options)));
  }

  /** For a node: the same on behalf of a client's call. */
  transactFor<T>(
    origin: Origin,
    timeoutMs: number,
    body: (tx: RemoteTransaction) => T | PromiseLike<T>,
  ): Promise<Awaited<T>> {
    this.#check();
    return this.#runner.track(this.#run(body, { timeoutMs, signal: undefined, origin }));
  }

  #run<T>(
    body: (tx: RemoteTransaction) => T | PromiseLike<T>,
    limits: RemoteLimits,
  ): Promise<Awaited<T>> {
    const run = (timeoutMs: number): Promise<Awaited<T>> =>
      this.#runner.run(body, { ...limits, timeoutMs });
    return this.#admission === undefined
      ? run(limits.timeoutMs)
      : this.#admission.run(limits.timeoutMs, limits.signal, run);
  }

  /**
   * Begins a transaction that its caller ends with `commit` or `rollback`: see docs/ISOLATION.md.
   * Prefer `transact`, which runs its callback again when it meets another transaction.
   */
  async begin(options: TransactOptions = {}): Promise<InteractiveTransaction> {
    return handleOf(await this.#runner.begin(this.#limitsOf("begin", options)), ROW_OPERATIONS);
  }

  #limitsOf(call: "transact" | "begin", options: TransactOptions): RemoteLimits {
    this.#check();
    if (this.#runner.callbacks.isInside()) throw nested();
    checkOptions(call, options);
    const { isolation, durability, signal } = options;
    if (durability !== undefined) throw unsupported("durability here");
    const limits = { timeoutMs: this.#timeoutOf(options), signal };
    if (isolation !== "snapshot") return limits;
    return { ...limits, newSnapshot: () => new TakenSnapshot(this.#snapshotHost) };
  }

  #newSnapshotHost(connection: ClusterConnection): SnapshotHost {
    const { driver, client, timeoutMs, maxSnapshotMs = DEFAULT_MAX_SNAPSHOT_MS } = connection;
    return {
      driver,
      client,
      timeoutMs,
      maxSnapshotMs,
      lastEpoch: 0,
      get view() {
        return client.view.current;
      },
      tableOf: (table) => this.tableOf(table),
      look: () => this.#nodes.look(),
    };
  }

  /**
   * The rows within bounds, of one state; what scans of many rows do not promise is in
   * remote-scan-alone.ts.
   */
  scan<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): AsyncScan<Row> {
    this.#check();
    return scanAlone(this.#loneScans(), (tx) => tx.scan(table, options));
  }

  /** How many rows `scan` would give. */
  count<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): Promise<number> {
    return this.transact((tx) => tx.count(table, options));
  }

  /** The rows that match; with the promises of `scan`. */
  select(table: Table, options?: unknown): AsyncScan<never> {
    this.#check();
    return scanAlone(this.#loneScans(), (tx) => tx.select(table, options));
  }

  aggregate(table: Table, options: unknown): Promise<never> {
    return this.transact((tx) => tx.aggregate(table, options));
  }

  updateWhere(table: Table, options: unknown, transaction?: TransactOptions): Promise<Updated> {
    return this.transact((tx) => tx.updateWhere(table, options), transaction);
  }

  deleteWhere(table: Table, options: unknown, transaction?: TransactOptions): Promise<Deleted> {
    return this.transact((tx) => tx.deleteWhere(table, options), transaction);
  }

  explain(table: Table, options?: unknown): Promise<Plan> {
    return this.transact((tx) => tx.explain(table, options));
  }

  #loneScans(): LoneScans {
    const { endpoint, driver, client, timeoutMs } = this.#connection;
    const validate = ({ accesses, view }: RemoteTransaction): Promise<boolean> =>
      driver.start(client.validate(accesses.parts), timeoutMs, view.configurationId);
    return {
      clock: endpoint.clock,
      timeoutMs,
      random: this.#random,
      begin: () => new RemoteTransaction(this),
      isValid: async (tx) => tx.accesses.reads <= 1 || (!tx.isStale && (await validate(tx))),
      pause: ({ view }) => this.pause(view.configurationId, timeoutMs),
    };
  }

  /** For `graph`. */
  async openGraph(
    name: string,
    objects: ObjectKinds,
    associations: AssociationTypes,
  ): Promise<RemoteGraph> {
    this.#check();
    this.#graphs ??= this.#openGraphs();
    const graphs = await this.#graphs;
    return openRemoteGraph(this, graphs, name, objects, associations);
  }

  async #openGraphs(): Promise<ClusterGraphs> {
    const graphs = clusterGraphs();
    try {
      await this.openTables([graphs]);
      return graphs;
    } catch (error) {
      this.#graphs = undefined;
      throw error;
    }
  }

  /** For graphs: a row that is read often, by the place that is remembered if the protocol reads by verb. */
  async recall(rows: RememberedRows, table: Table, key: unknown): Promise<unknown> {
    this.#check();
    const { driver, timeoutMs, readsByVerb } = this.#connection;
    if (!readsByVerb) return this.get(table, key);
    this.#nodes.look();
    const recalled = await recallByVerb(driver, rows, key, timeoutMs);
    return recalled.outcome === "found"
      ? recalled.row
      : recalled.outcome === "absent"
        ? undefined
        : this.get(table, key);
  }

  transactSync(): never {
    throw new SituError(
      "SITU_UNSUPPORTED",
      "transactSync needs the data in this machine's memory; this database is on others: use transact",
    );
  }

  /** Takes a snapshot of all nodes, for reading. */
  async snapshot(): Promise<RemoteSnapshot> {
    this.#check();
    const { timeoutMs, endpoint } = this.#connection;
    const time = new Deadline(endpoint.clock, timeoutMs);
    for (;;) {
      const taken = new TakenSnapshot(this.#snapshotHost);
      try {
        await this.#runner.track(taken.take());
        const close = (closed: RemoteSnapshot): void => void this.#snapshots.delete(closed);
        const snapshot = new RemoteSnapshot(taken, () => this.#check(), close);
        this.#snapshots.add(snapshot);
        return snapshot;
      } catch (error) {
        // The nodes have changed, or are about to.
        if (!isPassing(error) || time.leftMs() <= 0 || this.#isClosed) throw error;
        await this.pause(taken.view.configurationId, time.leftMs());
      }
    }
  }

  watch(): never {
    throw unsupported("watch");
  }

  /** Runs a procedure of the nodes, next to the data, and gives what it returned. */
  async call(
    name: string,
    values: readonly unknown[] = [],
    options: CallOptions = {},
  ): Promise<unknown> {
    this.#check();
    refuseUnknownOptions("call", options, ["timeoutMs", "near"]);
    const { near } = options;
    const timeoutMs = this.#timeoutOf(options);
    if (near !== undefined) this.#primaryOf(near);
    const called = { procedure: String(name), values, isPassedOn: near !== undefined };
    const run = (leftMs: number): Promise<unknown> => this.#call(near, called, leftMs);
    return await this.#runner.track(
      this.#admission === undefined
        ? run(timeoutMs)
        : this.#admission.run(timeoutMs, undefined, run),
    );
  }

  /** Calls it again where nothing was done, and the node may have left. */
  async #call(near: CallOptions["near"], called: Called, timeoutMs: number): Promise<unknown> {
    const time = new Deadline(this.#connection.endpoint.clock, timeoutMs);
    for (;;) {
      const { configurationId } = this.view;
      const node = near === undefined ? this.#anyNode() : this.#primaryOf(near);
      const returned = await this.callAt(node, called, time);
      if (returned?.isDone) return returned.value;
      const mayRetry = returned === undefined || isPassing(returned.error);
      if (!mayRetry || time.leftMs() <= 0) throw notDone(called, returned?.error);
      await this.pause(configurationId, time.leftMs());
    }
  }

  /** Calls a procedure at a node. Undefined if it was not done, and the node has left. */
  async callAt(node: NodeId, called: Called, time: TimeLeft): Promise<Returned | undefined> {
    const { driver, client } = this.#connection;
    this.#nodes.look();
    const begun = new Begun(this.view, time);
    // The node may find at the last moment that its time is over, and has to say so.
    const longestMs = Math.max(time.leftMs(), 0) + 2 * OUTCOME_GRACE_MS;
    const told = await driver.start(client.call(node, called, time), longestMs);
    return told instanceof CallInDoubt ? this.#doubts.ofCall(told, called, begun) : told;
  }

  /** One that can be reached, if there is one. */
  #anyNode(): NodeId {
    const { nodes } = this.view;
    const { endpoint } = this.#connection;
    return nodes.find((node) => endpoint.isConnected?.(node)) ?? nodes[0];
  }

  /** Leaves the cluster, after the transactions that run. */
  async close(): Promise<void> {
    if (this.#runner.callbacks.isSurelyInside()) throw nested();
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    await this.#runner.close(closed());
    await Promise.all([...this.#snapshots].map((snapshot) => snapshot.close()));
    this.#nodes.close();
    this.#connection.follower?.close();
    this.#connection.driver.close();
    await this.#connection.endpoint.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** For transactions. */
  tableOf(table: Table): RemoteTable {
    const found = this.#tables[table?.ordinal];
    if (found !== undefined) return found;
    throw new SituError(
      "SITU_UNKNOWN_TABLE",
      `table ${String(table?.name)} is not open here: pass it to open({ connect, tables: [...] })`,
    );
  }

  /** For transactions. */
  fetch(entries: readonly Entry[], accesses: RemoteAccessSet): Promise<boolean> {
    const { readsByVerb, own } = this.#connection;
    return this.run(fetchRows(entries, accesses, { readsByVerb, locks: own?.locks }));
  }

  /** For transactions: coroutines of messages. */
  run<T>(routine: Routine<T>): Promise<T> {
    const { driver, timeoutMs } = this.#connection;
    this.#nodes.look();
    return driver.start(routine, timeoutMs, this.view.configurationId);
  }

  /** For transactions. */
  get view(): View {
    return this.#connection.client.view.current;
  }

  /** Waits a little for a later configuration than this one. */
  async pause(configurationId: ConfigurationId, leftMs: number): Promise<void> {
    const { follower, endpoint } = this.#connection;
    const patienceMs = Math.min(Math.max(leftMs, 0), FOLLOW_MAX_MS);
    if (follower !== undefined) await follower.later(configurationId, patienceMs);
    else await sleep(patienceMs, endpoint.clock);
  }

  #primaryOf([table, key]: readonly [Table, unknown]): NodeId {
    const remote = this.tableOf(table);
    return remote.primaryOf(remote.partitionOf(key));
  }

  #timeoutOf({ timeoutMs = this.#connection.timeoutMs }: { readonly timeoutMs?: number }): number {
    if (isDuration(timeoutMs)) return timeoutMs;
    throw new SituError("SITU_CONFIG", notADuration("timeoutMs", timeoutMs));
  }

  #check(): void {
    if (!this.#isClosed) return;
    throw closed();
  }
}

function closed(): SituError {
  return new SituError("SITU_CLOSED", "the connection to the cluster is closed: open it again");
}

/** Why a call was not done. That two ends had different configurations says nothing to a caller. */
function notDone({ procedure }: Called, why: SituError | undefined): SituError {
  if (why !== undefined && why.code !== "SITU_STALE_CONFIGURATION") return why;
  return new TimeoutError(
    `procedure ${procedure} was not done: the nodes of the cluster have changed` +
      `${why === undefined ? "" : ` (${why.message})`}. Call it again`,
  );
}

function unsupported(what: string): SituError {
  return new SituError("SITU_UNSUPPORTED", `there is no ${what} across machines yet`);
}
