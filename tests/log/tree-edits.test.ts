/**
 * Trees that are recovered from what the log says about changes in their nodes: after random insertions, removals and
 * updates, several in one transaction, the nodes are word for word what they were.
 */

import { describe, expect, test } from "vitest";
import { HEAD, TAIL } from "../../src/engine/slot.ts";
import type { Transaction } from "../../src/engine/transaction.ts";
import { addressOf } from "../../src/memory/address.ts";
import { BlockTable } from "../../src/memory/blocks.ts";
import { HEADER_WORDS } from "../../src/memory/object.ts";
import { CELL_BYTES } from "../../src/memory/size-classes.ts";
import { LEAF_BYTES } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { createTree, openTree, shapeOfTree } from "../helpers/btree.ts";
import { differences, NARROW, RecoveryStore } from "../helpers/recovery-store.ts";
import { forSeeds } from "../helpers/seed.ts";
import { run } from "../helpers/store-engine.ts";

const SEEDS = 6;
const MIB = 2 ** 20;
const KEYS = 900;
const TRANSACTIONS = 250;

interface Row {
  readonly id: number | string;
  readonly value: number;
}

const numbered = table("numbered", { id: u32(), value: u32() }, { key: "id", ordered: true });
const named = table("named", { id: str(60), value: u32() }, { key: "id", ordered: true });

describe.each([
  ["keys of one size", numbered as unknown as Table<Row, number | string>, (n: number) => n],
  [
    "keys of many sizes",
    named as unknown as Table<Row, number | string>,
    (n: number) => `${n}-${"x".repeat((n * 7) % 40)}`,
  ],
])("a tree with %s", (_, rows, keyOf) => {
  function problemsOf(seed: number): string[] {
    const random = new Random(seed);
    const store = new RecoveryStore({ ...NARROW, regionBytes: 4 * MIB });
    try {
      const [one, logs] = [store.store.open(), store.store.open()];
      const tree = createTree(one, rows);
      const model = new Map<number, number>();
      const change = (tx: Transaction): void => {
        const n = random.below(KEYS);
        const value = random.next() >>> 0;
        const [id, how] = [keyOf(n), random.below(5)];
        if (how < 2) {
          tree.store.remove(tx, id);
          model.delete(n);
        } else if (how < 3) {
          if (tree.store.update(tx, id, { value })) model.set(n, value);
        } else {
          tree.store.put(tx, { id, value });
          model.set(n, value);
        }
      };
      let checkpoint: string | undefined;
      for (let i = 0; i < TRANSACTIONS; i++) {
        // Some fill leaves and empty them again, and close gaps on the way.
        const changes = 1 + random.below(random.below(10) === 0 ? 60 : 4);
        run(one, tree.tx, () => {
          for (let each = 0; each < changes; each++) change(tree.tx);
        });
        tree.store.maintain();
        if (random.below(8) === 0) store.flush(logs);
        if (random.below(100) === 0) checkpoint = store.checkpoint(logs, random.below(2) === 0);
      }
      store.flush(logs);
      const table = new BlockTable(store.store.memory);
      // Only nodes: rows have words behind them that are nobody's.
      const nodeWords = (regionId: number, word: number): number => {
        const bytes = CELL_BYTES[table.classOf(table.blockOf(addressOf(regionId, word)))];
        return bytes < LEAF_BYTES ? 0 : Math.floor(bytes / 8) * 2 - HEADER_WORDS;
      };
      const found: string[] = [];
      for (const from of [undefined, checkpoint]) {
        const recovered = store.recover(from);
        try {
          found.push(...differences(store.store.memory, recovered.memory, nodeWords));
          const again = openTree(recovered.open(), rows, tree.root);
          const shape = shapeOfTree(again);
          found.push(...shape.broken);
          expect(shape.rows, `seed ${seed}`).toBe(model.size);
          for (const [n, value] of model) {
            if (again.store.get(keyOf(n))?.value !== value) found.push(`row ${n} is another`);
          }
        } finally {
          recovered.dispose();
        }
      }
      return found;
    } finally {
      store.dispose();
    }
  }

  test("is recovered word for word", () => {
    forSeeds(SEEDS, 1, (seed) => {
      expect(problemsOf(seed).slice(0, 5), `seed ${seed}`).toEqual([]);
    });
  });

  test("takes as much of the journal as of the log: redo words are written over", () => {
    const store = new RecoveryStore({ ...NARROW, regionBytes: 4 * MIB });
    try {
      const [one, logs] = [store.store.open(), store.store.open()];
      const tree = createTree(one, rows);
      const insert = (n: number) =>
        run(one, tree.tx, () => tree.store.insert(tree.tx, { id: keyOf(n), value: n }));
      for (let n = 1; n < 40; n++) insert(2 * n);
      store.flush(logs);
      const { control } = store.store.memory;
      const at = control.slotAt(one.slot);
      insert(1);
      insert(3);
      const taken = control.i32[at + HEAD] - control.i32[at + TAIL];
      store.flush(logs);
      expect(taken).toBe(store.batches[store.batches.length - 1].length);
      expect(taken).toBeLessThan(160);
    } finally {
      store.dispose();
    }
  });
});

test("of a leaf that is split in the middle, the journal gets the new one, and little of the old", () => {
  const store = new RecoveryStore({ ...NARROW, regionBytes: 4 * MIB });
  try {
    const [one, logs] = [store.store.open(), store.store.open()];
    const tree = createTree(one, numbered);
    const insert = (id: number) =>
      run(one, tree.tx, () => tree.store.insert(tree.tx, { id, value: id }));
    const { control } = store.store.memory;
    const at = control.slotAt(one.slot);
    let taken = 0;
    let id = 0;
    for (; shapeOfTree(tree).leaves === 1; id = (id + 7919) % 10_000) {
      store.flush(logs);
      insert(id);
      taken = control.i32[at + HEAD] - control.i32[at + TAIL];
    }
    expect(taken).toBeGreaterThan(LEAF_BYTES / 4 - 16);
    expect(taken).toBeLessThan(LEAF_BYTES / 4 + 100);
    expect(shapeOfTree(tree).broken).toEqual([]);
  } finally {
    store.dispose();
  }
});
