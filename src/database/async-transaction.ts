/**
 * What the body of `transact` gets: the operations of a transaction as promises. Operations that
 * are issued in one tick form one batch, carried out in their order when the tick ends. Here all
 * data is local and the batch is a loop; across machines it will be one message to each node.
 */

import type { Pointer } from "../memory/pointer.ts";
import type {
  CountOptions,
  GetOptions,
  IndexKey,
  ScanOptions,
  UniqueName,
} from "./indexes/options.ts";
import { Operation } from "./operation.ts";
import { AsyncScan, queuedRows } from "./scan.ts";
import { soon } from "./soon.ts";
import type { Table } from "./table.ts";
import { listOf, type Transaction } from "./transaction.ts";

interface Queued {
  run(): void;
}

export class AsyncTransaction {
  readonly #tx: Transaction;
  #queue: Queued[] = [];
  readonly #failed: { operation: Operation<unknown>; error: unknown }[] = [];
  /** Batches carried out, for those who count round trips. */
  batches = 0;

  constructor(tx: Transaction) {
    this.#tx = tx;
  }

  get<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<Row | undefined>;
  get<Row, Key, Changes, Ways, Name extends UniqueName<Ways>>(
    table: Table<Row, Key, Changes, Ways>,
    key: NoInfer<IndexKey<Ways, Name>>,
    options: GetOptions<Name>,
  ): Promise<Row | undefined>;
  get<Row, Key>(table: Table<Row, Key>, key: Key, options?: unknown): Promise<Row | undefined> {
    return this.#enqueue(() => this.#tx.get(table, key as never, options as never));
  }

  /** The same as `tx.scan` of `transactSync`, for `for await`. */
  scan<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): AsyncScan<Row> {
    const scan = this.#tx.scan(table, options);
    return new AsyncScan(() => queuedRows(scan, (run) => this.#enqueue(run)));
  }

  count<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): Promise<number> {
    return this.#enqueue(() => this.#tx.count(table, options));
  }

  getMany<Row, Key>(
    table: Table<Row, Key>,
    keys: Iterable<NoInfer<Key>>,
  ): Promise<(Row | undefined)[]> {
    const wanted = listOf(table, keys);
    return this.#enqueue(() => this.#tx.getMany(table, wanted));
  }

  has<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<boolean> {
    return this.#enqueue(() => this.#tx.has(table, key));
  }

  insert<Row, Key>(table: Table<Row, Key>, row: NoInfer<Row>): Promise<void> {
    return this.#enqueue(() => this.#tx.insert(table, row));
  }

  put<Row, Key>(table: Table<Row, Key>, row: NoInfer<Row>): Promise<void> {
    return this.#enqueue(() => this.#tx.put(table, row));
  }

  update<Row, Key, Changes>(
    table: Table<Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): Promise<void> {
    return this.#enqueue(() => this.#tx.update(table, key, changes));
  }

  delete<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<boolean> {
    return this.#enqueue(() => this.#tx.delete(table, key));
  }

  alloc(size: number, options: { readonly near?: Pointer } = {}): Promise<Pointer> {
    return this.#enqueue(() => this.#tx.alloc(size, options));
  }

  allocArray(
    size: number,
    count: number,
    options: { readonly near?: Pointer } = {},
  ): Promise<Pointer> {
    return this.#enqueue(() => this.#tx.allocArray(size, count, options));
  }

  read(pointer: Pointer): Promise<Uint8Array> {
    return this.#enqueue(() => this.#tx.read(pointer));
  }

  write(pointer: Pointer, data: Uint8Array): Promise<void> {
    return this.#enqueue(() => this.#tx.write(pointer, data));
  }

  free(pointer: Pointer): Promise<void> {
    return this.#enqueue(() => this.#tx.free(pointer));
  }

  /** Carries out what has been issued. Called at the end of a tick, and before the commit. */
  flush(): void {
    const queue = this.#queue;
    if (queue.length === 0) return;
    this.#queue = [];
    this.batches++;
    for (const operation of queue) operation.run();
  }

  /** The failure of an operation that nobody awaited, if there is one. */
  unseenFailure(): { error: unknown } | undefined {
    return this.#failed.find(({ operation }) => !operation.observed);
  }

  #enqueue<T>(run: () => T): Promise<T> {
    let resolve!: (value: T) => void;
    let reject!: (error: unknown) => void;
    const operation = new Operation<T>((onResolve, onReject) => {
      resolve = onResolve;
      reject = onReject;
    });
    const fail = (error: unknown): void => {
      this.#failed.push({ operation, error });
      operation.silence();
      reject(error);
    };
    if (this.#queue.length === 0) soon(() => this.flush());
    this.#queue.push({
      run: () => {
        try {
          resolve(run());
        } catch (error) {
          fail(error);
        }
      },
    });
    return operation;
  }
}
