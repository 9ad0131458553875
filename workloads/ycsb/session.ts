/**
 * A stream of YCSB's operations. Kinds, records and values were drawn before the run.
 *
 * A lane asks for the records of the beginning and for those that it has inserted itself, once they
 * are acknowledged (YCSB's AcknowledgedCounterGenerator), as YCSB clients do that have key ranges
 * of their own. So every record that is asked for exists, and one that is not found was lost.
 */

import { type Distribution, Uniform } from "../random/distribution.ts";
import { DRAWS, drawItems } from "../random/drawn.ts";
import { Stream } from "../random/stream.ts";
import { Latest, ScrambledZipfian } from "../random/zipfian.ts";
import {
  DONE,
  type Outcome,
  type Result,
  type Session,
  type SessionOptions,
  type Tally,
} from "../workload.ts";
import { insertedKey, keyOf } from "./keys.ts";
import {
  INSERT,
  MAX_SCAN_LENGTH,
  READ,
  type RequestDistribution,
  SCAN,
  UPDATE,
} from "./parameters.ts";
import { FIELD_COUNT, type YcsbRow, type YcsbStore } from "./store.ts";
import { fieldNames, POOL_SIZE, pooledRow } from "./values.ts";

/** What all sessions of a workload have in common. */
export interface SessionPlan {
  readonly records: number;
  /** Keys of the records of the beginning, by number. */
  keys(): readonly string[];
  readonly pool: readonly string[];
  /** Kinds of operations with their percents, in the order of the mix. */
  readonly operations: readonly (readonly [kind: number, percent: number])[];
  readonly distribution: RequestDistribution;
  /** Records that a lane may be expected to insert: see `requests`. */
  readonly expectedInserts: number;
  readonly draws?: number | undefined;
}

export const LANE_INSERTS = "inserts in lane ";

export class YcsbSession implements Session {
  drawn = 0;
  readonly #store: YcsbStore;
  readonly #keys: readonly string[];
  readonly #pool: readonly string[];
  readonly #records: number;
  readonly #lane: number;
  /** The kind of operation at each place of the mix. */
  readonly #kindAt: Uint8Array;
  readonly #places: Uint8Array;
  /** Numbers of records to ask for. */
  readonly #requests: Int32Array;
  /**
   * Their keys in the same order, so that a walk over them is one through memory as well: an
   * application has just made or received its key, and waiting for one out of a million would be a
   * third of a read from Situ. Empty for records that are yet to be inserted. With "latest" there
   * is no such list: which record a request means depends on how many were inserted before.
   */
  readonly #requestKeys: readonly string[];
  /** Places in the pool. */
  readonly #values: Uint16Array;
  readonly #mask: number;
  readonly #isLatest: boolean;
  #cursor = 0;
  #requestCursor = 0;

  readonly #insertedKeys: string[] = [];
  #begun = 0;
  #inserts = 0;
  /** All inserts before this one are done; of those after it, these are. */
  #acknowledged = 0;
  readonly #early = new Set<number>();

  #reads = 0;
  #updates = 0;
  #scans = 0;
  #missing = 0;
  #wrong = 0;

  constructor(store: YcsbStore, plan: SessionPlan, { seed, lane }: SessionOptions) {
    const { records, pool, operations, distribution, expectedInserts, draws = DRAWS } = plan;
    const stream = new Stream(seed, lane);
    this.#store = store;
    this.#pool = pool;
    this.#records = records;
    this.#lane = lane;
    this.#kindAt = Uint8Array.from(operations, ([kind]) => kind);
    this.#places = Uint8Array.from({ length: draws }, () => drawPlace(operations, stream));
    this.#requests = drawItems(requests(distribution, records, expectedInserts), stream, draws);
    this.#isLatest = distribution === "latest";
    this.#keys = this.#isLatest ? plan.keys() : [];
    this.#requestKeys = this.#isLatest
      ? []
      : Array.from(this.#requests, (number) => (number < records ? keyOf(number) : ""));
    this.#values = Uint16Array.from({ length: draws }, () => stream.below(POOL_SIZE));
    this.#mask = draws - 1;
    for (let insert = 0; insert < expectedInserts; insert++) this.#keyOfInsert(insert);
  }

  next(): Result<Outcome> {
    const at = this.#cursor;
    this.#cursor = (at + 1) & this.#mask;
    const place = this.#places[at];
    this.drawn = place;
    const value = this.#values[at];
    switch (this.#kindAt[place]) {
      case READ: {
        const key = this.#nextKey();
        const row = this.#store.read(key);
        return row instanceof Promise
          ? row.then((it) => this.#read(key, it))
          : this.#read(key, row);
      }
      case UPDATE: {
        const key = this.#nextKey();
        const field = fieldNames[value % FIELD_COUNT];
        const found = this.#store.update(key, field, this.#pool[value]);
        return found instanceof Promise ? found.then(this.#updated) : this.#updated(found);
      }
      case INSERT: {
        const insert = this.#begun++;
        const first = value - (value % FIELD_COUNT);
        const row = pooledRow(this.#pool, first, this.#keyOfInsert(insert));
        const done = this.#store.insert(row);
        if (done instanceof Promise) return done.then(() => this.#inserted(insert));
        return this.#inserted(insert);
      }
      case SCAN: {
        const key = this.#nextKey();
        const count = 1 + (value % MAX_SCAN_LENGTH);
        const rows = this.#store.scan(key, count);
        if (rows instanceof Promise) return rows.then((them) => this.#scanned(key, count, them));
        return this.#scanned(key, count, rows);
      }
      default: {
        const key = this.#nextKey();
        const field = fieldNames[value % FIELD_COUNT];
        const row = this.#store.readModifyWrite(key, field, this.#pool[value]);
        if (row instanceof Promise) return row.then((it) => this.#modified(key, it));
        return this.#modified(key, row);
      }
    }
  }

  tally(): Tally {
    return {
      reads: this.#reads,
      updates: this.#updates,
      inserts: this.#inserts,
      scans: this.#scans,
      missing: this.#missing,
      wrong: this.#wrong,
      [`${LANE_INSERTS}${this.#lane}`]: this.#inserts,
    };
  }

  /** The key of the next record to ask for. One that is not inserted yet is passed over. */
  #nextKey(): string {
    for (;;) {
      const at = this.#requestCursor;
      this.#requestCursor = (at + 1) & this.#mask;
      if (!this.#isLatest) {
        const key = this.#requestKeys[at];
        if (key !== "") return key;
      }
      const drawn = this.#requests[at];
      const number = this.#isLatest ? drawn + this.#acknowledged : drawn;
      if (number < this.#records) return this.#keys[number];
      const insert = number - this.#records;
      if (insert < this.#acknowledged) return this.#insertedKeys[insert];
    }
  }

  #keyOfInsert(insert: number): string {
    if (insert === this.#insertedKeys.length) {
      this.#insertedKeys.push(insertedKey(this.#records, this.#lane, insert));
    }
    return this.#insertedKeys[insert];
  }

  #read(key: string, row: YcsbRow | undefined): Outcome {
    this.#reads++;
    this.#verify(key, row);
    return DONE;
  }

  readonly #updated = (found: boolean): Outcome => {
    if (found) this.#updates++;
    else this.#missing++;
    return DONE;
  };

  #modified(key: string, row: YcsbRow | undefined): Outcome {
    if (row !== undefined) this.#updates++;
    this.#verify(key, row);
    return DONE;
  }

  #inserted(insert: number): Outcome {
    this.#inserts++;
    if (insert !== this.#acknowledged) {
      this.#early.add(insert);
      return DONE;
    }
    this.#acknowledged++;
    while (this.#early.size > 0 && this.#early.delete(this.#acknowledged)) this.#acknowledged++;
    return DONE;
  }

  /** The row that a scan begins at exists, so it is the first that is found. */
  #scanned(key: string, count: number, rows: readonly YcsbRow[]): Outcome {
    this.#scans++;
    this.#verify(key, rows[0]);
    const last = rows[rows.length - 1];
    if (rows.length > count || (rows.length > 0 && last.key < key)) this.#wrong++;
    return DONE;
  }

  #verify(key: string, row: YcsbRow | undefined): void {
    if (row === undefined) this.#missing++;
    else if (row.key !== key) this.#wrong++;
  }
}

/**
 * Numbers of records to ask for; beyond those of the beginning are a lane's own inserts. YCSB's
 * zipfian one spreads over those that are still to come as well, so that the same records stay
 * popular while others are inserted (CoreWorkload.init: "2 is fudge factor").
 */
function requests(
  distribution: RequestDistribution,
  records: number,
  expectedInserts: number,
): Distribution {
  if (distribution === "uniform") return new Uniform(records);
  if (distribution === "latest") return new Latest(records);
  return new ScrambledZipfian(records + expectedInserts);
}

function drawPlace(operations: SessionPlan["operations"], stream: Stream): number {
  let rest = stream.below(100);
  let place = 0;
  while (rest >= operations[place][1]) rest -= operations[place++][1];
  return place;
}
