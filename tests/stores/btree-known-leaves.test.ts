/**
 * A transaction remembers the leaves of an ordered table that it has come to. What it finds there must be
 * what a descent would find: after its own insertions have split them, beside other transactions of the
 * thread, and when others change them.
 */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { Random } from "../../src/runtime/random.ts";
import { i64, str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

/** Rows that lie in their leaf, and rows that are objects of their own; keys of one word, and of several. */
const Inline = table("inline", { id: u32(), value: i64() }, { key: "id", ordered: true });
const Objects = table(
  "objects",
  { id: u32(), value: i64(), text: str() },
  { key: "id", ordered: true },
);
const Named = table("named", { id: str(), value: i64() }, { key: "id", ordered: true });

const KINDS = {
  inline: { table: Inline, key: (n: number) => n, row: (n: number) => ({ id: n }) },
  objects: { table: Objects, key: (n: number) => n, row: (n: number) => ({ id: n, text: `${n}` }) },
  named: { table: Named, key: (n: number) => `k${n}`, row: (n: number) => ({ id: `k${n}` }) },
} as const;

const KEYS = 400;

describe.each(Object.keys(KINDS) as (keyof typeof KINDS)[])("%s", (kind) => {
  // One shape for all: what differs is the type of the key.
  const { table: rows, key, row } = KINDS[kind] as (typeof KINDS)["inline"];

  it("finds its own rows while it splits the leaves", async () => {
    const db = await stores.open({ tables: [rows] });
    const random = new Random(7);
    const model = new Map<number, bigint>();
    for (let round = 0; round < 3; round++) {
      db.transactSync((tx) => {
        for (let i = 0; i < 1_500; i++) {
          const n = random.below(KEYS);
          const value = BigInt(i);
          const before = model.get(n);
          const kindOf = random.below(6);
          if (kindOf === 0) {
            tx.put(rows, { ...row(n), value });
            model.set(n, value);
          } else if (kindOf === 1) {
            expect(tx.delete(rows, key(n))).toBe(model.delete(n));
          } else if (kindOf === 2 && before !== undefined) {
            tx.update(rows, key(n), { value });
            model.set(n, value);
          } else {
            expect(tx.get(rows, key(n))?.value).toBe(before);
          }
        }
        for (let n = 0; n < KEYS; n++) expect(tx.get(rows, key(n))?.value).toBe(model.get(n));
      });
      for (let n = 0; n < KEYS; n++) expect(db.get(rows, key(n))?.value).toBe(model.get(n));
    }
  });

  it("keeps the leaves of transactions apart that run at the same time", async () => {
    const db = await stores.open({ tables: [rows] });
    fill(db);
    const first = await db.begin();
    const other = await db.begin();
    await first.get(rows, key(1));
    await first.update(rows, key(1), { value: 10n });
    expect((await other.get(rows, key(1)))?.value).toBe(1n);
    await other.get(rows, key(2));
    expect((await first.get(rows, key(1)))?.value).toBe(10n);
    await other.rollback();
    await first.commit();
    expect(db.get(rows, key(1))?.value).toBe(10n);
  });

  it("meets what others have changed since it was there", async () => {
    const db = await stores.open({ tables: [rows] });
    const second = await stores.open({ path: db.path, tables: [rows] });
    fill(db);
    let runs = 0;
    db.transactSync((tx) => {
      runs++;
      const before = tx.get(rows, key(1))!.value;
      if (runs === 1) {
        second.transactSync((its) => {
          its.update(rows, key(1), { value: 5n });
          for (let n = KEYS; n < 2 * KEYS; n++) its.put(rows, { ...row(n), value: 0n });
        });
      }
      tx.update(rows, key(1), { value: before + 1n });
    });
    expect([runs, db.get(rows, key(1))?.value]).toEqual([2, 6n]);
    const tx = await db.begin();
    await tx.get(rows, key(1));
    second.transactSync((its) => its.delete(rows, key(1)));
    await failure("SITU_CONFLICT", () => tx.update(rows, key(1), { value: 7n }));
  });

  function fill(db: Database): void {
    db.transactSync((tx) => {
      for (let n = 0; n < KEYS; n++) tx.put(rows, { ...row(n), value: BigInt(n) });
    });
  }
});
