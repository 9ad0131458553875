/**
 * Rows that are locked where they lie, to be overwritten there later (FaSST §5, read and lock): in
 * both tables that hash, wherever a row can lie.
 */

import { describe, expect, it } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { isSignal } from "../../src/engine/signals.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import type { RowCodec, RowPlace } from "../../src/stores/store.ts";
import { temporaryStores } from "../helpers/store.ts";
import { BUCKETS_KIND } from "../helpers/store-buckets.ts";
import { openExecutor, type Rehash, rehashed, run } from "../helpers/store-engine.ts";
import { HOPSCOTCH_KIND, Inline, type ModelTable } from "../helpers/store-model.ts";
import { ROBINHOOD_KIND } from "../helpers/store-robinhood.ts";

interface Row {
  id: number;
  value: number;
}

const stores = temporaryStores();
const oneHome: Rehash = (hash) => hash & 0x03ffffff;
const KEYS = Array.from({ length: 30 }, (_, key) => key);
const NEVER_SPLIT = 1_000;

class Under {
  readonly executor: Executor;
  readonly table: ModelTable<Row>;
  readonly codec: RowCodec<Row, number>;

  constructor(executor: Executor, table: ModelTable<Row>, codec: RowCodec<Row, number>) {
    this.executor = executor;
    this.table = table;
    this.codec = codec;
  }

  begin(): { tx: Transaction; end(): void } {
    const { executor } = this;
    const tx = new Transaction(executor);
    const entered = executor.enter();
    return {
      tx,
      end() {
        tx.clear();
        executor.leave(entered);
      },
    };
  }

  place(tx: Transaction, key: number): RowPlace {
    const place = this.table.store.placeToWrite!(tx, key);
    if (place === undefined) throw new Error(`row ${key} is not there`);
    return place;
  }

  overwrite({ set }: Transaction, { entry, at }: RowPlace, row: Row): void {
    const words = this.codec.encode(row);
    const to = set.bufferOf(entry) + at;
    this.codec.stageKey(row.id);
    expect(this.codec.matches(set.arena, to)).toBe(true);
    set.arena.i32.set(this.codec.scratch.i32.subarray(0, words), to);
    set.markDirty(entry, at, at + words);
  }

  rows(): (number | undefined)[] {
    return KEYS.map((key) => this.table.store.get(key)?.value);
  }
}

const KINDS = {
  hopscotch: HOPSCOTCH_KIND,
  buckets: BUCKETS_KIND,
  robinhood: ROBINHOOD_KIND,
};

describe.each(Object.entries(KINDS))("%s", (_, kind) => {
  /** Thirty rows of one home bucket: in it, in its neighbour, in its chain. */
  async function table(): Promise<{ mine: Under; theirs: Under }> {
    const folder = stores.folder();
    const executor = await openExecutor(stores, folder);
    const other = await openExecutor(stores, folder);
    const codec = rehashed(Inline, oneHome) as RowCodec<Row, number>;
    const made = kind.create<Row>(executor, codec, NEVER_SPLIT);
    for (const id of KEYS) run(executor, made.tx, () => made.store.put(made.tx, { id, value: id }));
    expect(kind.shape(made as never).blocks).toBeGreaterThan(0);
    executor.isPatient = false;
    other.isPatient = false;
    const reopened = kind.reopen<Row>(made, other, codec, NEVER_SPLIT);
    return {
      mine: new Under(executor, made, codec),
      theirs: new Under(other, reopened, codec),
    };
  }

  it("a row is overwritten in its place, in the bucket, beside it and in its chain", async () => {
    const { mine, theirs } = await table();
    const { committer } = mine.executor;
    for (const id of KEYS) {
      const { tx, end } = mine.begin();
      const place = mine.place(tx, id);
      expect(committer.prepare(tx)).toBe(true);
      // Nobody can read it now, nor have it; neither can anybody of the same executor.
      for (const under of [mine, theirs]) {
        const other = under.begin();
        expect(meets(() => under.table.store.read(other.tx, id))).toBe(true);
        other.end();
      }
      mine.overwrite(tx, place, { id, value: 1_000 + id });
      expect(committer.commitPrepared(tx)).toBe(true);
      end();
    }
    expect(theirs.rows()).toEqual(KEYS.map((id) => 1_000 + id));
    expect(kind.shape(mine.table as never).broken).toEqual([]);
  });

  it("several rows of one bucket, taken one after the other, some after the first was locked", async () => {
    const { mine, theirs } = await table();
    const { committer } = mine.executor;
    const { tx, end } = mine.begin();
    const places = new Map<number, RowPlace>();
    for (const ids of [[3], [4, 17], [29, 0], [3, 4]]) {
      for (const id of ids) places.set(id, mine.place(tx, id));
      expect(committer.prepare(tx)).toBe(true);
      for (const id of ids) expect(mine.table.store.read(tx, id)).toEqual({ id, value: id });
    }
    for (const [id, place] of places) mine.overwrite(tx, place, { id, value: 500 + id });
    expect(committer.commitPrepared(tx)).toBe(true);
    end();
    const expected = KEYS.map((id) => (places.has(id) ? 500 + id : id));
    expect(theirs.rows()).toEqual(expected);
  });

  it("what was locked and not overwritten is as it was, after a commit and after a release", async () => {
    const { mine, theirs } = await table();
    const { committer } = mine.executor;
    for (const isCommitted of [true, false]) {
      const { tx, end } = mine.begin();
      for (const id of [1, 12, 28]) mine.place(tx, id);
      expect(committer.prepare(tx)).toBe(true);
      if (isCommitted) expect(committer.commitPrepared(tx)).toBe(true);
      else committer.release(tx);
      end();
      expect(theirs.rows()).toEqual(KEYS);
    }
  });

  it("an absent row has no place, and what was read to know it is validated", async () => {
    const { mine, theirs } = await table();
    const { committer } = mine.executor;
    const { tx, end } = mine.begin();
    expect(mine.table.store.placeToWrite!(tx, 77)).toBeUndefined();
    expect(committer.prepare(tx)).toBe(true);
    const { table: other } = theirs;
    run(theirs.executor, other.tx, () => other.store.put(other.tx, { id: 77, value: 77 }));
    expect(committer.isPreparedValid(tx)).toBe(false);
    committer.release(tx);
    end();
  });

  it("two who want the same row: the second meets a lock, and has it after the first", async () => {
    const { mine, theirs } = await table();
    for (const id of [0, 9, 29]) {
      const first = mine.begin();
      const place = mine.place(first.tx, id);
      expect(mine.executor.committer.prepare(first.tx)).toBe(true);
      const second = theirs.begin();
      expect(
        meets(() => theirs.place(second.tx, id)) || !theirs.executor.committer.prepare(second.tx),
      ).toBe(true);
      second.end();
      mine.overwrite(first.tx, place, { id, value: 600 });
      expect(mine.executor.committer.commitPrepared(first.tx)).toBe(true);
      first.end();
      const third = theirs.begin();
      const again = theirs.place(third.tx, id);
      expect(theirs.executor.committer.prepare(third.tx)).toBe(true);
      theirs.overwrite(third.tx, again, { id, value: 601 });
      expect(theirs.executor.committer.commitPrepared(third.tx)).toBe(true);
      third.end();
      expect(mine.table.store.get(id)).toEqual({ id, value: 601 });
    }
  });

  it("one whose row changed between its read and its lock is refused", async () => {
    const { mine, theirs } = await table();
    const { table: other } = theirs;
    for (const id of [2, 14, 29]) {
      const { tx, end } = mine.begin();
      mine.place(tx, id);
      run(theirs.executor, other.tx, () => other.store.put(other.tx, { id, value: 9 }));
      expect(mine.executor.committer.prepare(tx)).toBe(false);
      end();
      expect(theirs.table.store.get(id)).toEqual({ id, value: 9 });
    }
  });

  it("rows that are written otherwise in the same transaction go with those that are locked", async () => {
    const { mine, theirs } = await table();
    const { committer } = mine.executor;
    const { store } = mine.table;
    const { tx, end } = mine.begin();
    for (const id of [5, 6, 25]) mine.place(tx, id);
    expect(committer.prepare(tx)).toBe(true);
    // To remove a row moves others: from here on places do not count, only lookups do.
    expect(store.remove(tx, 6)).toBe(true);
    store.put(tx, { id: 100, value: 100 });
    store.put(tx, { id: 5, value: 55 });
    store.put(tx, { id: 25, value: 255 });
    expect(committer.prepare(tx)).toBe(true);
    expect(committer.commitPrepared(tx)).toBe(true);
    end();
    const expected = KEYS.map((id) => (id === 6 ? undefined : id));
    expected[5] = 55;
    expected[25] = 255;
    expect(theirs.rows()).toEqual(expected);
    expect(theirs.table.store.get(100)).toEqual({ id: 100, value: 100 });
    expect(kind.shape(mine.table as never).broken).toEqual([]);
    expect(kind.shape(mine.table as never).pairs).toBe(30);
  });
});

/** Whether work meets somebody's lock. */
function meets(work: () => void): boolean {
  try {
    work();
    return false;
  } catch (error) {
    if (!isSignal(error)) throw error;
    return true;
  }
}
