/**
 * A transaction of a client, or of a procedure at a host, on its way to Xenic's commit: rows are read at the NICs of their primaries,
 * without locks; what was read and what is written then goes to the NIC of one node, which commits it (protocols/xenic/confirm.ts)
 * if all that was read is still so. One row that was read and nothing else needs no commit: it was so when it was read.
 */

import { CONFLICT, isSignal } from "../../engine/signals.ts";
import type { Endpoint, NodeId } from "../../fabric/fabric.ts";
import type { Entry } from "../../protocols/execute/remote-access-set.ts";
import type { TwoWords } from "../../protocols/xenic/caching-index.ts";
import { askRead, askSubmit } from "../../protocols/xenic/client-messages.ts";
import type { ReadRow } from "../../protocols/xenic/host.ts";
import { type Item, type RowName, rowId, type Value } from "../../protocols/xenic/message.ts";
import type { Placement } from "../../protocols/xenic/ports.ts";
import { sleep } from "../../runtime/clock.ts";
import { ConflictError, SituError } from "../../runtime/errors.ts";
import { MAX_ASYNC_PAUSE_MS } from "../../runtime/limits.ts";
import type { Random } from "../../runtime/random.ts";
import { type Fetcher, RemoteTransaction } from "../remote/remote-transaction.ts";
import { type AsyncLimits, AsyncRetry } from "../run/async-retry.ts";
import { ENDED } from "../run/ended.ts";
import type { Execution } from "../run/execution.ts";
import type { XenicRows } from "./xenic-rows.ts";

const FIRST_PAUSE_MS = 0.25;

/** What transactions need of their database. */
export interface XenicConnected {
  readonly endpoint: Endpoint;
  readonly placement: Placement;
  readonly nodes: readonly NodeId[];
  /** Nodes that have not answered lately. Another one commits in their place, or says what is wrong. */
  readonly silent: Set<NodeId>;
  readonly random: Random;
  readonly view: Fetcher["view"];
  tableOf: Fetcher["tableOf"];
  rowsOf(entry: Entry): XenicRows;
  /** At a host: the row as its own table has it, which may be a little old. Undefined if it is not there. */
  readonly readOwn?: ((row: RowName) => ReadRow | undefined) | undefined;
}

interface Seen extends RowName {
  readonly version: TwoWords | undefined;
  readonly value: Value;
}

export class XenicExecution implements Execution<RemoteTransaction> {
  readonly retry: AsyncRetry;
  readonly #host: XenicConnected;
  #tx!: RemoteTransaction;
  #seen = new Map<string, Seen>();
  #isCommitting = false;
  #attempts = 0;

  constructor(host: XenicConnected, limits: AsyncLimits) {
    this.#host = host;
    this.retry = new AsyncRetry(limits, host.endpoint.clock);
  }

  begin(): RemoteTransaction {
    const { view, tableOf } = this.#host;
    this.#isCommitting = false;
    this.#seen = new Map();
    this.#attempts++;
    this.#tx = new RemoteTransaction({
      view,
      tableOf: (table) => tableOf(table),
      pause: async () => {},
      run: async () => {
        throw noScans();
      },
      fetch: (entries) => this.#fetch(entries),
    });
    return this.#tx;
  }

  async commit(): Promise<boolean> {
    const tx = this.#tx;
    if (tx.isDoomed) return false;
    tx.end(ENDED);
    this.#isCommitting = true;
    const written = tx.accesses.toConfirm().filter(({ isWritten }) => isWritten);
    if (written.length === 0) return this.#confirmReads();
    const { rowsOf } = this.#host;
    const objects = new Map<string, { row: RowName; rows: XenicRows; entries: Entry[] }>();
    for (const entry of written) {
      const rows = rowsOf(entry);
      const row = { table: rows.number, key: rows.objectOf(entry.key) };
      const found = objects.get(rowId(row));
      if (found === undefined) objects.set(rowId(row), { row, rows, entries: [entry] });
      else found.entries.push(entry);
    }
    // Others may share an object with what is written without having been read.
    const unread = [...objects]
      .filter(([id, { rows }]) => rows.needsBase && !this.#seen.has(id))
      .map(([, { row }]) => row);
    if (unread.length > 0 && !(await this.#read(unread))) return false;
    const items: Item[] = [];
    for (const [id, { row, rows, entries }] of objects) {
      const seen = this.#seen.get(id);
      const value = rows.merge(seen?.value ?? null, entries);
      items.push({ ...row, isWritten: true, version: seen?.version, value });
    }
    for (const [id, { table, key, version }] of this.#seen) {
      if (!objects.has(id)) items.push({ table, key, isWritten: false, version });
    }
    return this.#submit(items);
  }

  async isValid(): Promise<boolean> {
    return !this.#tx.isDoomed && (await this.#confirmReads());
  }

  async isCallersOwn(error: unknown): Promise<boolean> {
    if (this.#isCommitting) return true;
    // Of a node that cannot be reached as well, so that it is told and not repeated.
    return !isSignal(error) && (await this.#confirmReads());
  }

  countAbort(): void {}

  endAttempt(why: SituError): void {
    this.#tx.end(why);
  }

  async awaitRetry(): Promise<void> {
    const { retry } = this;
    if (!retry.mayRetry()) throw retry.inTheWay?.() ?? retry.conflict("what this one accesses");
    const pauseMs = retry.pauseMs(this.#host.random, FIRST_PAUSE_MS, MAX_ASYNC_PAUSE_MS);
    await sleep(pauseMs, this.#host.endpoint.clock);
  }

  whyNot(): SituError {
    const inTheWay = this.retry.inTheWay?.();
    if (inTheWay !== undefined) return inTheWay;
    return new ConflictError(
      "another transaction has written, or is writing, what this one accesses: this one was rolled back. Begin it again",
      [],
    );
  }

  end(): void {}

  acknowledge(): undefined {}

  count(): void {}

  async #confirmReads(): Promise<boolean> {
    // One row that its NIC has read was so. A host's own table may be older than what others were told.
    if (this.#seen.size === 0 || (this.#seen.size === 1 && !this.#mayReadOwn)) return true;
    const items = [...this.#seen.values()].map(({ table, key, version }) => ({
      table,
      key,
      isWritten: false,
      version,
    }));
    return this.#submit(items);
  }

  /** The first attempt of a host's transaction reads what its own table has; one that was too old asks the NIC. */
  get #mayReadOwn(): boolean {
    return this.#host.readOwn !== undefined && this.#attempts === 1;
  }

  async #submit(items: readonly Item[]): Promise<boolean> {
    const { endpoint } = this.#host;
    const isWriting = items[0].isWritten;
    // At a node its own NIC; else the one that has the first row, of those that are written if there are any.
    const { silent, nodes } = this.#host;
    const nearest = endpoint.self >= 0 ? endpoint.self : this.#nodeOf(items[0]);
    const to = silent.has(nearest) ? (nodes.find((node) => !silent.has(node)) ?? nearest) : nearest;
    const asked = watched(askSubmit(endpoint, to, items), to, silent);
    const outcome = await this.#orUnknown(asked, isWriting);
    if (outcome.kind === "committed") return true;
    this.retry.inTheWay = outcome.reason === "busy" ? () => overloaded(to) : undefined;
    if (outcome.reason === "too large") throw largerThanNic("the transaction");
    if (outcome.reason === "refused") {
      throw new SituError(
        "SITU_FULL",
        "a table has no room for another row: delete some, or create it with more rows (extents)",
      );
    }
    return false;
  }

  /** Whether a commit was done is not known if its node has not said so: it is not sent again. */
  async #orUnknown<T>(outcome: Promise<T>, isWriting: boolean): Promise<T> {
    const { promise: late, cancel } = this.#deadline();
    try {
      return await Promise.race([outcome, late]);
    } catch (error) {
      const { code, message } = error as SituError;
      const isUnknown = code === "SITU_LOST" || code === "SITU_TIMEOUT" || code === "SITU_CLOSED";
      if (!isWriting || !isUnknown) throw error;
      throw new SituError(
        "SITU_UNKNOWN_OUTCOME",
        `the transaction was being committed (${message}): whether it was is not known`,
        { cause: error },
      );
    } finally {
      cancel();
      outcome.catch(() => {});
    }
  }

  #deadline(): { readonly promise: Promise<never>; cancel(): void } {
    let timer = { cancel(): void {} };
    const promise = new Promise<never>((_, reject) => {
      const leftMs = Math.max(1, this.retry.leftMs());
      timer = this.#host.endpoint.clock.after(leftMs, () =>
        reject(new SituError("SITU_TIMEOUT", "a node has not answered in time")),
      );
    });
    return { promise, cancel: () => timer.cancel() };
  }

  async #fetch(entries: readonly Entry[]): Promise<boolean> {
    const { rowsOf } = this.#host;
    const wanted = new Map<string, RowName>();
    const rowOf = (entry: Entry): RowName => {
      const rows = rowsOf(entry);
      return { table: rows.number, key: rows.objectOf(entry.key) };
    };
    for (const entry of entries) {
      const row = rowOf(entry);
      if (!this.#seen.has(rowId(row))) wanted.set(rowId(row), row);
    }
    if (wanted.size > 0 && !(await this.#read([...wanted.values()]))) throw CONFLICT;
    for (const entry of entries) {
      // Written blindly meanwhile: then that counts.
      if (entry.isKnown) continue;
      const seen = this.#seen.get(rowId(rowOf(entry)));
      entry.row = rowsOf(entry).rowIn(seen?.value ?? null, entry.key);
      entry.isKnown = true;
    }
    return true;
  }

  /** False if a transaction has locked one of them. */
  async #read(rows: readonly RowName[]): Promise<boolean> {
    const { endpoint, readOwn } = this.#host;
    const groups = new Map<NodeId, Item[]>();
    for (const row of rows) {
      const node = this.#nodeOf(row);
      const own = this.#mayReadOwn && node === endpoint.self ? readOwn?.(row) : undefined;
      if (own !== undefined) {
        this.#seen.set(rowId(row), { ...row, ...own });
        continue;
      }
      const item = { ...row, isWritten: false };
      const group = groups.get(node);
      if (group === undefined) groups.set(node, [item]);
      else group.push(item);
    }
    const { silent } = this.#host;
    const asked = [...groups].map(([node, items]) =>
      watched(askRead(endpoint, node, items), node, silent).catch((error: SituError) => {
        if (error.code !== "SITU_LOST") throw error;
        const why = `node ${node} does not answer: rows whose primary it is cannot be read`;
        throw new SituError("SITU_UNREACHABLE", why, { cause: error });
      }),
    );
    const { promise: late, cancel } = this.#deadline();
    try {
      const found = await Promise.race([Promise.all(asked), late]);
      for (const items of found) {
        if (items === undefined) return false;
        for (const item of items) {
          const { table, key, version, value = null } = item;
          this.#seen.set(rowId(item), { table, key, version, value });
        }
      }
      return true;
    } finally {
      cancel();
      for (const each of asked) each.catch(() => {});
    }
  }

  #nodeOf({ table, key }: RowName): NodeId {
    const { placement } = this.#host;
    return placement.primaryOf(placement.shardOf(table, key));
  }
}

/** Notes whether a node answers, be it with a refusal. */
export async function watched<T>(asked: Promise<T>, node: NodeId, silent: Set<NodeId>): Promise<T> {
  try {
    const answer = await asked;
    silent.delete(node);
    return answer;
  } catch (error) {
    if ((error as SituError).code === "SITU_LOST") silent.add(node);
    else silent.delete(node);
    throw error;
  }
}

function overloaded(node: NodeId): SituError {
  return new SituError(
    "SITU_OVERLOADED",
    `node ${node} could not begin the transaction: the memory of a NIC is full of rows that are locked or not applied yet, or a host does not keep up with its log. Nothing was committed: try again later, or give nodes more nicMemoryBytes`,
  );
}

/** Of what would wait for ever. */
export function largerThanNic(what: string): SituError {
  return new SituError(
    "SITU_TOO_LARGE",
    `${what} writes more rows of one table than the memory of a NIC has room for: use fewer rows at once, or give nodes more nicMemoryBytes`,
  );
}

export function noScans(): SituError {
  return new SituError(
    "SITU_UNSUPPORTED",
    'a cluster with the protocol "xenic" has no scans: read rows by their keys, or use a cluster with the protocol "rpc" or "one-sided"',
  );
}
