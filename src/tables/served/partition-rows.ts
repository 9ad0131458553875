/**
 * The rows of some partitions, found by a walk over the table in pieces. A node has one table for the rows of all
 * its partitions, so a walk looks at each key and passes over those of other partitions: one walk serves
 * all partitions that are wanted at a time (docs/decisions/0045).
 *
 * The pieces belong to different transactions. A row that is there from the first piece to the last is met,
 * whatever else comes and goes and however the table grows; one that is moved may be met twice. A place is
 * words that mean something to this table of this node only:
 *
 *   ordered rows   the key, in its ordered form, that the rest begins at
 *   hashed rows    a shard; and inside of it, where its rows are more than one piece, two hashes: those of the
 *                  rows up to which it is done. Rows lie in a shard in no order that lasts, so they are given
 *                  in the order of these.
 */

import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { SituError } from "../../runtime/errors.ts";
import { COPY_STEP_KEYS, MAX_SHARD_DEPTH } from "../../runtime/limits.ts";
import type { OrderedCodec, RowCodec, Store } from "../../stores/store.ts";
import { codecOf } from "../codec/codec.ts";
import { layoutOf } from "../codec/layout.ts";
import { keyIn } from "../indexes/entries.ts";
import type { RowValues, Structure } from "../indexes/structure.ts";
import type { Partitioner } from "../partitions.ts";
import { rawCodec } from "./raw-codec.ts";

/** A key of a partition that is wanted. */
export interface FoundKey {
  readonly partition: number;
  readonly key: unknown;
  /** Right behind it. Keys that share a place come one after the other. */
  readonly place: Int32Array;
}

/** How far a walk is. */
export interface Walked {
  readonly place: Int32Array;
  readonly isDone: boolean;
}

/** Where a walk begins. */
export const BEGINNING = new Int32Array(0);

/** Another hash of a key than the one that places it: any seed would do. */
const SECOND_SEED = 0x5bd1e995;
const END = 2 ** MAX_SHARD_DEPTH;

/** What a hashed table has beside a cursor (stores/shards/sharded-store.ts). */
interface Stepping {
  step(tx: Transaction, place: number, rows: RowValues[]): number;
}

interface HashedKey extends FoundKey {
  readonly hash: number;
  readonly second: number;
}

export class PartitionRows {
  readonly #partitioner: Partitioner;
  readonly #structure: Structure<RowValues, unknown>;
  readonly #codec: RowCodec<RowValues, unknown>;
  readonly #keys: Store<RowValues, unknown>;
  readonly #met: RowValues[] = [];

  constructor(
    executor: Executor,
    { structure, root }: { structure: Structure<RowValues, unknown>; root: number },
    partitioner: Partitioner,
  ) {
    const { table, codec } = structure;
    const fields = Object.fromEntries(table.key.map((name) => [name, table.fields[name]]));
    const keys = codecOf({ ...table, fields }, layoutOf(table));
    this.#partitioner = partitioner;
    this.#structure = structure;
    this.#codec = codec;
    this.#keys = structure.openWith(
      executor,
      root as never,
      rawCodec(codec as RowCodec<never, unknown>, {
        take: (views, at, words) => keys.decode(views, at, words) as RowValues,
      }),
    );
  }

  /** Looks at some keys from a place on, and appends those that are wanted. */
  walk(
    tx: Transaction,
    place: Int32Array,
    isWanted: (partition: number) => boolean,
    found: FoundKey[],
  ): Walked {
    const { ordered } = this.#structure;
    if (ordered !== undefined) return this.#ordered(tx, ordered, place, isWanted, found);
    return this.#hashed(tx, place, isWanted, found);
  }

  #ordered(
    tx: Transaction,
    codec: OrderedCodec<RowValues, unknown>,
    place: Int32Array,
    isWanted: (partition: number) => boolean,
    found: FoundKey[],
  ): Walked {
    const range = { from: place.length === 0 ? undefined : place, to: undefined };
    const met = this.#met;
    if (!this.#keys.cursor(range, false).next(tx, met, COPY_STEP_KEYS)) {
      return { place: BEGINNING, isDone: true };
    }
    for (const row of met) {
      const partition = this.#partitioner.ofRow(row, this.#codec.stageKeyOf(row));
      if (!isWanted(partition)) continue;
      found.push({ partition, key: this.#keyIn(row), place: behind(codec, row) });
    }
    return { place: behind(codec, met[met.length - 1]), isDone: false };
  }

  #hashed(
    tx: Transaction,
    place: Int32Array,
    isWanted: (partition: number) => boolean,
    found: FoundKey[],
  ): Walked {
    const store = this.#keys as unknown as Stepping;
    const met = this.#met;
    let [shard, first, second] = hashedPlace(place);
    for (let looked = 0; looked < COPY_STEP_KEYS; looked += met.length + 1) {
      const next = store.step(tx, shard, met);
      found.push(...this.#wantedOf(shard, first, second, isWanted));
      if (next === 0) return { place: BEGINNING, isDone: true };
      shard = next;
      first = NONE;
      second = NONE;
    }
    return { place: Int32Array.of(shard), isDone: false };
  }

  /** Those of the shard that was read, in the order of their hashes, behind the ones given. */
  #wantedOf(
    shard: number,
    first: number,
    second: number,
    isWanted: (partition: number) => boolean,
  ): HashedKey[] {
    const wanted: HashedKey[] = [];
    for (const row of this.#met) {
      const hash = this.#codec.stageKeyOf(row);
      const partition = this.#partitioner.ofRow(row, hash);
      if (!isWanted(partition)) continue;
      const other = this.#codec.stageKeyOf(row, SECOND_SEED);
      if (hash < first || (hash === first && other <= second)) continue;
      const place = Int32Array.of(shard, hash, other);
      wanted.push({ partition, key: this.#keyIn(row), hash, second: other, place });
    }
    return wanted.sort((a, b) => a.hash - b.hash || a.second - b.second);
  }

  #keyIn(row: RowValues): unknown {
    const { key, singleKey } = this.#structure.table;
    return keyIn(row, key, singleKey);
  }
}

/** Below all hashes. */
const NONE = Number.NEGATIVE_INFINITY;

/** Right behind a key: one word more, 0, is the least key that is greater. */
function behind(codec: OrderedCodec<RowValues, unknown>, key: RowValues): Int32Array {
  const words = codec.stageOrderedOf(key);
  const place = new Int32Array(words + 1);
  place.set(codec.ordered.subarray(0, words));
  return place;
}

function hashedPlace(place: Int32Array): [number, number, number] {
  const [shard = 0, first = NONE, second = NONE] = place;
  if (place.length === 2 || place.length > 3 || shard < 0 || shard >= END) {
    throw new SituError("SITU_PROTOCOL", "a walk over a hashed table goes on nowhere");
  }
  return [shard, first, second];
}
