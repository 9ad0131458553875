/** Insertions in place: what else a transaction does to the leaf, and how large it may get. */

import { describe, expect, test } from "vitest";
import { ENTRY_WORDS, SPLICED, WRITE } from "../../src/engine/access-set.ts";
import { PIECE_WORDS } from "../../src/engine/splices.ts";
import type { Transaction } from "../../src/engine/transaction.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { createTree, type EngineTree, shapeOfTree } from "../helpers/btree.ts";
import { EngineStore, SMALL } from "../helpers/engine-store.ts";
import { run } from "../helpers/store-engine.ts";

interface Row {
  readonly id: number | string;
  readonly value: number;
}
type Tree = EngineTree<Row, number | string>;

const numbered = table("n", { id: u32(), value: u32() }, { key: "id", ordered: true });
const named = table("s", { id: str(60), value: u32() }, { key: "id", ordered: true });

/** One insertion for every so many rows: mostly one in a leaf. */
const COUNT = 20_000;
const EACH = 120;
/** A prime. */
const STRIDE = 7919;

/** Redo words of what is changed in place. */
function pieceWordsOf({ set }: Transaction): number {
  let sum = 0;
  for (let entry = 0; entry < set.end; entry += ENTRY_WORDS) {
    if ((set.kindOf(entry) & SPLICED) !== 0) sum += set.words[entry + PIECE_WORDS];
  }
  return sum;
}

function writesOf({ set }: Transaction, kind: number): number {
  let count = 0;
  for (let entry = 0; entry < set.end; entry += ENTRY_WORDS) {
    if ((set.kindOf(entry) & kind) === kind) count++;
  }
  return count;
}

describe.each([
  ["keys of one size", numbered as unknown as Table<Row, number | string>, (n: number) => n],
  [
    "keys of many sizes",
    named as unknown as Table<Row, number | string>,
    (n: number) => `${String(n).padStart(5, "0")}-${"x".repeat(n % 30)}`,
  ],
])("a tree with %s", (_, rows, keyOf) => {
  const rowOf = (n: number): Row => ({ id: keyOf(n), value: n });

  function withTree(isLogged: boolean, count: number, work: (tree: Tree) => void): void {
    const store = new EngineStore(SMALL, "mapped files", isLogged);
    try {
      const tree = createTree(store.open(), rows);
      for (let n = 0; n < count; n += 50) {
        run(tree.executor, tree.tx, () => {
          // Not in order, which would leave full leaves.
          for (let i = n; i < n + 50; i++) {
            tree.store.insert(tree.tx, rowOf(10 * ((i * STRIDE) % count)));
          }
        });
      }
      work(tree);
      expect(shapeOfTree(tree).broken).toEqual([]);
    } finally {
      store.dispose();
    }
  }

  test("one insertion into a leaf copies nothing; what comes after it sees it", () => {
    for (const isLogged of [false, true]) {
      withTree(isLogged, 50, ({ executor, tx, store }) => {
        run(executor, tx, () => {
          store.insert(tx, rowOf(5));
          expect(writesOf(tx, WRITE)).toBe(1);
          expect(writesOf(tx, SPLICED)).toBe(1);
          expect(store.insert(tx, rowOf(5))).toBe(false);
          expect(store.read(tx, keyOf(5))).toEqual(rowOf(5));
          expect(writesOf(tx, SPLICED)).toBe(0);
          store.insert(tx, rowOf(7));
          store.update(tx, keyOf(5), { value: 55 });
          store.remove(tx, keyOf(10));
        });
        expect(store.get(keyOf(5))?.value).toBe(55);
        expect(store.get(keyOf(7))).toEqual(rowOf(7));
        expect(store.get(keyOf(10))).toBeUndefined();
        expect(store.get(keyOf(20))).toEqual(rowOf(20));
      });
    }
  });

  test("insertions into so many leaves that the record outgrows the journal", () => {
    withTree(false, COUNT, ({ executor, tx, store }) => {
      run(executor, tx, () => {
        for (let i = 0; i < COUNT; i += EACH) store.insert(tx, rowOf(10 * i + 1));
        expect(4 * pieceWordsOf(tx)).toBeGreaterThan(SMALL.journalBytes);
      });
      for (let i = 0; i < COUNT; i += EACH) {
        expect(store.get(keyOf(10 * i + 1))).toEqual(rowOf(10 * i + 1));
        expect(store.get(keyOf(10 * i))).toEqual(rowOf(10 * i));
      }
    });
  });
});
