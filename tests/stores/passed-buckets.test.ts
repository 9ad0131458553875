/** Rows that are objects are found through a bucket that is no part of the transaction, until it is to change. */

import { afterEach, expect, test } from "vitest";
import { Transaction } from "../../src/engine/transaction.ts";
import { str, table, u32 } from "../../src/index.ts";
import { Hopscotch } from "../../src/stores/hopscotch/hopscotch.ts";
import { temporaryStores } from "../helpers/store.ts";
import { createTable, openExecutor, rehashed, run } from "../helpers/store-engine.ts";

const stores = temporaryStores();
const Texts = table("texts", { id: u32(), text: str() }, { key: "id" });
/** Codecs of one thread share their scratch area, so each table has a codec of its own, and one bucket. */
const codec = () => rehashed(Texts, (hash) => hash & 0x03ffffff);

const { open } = Transaction.prototype;
afterEach(() => {
  Transaction.prototype.open = open;
});

async function twoExecutors() {
  const path = stores.folder();
  const mine = await openExecutor(stores, path);
  const theirs = await openExecutor(stores, path);
  const { store, tx, root } = createTable(mine, codec());
  const other = new Hopscotch(theirs, codec(), root);
  const otherTx = new Transaction(theirs);
  run(mine, tx, () => {
    store.insert(tx, { id: 1, text: "one" });
    store.insert(tx, { id: 2, text: "two" });
  });
  const textOf = (id: number) => run(mine, tx, () => store.read(tx, id)?.text);
  return { mine, theirs, store, tx, other, otherTx, textOf };
}

test("who reads a row, or replaces it in its object, has the row alone in its set", async () => {
  const { mine, store, tx, textOf } = await twoExecutors();
  // What a process has not met yet is found by way of the table's directory.
  expect(textOf(1)).toBe("one");
  run(mine, tx, () => {
    expect(store.read(tx, 1)?.text).toBe("one");
    expect(tx.set.count).toBe(1);
    store.put(tx, { id: 1, text: "uno" });
    expect(tx.set.count).toBe(1);
  });
  expect([textOf(1), textOf(2)]).toEqual(["uno", "two"]);
});

test("who has changed the bucket itself sees that", async () => {
  const { mine, store, tx, textOf } = await twoExecutors();
  run(mine, tx, () => {
    expect(store.remove(tx, 1)).toBe(true);
    expect(store.read(tx, 1)).toBe(undefined);
    expect(store.remove(tx, 1)).toBe(false);
    expect(store.read(tx, 2)?.text).toBe("two");
    store.insert(tx, { id: 1, text: "again" });
    store.put(tx, { id: 2, text: "x".repeat(500) });
    expect([store.read(tx, 1)?.text, store.read(tx, 2)?.text.length]).toEqual(["again", 500]);
  });
  expect([textOf(1), textOf(2)?.length]).toEqual(["again", 500]);
});

for (const change of ["remove", "another object"] as const) {
  test(`a bucket that another one has changed since is not written: ${change}`, async () => {
    const { mine, theirs, store, tx, other, otherTx, textOf } = await twoExecutors();
    expect([textOf(1), run(theirs, otherTx, () => other.read(otherTx, 2)?.text)]).toEqual([
      "one",
      "two",
    ]);
    let opens = 0;
    let attempts = 0;
    // The row is opened first, then the bucket: between the two, the other one changes that.
    Transaction.prototype.open = function (region, word) {
      if (this === tx && attempts === 1 && ++opens === 2) {
        Transaction.prototype.open = open;
        run(theirs, otherTx, () => other.remove(otherTx, 2));
        run(theirs, otherTx, () => other.insert(otherTx, { id: 3, text: "three" }));
      }
      return open.call(this, region, word);
    };
    run(mine, tx, () => {
      attempts++;
      if (change === "remove") store.remove(tx, 1);
      else store.put(tx, { id: 1, text: "x".repeat(700) });
    });
    expect(attempts).toBe(2);
    expect(textOf(1)?.length).toBe(change === "remove" ? undefined : 700);
    expect([textOf(2), textOf(3)]).toEqual([undefined, "three"]);
  });
}
