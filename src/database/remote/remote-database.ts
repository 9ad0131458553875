/**
 * A database on other machines, with the same face as a local one. What needs an answer at once
 * cannot be had across machines: reads are promises, and there is no `transactSync`.
 */

import { Call } from "../../cluster/call.ts";
import { partAt, type Session } from "../../cluster/session.ts";
import type { Endpoint, NodeId } from "../../fabric/fabric.ts";
import type { Coordinator, Held, Outcome, Parts } from "../../protocols/coordinator.ts";
import type { Driver } from "../../protocols/driver.ts";
import { type Lookup, lookupAll } from "../../protocols/lookup.ts";
import { once, type Routine } from "../../protocols/message.ts";
import { type KeyToRead, OK, Read, type Take } from "../../protocols/read.ts";
import { ReadLock } from "../../protocols/read-lock.ts";
import { sleep } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { refuseUnknownOptions } from "../../runtime/known-options.ts";
import { CALL_GRACE_MS, MAX_TIMEOUT_MS, RESEND_MAX_MS } from "../../runtime/limits.ts";
import { Random } from "../../runtime/random.ts";
import { readAlone } from "../../stores/remote/open.ts";
import type { Found } from "../../stores/remote/remote.ts";
import type { CountOptions, ScanOptions } from "../../tables/indexes/options.ts";
import type { Values } from "../../tables/indexes/structure.ts";
import { schemaOf } from "../../tables/schema.ts";
import type { Table } from "../../tables/table.ts";
import { type InteractiveTransaction, ROW_OPERATIONS } from "../async-transaction.ts";
import { isDuration, notADuration } from "../open-options.ts";
import type { AsyncLimits } from "../run/async-retry.ts";
import { handleOf } from "../run/interactive.ts";
import { TransactionRunner } from "../run/runner.ts";
import { isInsideTransaction } from "../run/transaction-context.ts";
import type { AsyncScan } from "../scan.ts";
import { checkOptions, nested, notAFunction, type TransactOptions } from "../transact-options.ts";
import { type Entry, took } from "./entries.ts";
import { outcomeWithin } from "./outcome-deadline.ts";
import { RemoteExecution } from "./remote-execution.ts";
import { type LoneScans, scanAlone } from "./remote-scan-alone.ts";
import { RemoteTable } from "./remote-table.ts";
import { type Fetcher, RemoteTransaction } from "./remote-transaction.ts";
import { locked, SingleGet } from "./single-get.ts";

export interface CallOptions {
  /** How long it may take, retries included. */
  readonly timeoutMs?: number;
  /** Runs it where this row is: for procedures that do not say it themselves. */
  readonly near?: readonly [table: Table, key: unknown];
}

/** What a database needs in order to reach its nodes. */
export interface Ends {
  readonly endpoint: Endpoint;
  readonly driver: Driver;
  readonly session: Session;
  readonly timeoutMs: number;
  /** Whether rows are found by verb (FaRM) or by message (FaSST). */
  readonly readsByVerb: boolean;
  /** At a node: what commits here, and locks rows as they are read. Clients submit. */
  readonly own?: OwnCommits;
  /** For pauses between attempts; a simulation passes its own. */
  readonly random?: Random;
}

export interface OwnCommits {
  commit(parts: Parts, held: Held | undefined): Routine<Outcome>;
  /** Undefined where the protocol does not lock rows as it reads them. */
  readonly locks: Coordinator | undefined;
}

export class RemoteDatabase implements Fetcher {
  readonly #ends: Ends;
  readonly #runner: TransactionRunner<RemoteTransaction, AsyncLimits>;
  readonly #random: Random;
  /** By a table's ordinal. */
  readonly #tables: (RemoteTable | undefined)[] = [];
  #isClosed = false;
  #closing: Promise<void> | undefined;

  /** Use `open({ connect })`. */
  constructor(ends: Ends) {
    this.#ends = ends;
    const { random = new Random() } = ends;
    this.#random = random;
    this.#runner = new TransactionRunner(
      this,
      (limits: AsyncLimits) => new RemoteExecution(ends, this, random, limits),
    );
  }

  /** For `open`: makes tables known to all nodes. */
  async openTables(tables: readonly Table[]): Promise<void> {
    const { driver, session, timeoutMs } = this.#ends;
    for (const table of tables) {
      const remote = new RemoteTable(table, session.placement);
      const schema = JSON.stringify(schemaOf(table));
      const places = await driver.start(session.openTable(schema), timeoutMs);
      if (this.#ends.readsByVerb) remote.openPlaces(session.nodes, places);
      while (this.#tables.length <= table.ordinal) this.#tables.push(undefined);
      this.#tables[table.ordinal] = remote;
    }
  }

  /** A row by its key: one round trip to its primary, linearizable. */
  get<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<Row | undefined> {
    return new Promise((resolve, reject) => {
      this.#check();
      const { endpoint, timeoutMs } = this.#ends;
      const found = resolve as (row: Values | undefined) => void;
      if (this.#ends.readsByVerb) {
        void this.#getByVerb(this.tableOf(table as Table), key).then(found, reject);
        return;
      }
      new SingleGet(endpoint, this.tableOf(table as Table), key, timeoutMs, found, reject).send();
    });
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
    return await this.#runner.track(this.#runner.run(body, this.#limitsOf("transact", options)));
  }

  /**
   * Begins a transaction that its caller ends with `commit` or `rollback`: see docs/ISOLATION.md.
   * Prefer `transact`, which runs its callback again when it meets another transaction.
   */
  async begin(options: TransactOptions = {}): Promise<InteractiveTransaction> {
    return handleOf(await this.#runner.begin(this.#limitsOf("begin", options)), ROW_OPERATIONS);
  }

  #limitsOf(call: "transact" | "begin", options: TransactOptions): AsyncLimits {
    this.#check();
    if (isInsideTransaction(this)) throw nested();
    checkOptions(call, options);
    const { isolation, durability, signal } = options;
    if (isolation === "snapshot" || durability !== undefined) {
      throw unsupported(isolation === "snapshot" ? 'isolation "snapshot"' : "durability here");
    }
    return { timeoutMs: this.#timeoutOf(options), signal };
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

  #loneScans(): LoneScans {
    const { endpoint, driver, session, timeoutMs } = this.#ends;
    return {
      clock: endpoint.clock,
      timeoutMs,
      random: this.#random,
      begin: () => new RemoteTransaction(this),
      isValid: async (tx) =>
        tx.reads <= 1 || (await driver.start(session.validate(tx.parts), timeoutMs)),
    };
  }

  transactSync(): never {
    throw new SituError(
      "SITU_UNSUPPORTED",
      "transactSync needs the data in this machine's memory; this database is on others: use transact",
    );
  }

  snapshot(): never {
    throw unsupported("snapshot");
  }

  /** Runs a procedure of the nodes, next to the data, and gives what it returned. */
  async call(
    name: string,
    values: readonly unknown[] = [],
    options: CallOptions = {},
  ): Promise<unknown> {
    this.#check();
    const { driver, session, endpoint } = this.#ends;
    refuseUnknownOptions("call", options, ["timeoutMs", "near"]);
    const { near } = options;
    const timeoutMs = this.#timeoutOf(options);
    const node = near === undefined ? session.nodes[0] : this.#primaryOf(near);
    const { number, low } = session.number();
    const numbered = { instance: session.instanceOf(node), session: session.id, number, low };
    const message = new Call(node, {
      numbered,
      procedure: String(name),
      values,
      timeoutMs,
      isPassedOn: near !== undefined,
    });
    try {
      // Its body may take `timeoutMs` at the node, and then its commit as much.
      const longestMs = Math.min(2 * timeoutMs + CALL_GRACE_MS, MAX_TIMEOUT_MS);
      const running = driver.start(once(message), timeoutMs);
      const what = `procedure ${String(name)}`;
      await this.#runner.track(outcomeWithin(running, longestMs, what, endpoint.clock));
    } finally {
      session.heard(number);
    }
    const { returned, error, attempts } = message;
    if (returned?.isDone) return returned.value;
    if (error?.code === "SITU_UNKNOWN_OUTCOME") {
      // The node was started anew. What was sent only once, to a life that had ended, was not done.
      await driver.start(session.meetAgain(node), timeoutMs);
      const isMet = session.instanceOf(node) !== numbered.instance;
      if (attempts === 1 && isMet) return this.call(name, values, options);
    }
    throw returned?.error ?? error;
  }

  /** Leaves the cluster, after the transactions that run. */
  async close(): Promise<void> {
    if (isInsideTransaction(this)) throw nested();
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    await this.#runner.close(closed());
    this.#ends.driver.close();
    await this.#ends.endpoint.close();
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

  /** For transactions: rows by verb, or by message. */
  async fetch(entries: readonly Entry[], tx: RemoteTransaction): Promise<boolean> {
    if (!this.#ends.readsByVerb) return this.#fetchByMessage(entries, tx);
    const rest: Entry[] = [];
    const found = await this.#fetchByVerb(entries, tx, rest);
    if (!found || rest.length === 0) return found;
    return this.#fetchByMessage(rest, tx);
  }

  /** What cannot be found by verb is left in `rest`. False if something was locked. */
  async #fetchByVerb(
    entries: readonly Entry[],
    tx: RemoteTransaction,
    rest: Entry[],
  ): Promise<boolean> {
    const { driver, timeoutMs } = this.#ends;
    const lookups: (Lookup<Found> & { readonly entry: Entry })[] = [];
    for (const entry of entries) {
      const store = entry.table.storeAt(entry.node);
      if (store === undefined) rest.push(entry);
      else lookups.push({ node: entry.node, reading: store.lookup(entry.key), entry });
    }
    if (lookups.length === 0) return true;
    const results = await driver.start(lookupAll(lookups), timeoutMs);
    // Each object was read at a moment of its own: what more than one says must be validated.
    tx.reads += results.some(({ isProved }) => !isProved) ? 1 : 0;
    for (const [i, found] of results.entries()) {
      const { entry } = lookups[i];
      if (found.outcome === "locked") return false;
      if (found.outcome === "ask") {
        rest.push(entry);
        continue;
      }
      const part = partAt(tx.parts, entry.node);
      for (const { regionId, word, versionHigh, versionLow } of found.dependencies) {
        part.depend(regionId, word, versionHigh, versionLow);
      }
      if (entry.isKnown) continue;
      entry.row =
        found.outcome === "absent"
          ? undefined
          : entry.table.codec.decode(found.views, found.at, found.words);
      entry.isKnown = true;
    }
    if (lookups.length > 1) tx.reads += lookups.length;
    return true;
  }

  /** One row by verb: the same as SingleGet by message. */
  async #getByVerb(table: RemoteTable, key: unknown): Promise<Values | undefined> {
    const { driver, endpoint, timeoutMs } = this.#ends;
    const deadlineMs = endpoint.clock.nowMs() + timeoutMs;
    const node = table.primaryOf(table.partitionOf(key));
    const store = table.storeAt(node);
    for (let attempt = 0; store !== undefined; attempt++) {
      const reading = readAlone(store, key);
      const [found] = await driver.start(lookupAll([{ node, reading }]), timeoutMs);
      if (found.outcome === "absent") return undefined;
      if (found.outcome === "found") return table.codec.decode(found.views, found.at, found.words);
      if (found.outcome === "ask") break;
      if (endpoint.clock.nowMs() >= deadlineMs) throw locked(table, timeoutMs);
      if (attempt > 0) await sleep(Math.min(2 ** attempt / 2, RESEND_MAX_MS), endpoint.clock);
    }
    return new Promise((resolve, reject) => {
      new SingleGet(endpoint, table, key, timeoutMs, resolve, reject).send();
    });
  }

  async #fetchByMessage(entries: readonly Entry[], tx: RemoteTransaction): Promise<boolean> {
    const { driver, own, timeoutMs } = this.#ends;
    const locks = own?.locks;
    const isToLock = ({ wantsLock }: Entry): boolean => wantsLock && locks !== undefined;
    const fetches = fetchesOf(entries.filter((entry) => !isToLock(entry)));
    const messages = fetches.map(({ node, keys, take }) => {
      return new Read(node, keys, partAt(tx.parts, node), take);
    });
    if (locks === undefined || !entries.some(isToLock)) {
      return driver.start(readAll(messages), timeoutMs);
    }
    const held = tx.hold(locks);
    const locking = fetchesOf(entries.filter(isToLock));
    const lockers = locking.map(({ node, keys, take }) => {
      const round = (held.rounds.get(node) ?? 0) + 1;
      held.rounds.set(node, round);
      return new ReadLock(node, held.name, round, keys, take);
    });
    const isFree = await driver.start(readAll([...messages, ...lockers]), timeoutMs);
    for (const [i, { to, locked: isLocked, hasReads, epoch }] of lockers.entries()) {
      if (hasReads) held.reads.add(to);
      held.epoch = Math.max(held.epoch, epoch);
      isLocked.forEach((each, k) => {
        locking[i].entries[k].isLocked = each;
      });
    }
    return isFree;
  }

  /** For transactions: coroutines of messages. */
  run<T>(routine: Routine<T>): Promise<T> {
    const { driver, timeoutMs } = this.#ends;
    return driver.start(routine, timeoutMs);
  }

  get nodes(): readonly NodeId[] {
    return this.#ends.session.nodes;
  }

  #primaryOf([table, key]: readonly [Table, unknown]): NodeId {
    const remote = this.tableOf(table);
    return remote.primaryOf(remote.partitionOf(key));
  }

  #timeoutOf({ timeoutMs = this.#ends.timeoutMs }: { readonly timeoutMs?: number }): number {
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

/** Rows to fetch from one node. */
interface Fetch {
  readonly node: NodeId;
  readonly entries: Entry[];
  readonly keys: KeyToRead[];
  readonly take: Take;
}

function fetchesOf(entries: readonly Entry[]): Fetch[] {
  const fetches: Fetch[] = [];
  for (const entry of entries) {
    const { table, partition, node, key } = entry;
    let fetch = fetches.find((each) => each.node === node);
    if (fetch === undefined) {
      const own: Entry[] = [];
      fetch = {
        node,
        entries: own,
        keys: [],
        take: (i, reply, words) => took(own[i], reply, words),
      };
      fetches.push(fetch);
    }
    fetch.entries.push(entry);
    fetch.keys.push({ table: table.id, partition, key: table.sent(key) });
  }
  return fetches;
}

function* readAll(messages: readonly (Read | ReadLock)[]): Routine<boolean> {
  yield messages;
  for (const { error } of messages) if (error !== undefined) throw error;
  return messages.every(({ outcome }) => outcome === OK);
}

function unsupported(what: string): SituError {
  return new SituError("SITU_UNSUPPORTED", `there is no ${what} across machines yet`);
}
