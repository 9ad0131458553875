// The little of lmdb-js that the benchmarks use, as its index.d.ts has it.

/** Numbers and texts: the default key encoding, ordered-binary, keeps their order. */
export type LmdbKey = number | string;

export interface LmdbModule {
  open(options: EnvironmentOptions): Environment;
}

export interface EnvironmentOptions {
  readonly path: string;
  readonly mapSize: number;
  readonly maxDbs: number;
  readonly noMemInit: boolean;
  readonly noSync?: boolean;
  readonly useWritemap?: boolean;
  readonly overlappingSync?: boolean;
  readonly noMetaSync?: boolean;
}

export interface DatabaseOptions {
  readonly name: string;
  readonly encoding?: "msgpack" | "ordered-binary";
  readonly sharedStructuresKey?: symbol;
}

/** All databases of an environment take part in its transactions. */
export interface Transactions {
  /** Runs the body, commits, and returns; waits for other processes' transactions before. */
  transactionSync<R>(body: () => R): R;
  /** Queues the body; those of one turn of the event loop are committed together. */
  transaction<R>(body: () => R): Promise<R>;
}

export interface Environment extends Transactions {
  openDB<V>(options: DatabaseOptions): LmdbDatabase<V>;
  close(): Promise<void>;
}

export interface LmdbDatabase<V> {
  get(key: LmdbKey): V | undefined;
  doesExist(key: LmdbKey): boolean;
  /** In a transaction it is done when this returns; outside it is queued. */
  put(key: LmdbKey, value: V): Promise<boolean>;
  putSync(key: LmdbKey, value: V): boolean;
  removeSync(key: LmdbKey): boolean;
  getRange(options: { readonly start?: LmdbKey; readonly limit?: number }): Iterable<Entry<V>>;
}

export interface Entry<V> {
  readonly key: LmdbKey;
  readonly value: V;
}
