/**
 * A step of a scan at a node (protocols/phases/scan.ts). The node has one table for all rows that it keeps,
 * as a primary or as a backup: a step walks over them and gives those that it is the primary of. It
 * ends when there are enough rows, or when it has looked at so many, or sent so many bytes, that
 * others must have their turn; its place says where the next one goes on:
 *
 *   ordered rows, ordered index   the key, in its ordered form, that the rest begins at, or, in
 *                                 reverse, ends before: a bound of the range
 *   hashed rows                   a shard, and how many of its rows are done. Rows of a shard that has
 *                                 changed may have other positions, but then the scan cannot commit
 *   hash index                    how many of the positions, which go down to 0, are still to come
 */

import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Writer } from "../../fabric/wire.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_SHARD_DEPTH, SCAN_STEP_BYTES, SCAN_STEP_ROWS } from "../../runtime/limits.ts";
import type {
  Cursor,
  KeyRange,
  OrderedCodec,
  PlacedCursor,
  RowCodec,
  Store,
} from "../../stores/store.ts";
import { keyIn, withoutRow } from "../indexes/entries.ts";
import { structuresOf } from "../indexes/forms.ts";
import { positionName, type RowValues, type Structure } from "../indexes/structure.ts";
import type { TableStore } from "../indexes/table-store.ts";
import type { Partitioner } from "../partitions.ts";
import type { ServedTable } from "./contract.ts";
import { encodeWords, type ScanStep } from "./requests.ts";
import { type MetRow, metRowCodec, NOT_COPIED, RowCopies } from "./scan-rows.ts";

const EVERYTHING: KeyRange = { from: undefined, to: undefined };
const NOWHERE = new Int32Array(0);

/** The hidden tables of an index, open. */
interface OpenIndex {
  readonly structures: readonly Structure<RowValues, unknown>[];
  readonly stores: readonly Store<RowValues, unknown>[];
}

export class TableScans {
  readonly #executor: Executor;
  readonly #served: ServedTable & { readonly id: number; readonly table: TableStore };
  readonly #codec: RowCodec<RowValues, unknown>;
  readonly #partitioner: Partitioner;
  readonly #copies = new RowCopies();
  readonly #rows: Store<MetRow, unknown>;
  readonly #indexes = new Map<string, OpenIndex>();
  readonly #met: MetRow[] = [];
  readonly #entries: RowValues[] = [];

  constructor(
    executor: Executor,
    served: ServedTable & { readonly id: number; readonly table: TableStore },
    partitioner: Partitioner,
  ) {
    const { structure, root } = served.table;
    this.#executor = executor;
    this.#served = served;
    this.#codec = structure.codec;
    this.#partitioner = partitioner;
    const codec = metRowCodec(structure, this.#copies);
    this.#rows = structure.openWith(executor, root, codec);
  }

  /** Appends what the reply says from its rows on. */
  step(
    tx: Transaction,
    step: ScanStep,
    out: Writer,
    isPrimary: (partition: number) => boolean,
  ): void {
    const found = new StepResult(step, out, (key) =>
      isPrimary(this.#partitioner.ofRow(key, this.#codec.stageKeyOf(key))),
    );
    const { ordered } = this.#served.table.structure;
    if (step.index !== undefined) this.#index(tx, step, step.index, found);
    else if (ordered !== undefined) this.#ordered(tx, step, ordered, found);
    else this.#hashed(tx, step, found);
    found.end();
  }

  #ordered(
    tx: Transaction,
    step: ScanStep,
    codec: OrderedCodec<RowValues, unknown>,
    found: StepResult,
  ): void {
    const cursor = this.#rows.cursor(rangeFrom(step), step.reverse);
    const met = this.#met;
    let last: RowValues | undefined;
    let taken = 0;
    met.length = 0;
    while (taken === met.length && !found.isEnough) {
      this.#copies.begin(0, !step.counts);
      if (!cursor.next(tx, met, found.wanted)) {
        found.isDone = true;
        break;
      }
      taken = found.take(met, 0, this.#copies);
      if (taken > 0) last = met[taken - 1].key;
    }
    if (last !== undefined) found.place = orderedPlace(codec, last, step.reverse);
  }

  #hashed(tx: Transaction, step: ScanStep, found: StepResult): void {
    const walk = this.#rows.cursor(EVERYTHING, false) as PlacedCursor<MetRow>;
    let skip = 0;
    if (step.place.length > 0) [walk.place, skip] = hashedPlace(step.place);
    const met = this.#met;
    while (!found.isEnough) {
      const shard = walk.place;
      this.#copies.begin(skip, !step.counts);
      if (!walk.next(tx, met, Number.POSITIVE_INFINITY)) {
        found.isDone = true;
        return;
      }
      const taken = found.take(met, skip, this.#copies);
      const isAllTaken = taken >= met.length;
      found.place = isAllTaken ? Int32Array.of(walk.place, 0) : Int32Array.of(shard, taken);
      if (!isAllTaken) return;
      skip = 0;
    }
  }

  #index(tx: Transaction, step: ScanStep, name: string, found: StepResult): void {
    const index = this.#indexOf(name);
    const { ordered } = index.structures[0];
    if (ordered === undefined) this.#postings(tx, step, index, found);
    else this.#entriesOf(tx, step, index.stores[0], ordered, found);
  }

  #entriesOf(
    tx: Transaction,
    step: ScanStep,
    store: Store<RowValues, unknown>,
    codec: OrderedCodec<RowValues, unknown>,
    found: StepResult,
  ): void {
    const cursor: Cursor<RowValues> = store.cursor(rangeFrom(step), step.reverse);
    while (!found.isEnough) {
      if (!cursor.next(tx, this.#entries, found.wanted)) {
        found.isDone = true;
        return;
      }
      let last: RowValues | undefined;
      for (const entry of this.#entries) {
        if (found.isFull) break;
        this.#lookUp(tx, entry, found);
        last = entry;
      }
      if (last !== undefined) found.place = orderedPlace(codec, last, step.reverse);
    }
  }

  #postings(tx: Transaction, step: ScanStep, { stores }: OpenIndex, found: StepResult): void {
    const { table } = this.#served.table;
    const [counts, entries] = stores;
    const position = positionName(table);
    const count = (counts.read(tx, step.equal)?.[position] as number | undefined) ?? 0;
    const values = Array.isArray(step.equal) ? step.equal : [step.equal];
    let left = step.place.length > 0 ? Math.min(step.place[0], count) : count;
    for (; left > 0 && !found.isEnough && !found.isFull; left--) {
      const entry = entries.read(tx, [...values, left - 1]) ?? withoutRow(tx);
      this.#lookUp(tx, entry, found);
    }
    found.isDone = left <= 0;
    found.place = Int32Array.of(left);
  }

  /** The row that an entry leads to, if this node is its primary. */
  #lookUp(tx: Transaction, entry: RowValues, found: StepResult): void {
    const { key, singleKey } = this.#served.table.table;
    if (!found.passes(entry)) return;
    if (!found.counts && !this.#served.read(tx, keyIn(entry, key, singleKey), found.out)) {
      withoutRow(tx);
    }
    found.rows++;
  }

  #indexOf(name: string): OpenIndex {
    const known = this.#indexes.get(name);
    if (known !== undefined) return known;
    const { table } = this.#served;
    const stored = table.storedIndex(name);
    const structures = structuresOf(table.table, stored);
    const stores = structures.map((each, i) => each.open(this.#executor, stored.roots[i]));
    const index = { structures, stores };
    this.#indexes.set(name, index);
    return index;
  }
}

/** What a step has found, and whether that is enough. */
class StepResult {
  readonly out: Writer;
  readonly counts: boolean;
  rows = 0;
  isDone = false;
  place: Int32Array;
  readonly #most: number;
  readonly #isOurs: (key: RowValues) => boolean;
  readonly #start: number;
  #looked = 0;

  constructor(step: ScanStep, out: Writer, isOurs: (key: RowValues) => boolean) {
    this.out = out;
    this.counts = step.counts;
    this.place = step.place;
    this.#most = step.counts ? SCAN_STEP_ROWS : step.most;
    this.#isOurs = isOurs;
    this.#start = out.at;
    out.word(0);
    out.word(0);
  }

  /** How many rows to ask a cursor for. */
  get wanted(): number {
    return Math.max(1, Math.min(this.#most - this.rows, SCAN_STEP_ROWS - this.#looked));
  }

  get isEnough(): boolean {
    return this.#looked >= SCAN_STEP_ROWS || this.isFull;
  }

  /** Nothing that was not looked at yet may be added. */
  get isFull(): boolean {
    return this.rows >= this.#most || (this.out.at - this.#start) * 4 >= SCAN_STEP_BYTES;
  }

  /** Counts a row as looked at, and says whether it is to be given. */
  passes(key: RowValues): boolean {
    this.#looked++;
    return this.#isOurs(key);
  }

  /**
   * Takes rows over, from one of them on, and says where it ended: at one that is too much, or that
   * could not be copied. The next step begins with it.
   */
  take(met: readonly MetRow[], from: number, { copies }: RowCopies): number {
    for (let i = from; i < met.length; i++) {
      const { key, at, words } = met[i];
      if (this.isFull || (at === NOT_COPIED && !this.counts)) return i;
      if (!this.passes(key)) continue;
      this.rows++;
      if (this.counts) continue;
      this.out.word(words);
      this.out.word(0);
      this.out.words(copies.views.i32, at, words);
    }
    return Math.max(from, met.length);
  }

  end(): void {
    this.out.views.i32[this.#start] = this.rows;
    this.out.word(this.isDone ? 1 : 0);
    encodeWords(this.out, this.isDone ? NOWHERE : this.place);
  }
}

/** What is left of the range. */
function rangeFrom({ range, reverse, place }: ScanStep): KeyRange {
  if (place.length === 0) return range;
  return reverse ? { from: range.from, to: place } : { from: place, to: range.to };
}

/** Right behind a key: one word more, 0, is the least key that is greater. In reverse, before it. */
function orderedPlace(
  codec: OrderedCodec<RowValues, unknown>,
  key: RowValues,
  reverse: boolean,
): Int32Array {
  const words = codec.stageOrderedOf(key);
  const place = new Int32Array(reverse ? words : words + 1);
  place.set(codec.ordered.subarray(0, words));
  return place;
}

function hashedPlace(place: Int32Array): [number, number] {
  const [shard, skip] = place;
  if (place.length !== 2 || shard < 0 || shard > 2 ** MAX_SHARD_DEPTH || skip < 0) {
    throw new SituError("SITU_PROTOCOL", "a scan of a hashed table goes on nowhere");
  }
  return [shard, skip];
}
