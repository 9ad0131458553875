/** Scans of a hash table: what others do to its shards meanwhile, and what the scanner does itself. */

import { afterEach, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { Directory } from "../../src/stores/shards/directory.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const Hashed = table("hashed", { id: u32(), value: u32() }, { key: "id" });

const { locate } = Directory.prototype;
afterEach(() => {
  Directory.prototype.locate = locate;
});

/** Runs `meddle` once, right after a shard was located. */
function afterLocating(meddle: () => void): void {
  Directory.prototype.locate = function (tx, hash) {
    locate.call(this, tx, hash);
    Directory.prototype.locate = locate;
    meddle();
  };
}

describe("another one splits the shard between its head and its buckets", () => {
  for (const limit of [undefined, 250]) {
    it(limit === undefined ? "a strictly serializable scan" : "a short scan", async () => {
      const db = await stores.open({ tables: [Hashed], memoryBytes: 64 * 2 ** 20 });
      const other = await open({ path: db.path, tables: [Hashed] });
      db.transactSync((tx) => {
        for (let id = 0; id < 200; id++) tx.insert(Hashed, { id, value: 1 });
      });
      let rows = 200;
      // Which insert splits is up to the seed of the hashes: one of the 230th to the 270th. Fewer are
      // left for the scan than its limit, so that it must find all of them.
      const deleted = 50;
      afterLocating(() => {
        const { splits } = other.stats().counters;
        while (other.stats().counters.splits === splits) {
          const id = rows++;
          other.transactSync((tx) => tx.insert(Hashed, { id, value: 1 }));
        }
        other.transactSync((tx) => {
          for (let id = 0; id < deleted; id++) tx.delete(Hashed, id);
        });
      });
      const found =
        limit === undefined
          ? db.transactSync((tx) => tx.scan(Hashed).toArray())
          : db.scan(Hashed, { limit }).toArray();
      expect(rows).toBeGreaterThan(200);
      const ids = Array.from({ length: rows - deleted }, (_, index) => deleted + index);
      expect(found.map(({ id }) => id).sort((a, b) => a - b)).toEqual(ids);
      await other.close();
    });
  }
});

describe("a transaction that changes the table while it walks", () => {
  for (const rows of [300, 3_000]) {
    it(`deletes what it meets, of ${rows} rows: meets all of them once`, async () => {
      const db = await stores.open({ tables: [Hashed], memoryBytes: 64 * 2 ** 20 });
      const fill = (tx: { insert(t: typeof Hashed, row: { id: number; value: number }): void }) => {
        for (let id = 0; id < rows; id++) tx.insert(Hashed, { id, value: 1 });
      };
      const emptied = (whose: "its own" | "another's"): void => {
        if (whose === "another's") db.transactSync(fill);
        const met = db.transactSync((tx) => {
          if (whose === "its own") fill(tx);
          const ids = new Set<number>();
          let count = 0;
          for (const { id } of tx.scan(Hashed)) {
            ids.add(id);
            count++;
            tx.delete(Hashed, id);
          }
          return { different: ids.size, count, left: tx.count(Hashed) };
        });
        expect(met, whose).toEqual({ different: rows, count: rows, left: 0 });
      };
      emptied("its own");
      emptied("another's");
    });
  }

  it("inserts while it walks: no row comes twice", async () => {
    const db = await stores.open({ tables: [Hashed], memoryBytes: 64 * 2 ** 20 });
    db.transactSync((tx) => {
      for (let id = 0; id < 2_000; id++) tx.insert(Hashed, { id, value: 1 });
    });
    db.transactSync((tx) => {
      const met = new Map<number, number>();
      let next = 2_000;
      for (const { id } of tx.scan(Hashed)) {
        met.set(id, (met.get(id) ?? 0) + 1);
        if (next < 4_000) tx.insert(Hashed, { id: next++, value: 2 });
      }
      expect([...met.values()].every((times) => times === 1)).toBe(true);
      for (let id = 0; id < 2_000; id++) expect(met.has(id)).toBe(true);
    });
  });
});
