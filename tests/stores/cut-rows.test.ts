/** Rows of several pieces, replaced while they are read: never reported absent. */

import "../helpers/engine-all-atomics.ts";

import { expect, test } from "vitest";
import { Transaction } from "../../src/engine/transaction.ts";
import { str, table, u32 } from "../../src/index.ts";
import { Hopscotch } from "../../src/stores/hopscotch/hopscotch.ts";
import { codecOf } from "../../src/tables/codec/codec.ts";
import { hookAtomics } from "../helpers/engine-atomics.ts";
import { MIB, temporaryStores } from "../helpers/store.ts";
import { createTable, openExecutor, run } from "../helpers/store-engine.ts";

const stores = temporaryStores();
const Big = table("big", { id: u32(), a: str(), b: str(), c: str() }, { key: "id" });

test("a row in pieces that is replaced twice during a lookup is found", async () => {
  const path = stores.folder();
  const writer = await openExecutor(stores, path, 256 * MIB);
  const reader = await openExecutor(stores, path, 256 * MIB);
  const { store, tx, root } = createTable(writer, codecOf(Big));
  const view = new Hopscotch(reader, codecOf(Big), root);
  const readerTx = new Transaction(reader);
  let puts = 0;
  const put = (): void => {
    const letter = "abcdefgh"[puts++ % 8];
    const half = letter.repeat(900_000);
    run(writer, tx, () => store.put(tx, { id: 1, a: half, b: half, c: letter }));
  };
  put();
  for (let first = 1; first < 24; first += 2) {
    for (let second = first; second < 30; second += 3) {
      let loads = 0;
      const off = hookAtomics({
        afterLoad: () => {
          loads++;
          if (loads === first || loads === second) put();
        },
      });
      try {
        const row = run(reader, readerTx, () => view.read(readerTx, 1));
        expect(row?.a.length, `replaced at loads ${first} and ${second}`).toBe(900_000);
        expect(new Set([row?.a[0], row?.b[899_999], row?.c]).size).toBe(1);
      } finally {
        off();
      }
    }
  }
});
