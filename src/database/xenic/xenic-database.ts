/**
 * A database on nodes with the protocol "xenic" (docs/decisions/0170): the same face as on other clusters, strictly serializable
 * transactions on rows by their keys. What these nodes cannot do fails with SITU_UNSUPPORTED. The host of such a node has one, too, for
 * its procedures.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { RemoteTable } from "../../protocols/execute/remote-table.ts";
import {
  askCall,
  askOpenTable,
  type CalledProcedure,
  type OpenedTable,
  type WantedTable,
} from "../../protocols/xenic/client-messages.ts";
import type { FixedPlacement } from "../../protocols/xenic/fixed-placement.ts";
import { SituError } from "../../runtime/errors.ts";
import { refuseUnknownOptions } from "../../runtime/known-options.ts";
import { Random } from "../../runtime/random.ts";
import type { Placement } from "../../tables/partitions.ts";
import { schemaOf } from "../../tables/schema.ts";
import type { InsertedKey, InsertOf, PutOf, Table } from "../../tables/table.ts";
import { type InteractiveTransaction, ROW_OPERATIONS } from "../async-transaction.ts";
import type { CallOptions, RemoteDatabase as PublicRemoteDatabase } from "../database.ts";
import { isDuration, notADuration } from "../open-options.ts";
import { Admission } from "../remote/admission.ts";
import type { ExtentHints } from "../remote/connect-options.ts";
import type { RemoteTransaction } from "../remote/remote-transaction.ts";
import { listOf } from "../row-errors.ts";
import type { AsyncLimits } from "../run/async-retry.ts";
import { handleOf } from "../run/interactive.ts";
import { TransactionRunner } from "../run/runner.ts";
import {
  checkOptions,
  nested,
  notAFunction,
  type TransactOptions,
  unknownTable,
} from "../transact-options.ts";
import { noScans, watched, type XenicConnected, XenicExecution } from "./xenic-execution.ts";
import { checkXenicTable, XenicRows } from "./xenic-rows.ts";

export interface XenicConnection extends Pick<XenicConnected, "endpoint" | "view" | "readOwn"> {
  readonly placement: FixedPlacement;
  readonly nodes: readonly NodeId[];
  /** For the codecs of tables; where rows lie is by `placement`. */
  readonly partitions: Placement;
  readonly timeoutMs: number;
  close(): Promise<void>;
}

export class XenicDatabase implements PublicRemoteDatabase {
  readonly #connection: XenicConnection;
  readonly #runner: TransactionRunner<RemoteTransaction, AsyncLimits>;
  readonly #admission: Admission;
  /** By a table's ordinal. */
  readonly #tables = new Map<number, { readonly remote: RemoteTable; readonly rows: XenicRows }>();
  readonly #silent = new Set<NodeId>();
  #calls: number;
  #isClosed = false;
  #closing: Promise<void> | undefined;

  /** Use `open({ connect })`. */
  constructor(connection: XenicConnection) {
    const random = new Random();
    this.#connection = connection;
    this.#calls = random.below(connection.nodes.length);
    this.#admission = new Admission(connection.endpoint.clock);
    const { endpoint, placement, view, readOwn, nodes } = connection;
    const connected: XenicConnected = {
      endpoint,
      placement,
      nodes,
      silent: this.#silent,
      random,
      view,
      readOwn,
      tableOf: (table) => this.#tableOf(table).remote,
      rowsOf: ({ table: { table } }) => this.#tableOf(table).rows,
    };
    this.#runner = new TransactionRunner(
      (limits: AsyncLimits) => new XenicExecution(connected, limits),
    );
  }

  /** Makes tables known to all nodes: the first one gives each its number. Every step can be repeated. */
  async openTables(
    tables: readonly Table[],
    hints: Readonly<Record<string, ExtentHints>> = {},
  ): Promise<void> {
    for (const table of tables) checkXenicTable(table);
    const { partitions } = this.#connection;
    for (const table of tables) {
      if (this.#tables.has(table.ordinal)) continue;
      const rows = new XenicRows(table);
      const { name } = table;
      const wanted = {
        name,
        schema: JSON.stringify(schemaOf(table)),
        shape: rows.shape(hints[name] ?? {}),
      };
      rows.opened(await this.#openAtNodes(wanted));
      this.#tables.set(table.ordinal, { remote: new RemoteTable(table, partitions), rows });
    }
  }

  /**
   * While a node does not answer, a table that all others have open already can be used: what can be read without the node is read.
   * None is made then, since the node could not be told of it.
   */
  async #openAtNodes(wanted: WantedTable): Promise<OpenedTable> {
    const { endpoint, nodes } = this.#connection;
    const asked = nodes.map((node) =>
      askOpenTable(endpoint, node, { ...wanted, isOpenOnly: true }).catch((why: SituError) => why),
    );
    const answers = await Promise.all(asked);
    const errors = answers.filter((answer) => answer instanceof Error);
    const opened = answers.find((answer): answer is OpenedTable => !(answer instanceof Error));
    const [error] = errors.filter(({ code }) => code !== "SITU_LOST");
    const isLost = errors.some(({ code }) => code === "SITU_LOST");
    if (error === undefined && opened !== undefined) return opened;
    if (error === undefined) throw errors[0];
    if (isLost || error.code !== "SITU_UNREACHABLE") throw error;
    const [first, ...others] = nodes;
    const made = await askOpenTable(endpoint, first, wanted);
    await Promise.all(others.map((node) => askOpenTable(endpoint, node, made)));
    return made;
  }

  /** Where a row's primary is. */
  nodeOf(table: Table, key: unknown): NodeId {
    const { remote, rows } = this.#tableOf(table);
    const { placement } = this.#connection;
    return placement.primaryOf(placement.shardOf(rows.number, rows.objectOf(remote.keptKey(key))));
  }

  get<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<Row | undefined> {
    return this.transact((tx) => tx.get(table, key)) as Promise<Row | undefined>;
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

  async transact<T>(
    body: (tx: RemoteTransaction) => T | PromiseLike<T>,
    options: TransactOptions = {},
  ): Promise<Awaited<T>> {
    if (typeof body !== "function") throw notAFunction("transact", body);
    const limits = this.#limitsOf("transact", options);
    const running = this.#admission.run(limits.timeoutMs, limits.signal, (timeoutMs) =>
      this.#runner.run(body, { ...limits, timeoutMs }),
    );
    return await this.#runner.track(running);
  }

  async begin(options: TransactOptions = {}): Promise<InteractiveTransaction> {
    return handleOf(await this.#runner.begin(this.#limitsOf("begin", options)), ROW_OPERATIONS);
  }

  /** Has a procedure run at one of the nodes. It is sent once: what became of one that is not answered is not known. */
  async call(
    name: string,
    values: readonly unknown[] = [],
    options: CallOptions = {},
  ): Promise<unknown> {
    this.#check();
    refuseUnknownOptions("call", options, ["timeoutMs", "near"]);
    const { near, timeoutMs = this.#connection.timeoutMs } = options;
    if (!isDuration(timeoutMs)) {
      throw new SituError("SITU_CONFIG", notADuration("timeoutMs", timeoutMs));
    }
    const { nodes } = this.#connection;
    const answering = nodes.filter((node) => !this.#silent.has(node));
    const among = answering.length > 0 ? answering : nodes;
    const any = among[this.#calls++ % among.length];
    const node = near === undefined ? any : this.nodeOf(...near);
    const isPassedOn = near !== undefined;
    const called = { name: String(name), leftMs: timeoutMs, isPassedOn, values };
    return await this.#runner.track(this.callAt(node, called));
  }

  async callAt(node: NodeId, called: CalledProcedure): Promise<unknown> {
    const { endpoint } = this.#connection;
    let timer = { cancel(): void {} };
    const late = new Promise<never>((_, reject) => {
      timer = endpoint.clock.after(called.leftMs, () =>
        reject(new SituError("SITU_TIMEOUT", `node ${node} has not answered in time`)),
      );
    });
    const asked = watched(askCall(endpoint, node, called), node, this.#silent);
    try {
      return await Promise.race([asked, late]);
    } catch (error) {
      const { code, message } = error as SituError;
      if (code !== "SITU_LOST" && code !== "SITU_TIMEOUT") throw error;
      throw new SituError(
        "SITU_UNKNOWN_OUTCOME",
        `procedure ${called.name} was called (${message}): whether it was done is not known`,
        { cause: error },
      );
    } finally {
      timer.cancel();
      asked.catch(() => {});
    }
  }

  scan(): never {
    throw noScans();
  }

  async count(): Promise<never> {
    throw noScans();
  }

  select(): never {
    throw noScans();
  }

  async aggregate(): Promise<never> {
    throw noScans();
  }

  async updateWhere(): Promise<never> {
    throw noScans();
  }

  async deleteWhere(): Promise<never> {
    throw noScans();
  }

  async explain(): Promise<never> {
    throw noScans();
  }

  async snapshot(): Promise<never> {
    throw unsupported("has no snapshots: read in a transaction");
  }

  /** What `graph` asks for. */
  async openGraph(): Promise<never> {
    throw unsupported(
      'has no graphs: keep them on a cluster with the protocol "rpc" or "one-sided", or in a store of one machine',
    );
  }

  watch(): never {
    throw unsupported("has no log to watch");
  }

  transactSync(): never {
    throw unsupported("is on other machines, and transactSync cannot wait for them: use transact");
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
    await this.#connection.close();
  }

  #limitsOf(call: "transact" | "begin", options: TransactOptions): AsyncLimits {
    this.#check();
    if (this.#runner.callbacks.isInside()) throw nested();
    checkOptions(call, options);
    const { isolation, durability, signal, timeoutMs = this.#connection.timeoutMs } = options;
    if (durability !== undefined) {
      throw unsupported("writes nothing to disk: leave out durability");
    }
    if (isolation === "snapshot") {
      throw unsupported("has no snapshots: leave out isolation, and be serializable");
    }
    if (isDuration(timeoutMs)) return { timeoutMs, signal };
    throw new SituError("SITU_CONFIG", notADuration("timeoutMs", timeoutMs));
  }

  #tableOf(table: Table): { readonly remote: RemoteTable; readonly rows: XenicRows } {
    const found = this.#tables.get(table?.ordinal);
    if (found !== undefined) return found;
    throw unknownTable(table);
  }

  #check(): void {
    if (this.#isClosed) throw closed();
  }
}

function unsupported(what: string): SituError {
  return new SituError("SITU_UNSUPPORTED", `a cluster with the protocol "xenic" ${what}`);
}

function closed(): SituError {
  return new SituError("SITU_CLOSED", "the connection to the cluster is closed: open it again");
}
