/**
 * A lookup outside of transactions is overtaken between any two of its looks: the row is deleted, its memory
 * given back, and used for objects of another size, full of what looks like locks. It finds the row, or it
 * does not, and never takes such data for anything.
 */

import "../helpers/engine-all-atomics.ts";

import { expect, test } from "vitest";
import { INSTALLING, lockWord } from "../../src/memory/object.ts";
import { openTable } from "../../src/tables/catalogue.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { CheckedStore } from "../helpers/checks.ts";
import { transact } from "../helpers/engine-accounts.ts";
import { hookAtomics } from "../helpers/engine-atomics.ts";

const TEXT = "x".repeat(11_900);
const OTHER_BYTES = 9_000;
const IDS = [5, 6, 7];
/** Of a slot that nobody has: whoever waited for it would wait in vain. */
const LOCK = lockWord(2, INSTALLING);

const fields = { id: u32(), text: str() };
const TABLES = {
  hopscotch: table("rows", fields, { key: "id", layout: "hopscotch" }),
  buckets: table("rows", fields, { key: "id", layout: "buckets" }),
  robinhood: table("rows", fields, { key: "id", layout: "robinhood" }),
  btree: table("rows", fields, { key: "id", ordered: true }),
};

test.each(["hopscotch", "buckets", "robinhood", "btree"] as const)("%s", (layout) => {
  const Rows = TABLES[layout];
  for (let k = 1; ; k++) {
    const store = new CheckedStore();
    try {
      const reader = store.open(Rows);
      const other = store.store.open();
      const writer = openTable(other, Rows);
      // Several, so that not all lie where a cell of the other size begins, too.
      for (const id of IDS) store.fill(reader, [{ id, text: TEXT }]);
      expect(reader.store.get(7)).toMatchObject({ id: 7 });
      let looks = 0;
      const look = (): void => {
        if (++looks !== k) return;
        for (const id of IDS) transact(other, (tx) => writer.store.remove(tx, id));
        other.slabs.releaseEmptyBlocks();
        transact(other, (tx) => {
          for (let i = 0; i < 14; i++) {
            const at = tx.writable(tx.allocate(OTHER_BYTES), OTHER_BYTES / 4);
            tx.set.arena.i32.fill(LOCK, at, at + OTHER_BYTES / 4);
          }
        });
      };
      const off = hookAtomics({ afterLoad: look });
      // Before it reads anything in a region, it looks for the region.
      const { regions } = store.executor.memory;
      const [first] = regions;
      const get = (): typeof first => {
        look();
        return first;
      };
      Object.defineProperty(regions, 0, { get });
      let found: unknown;
      try {
        found = reader.store.get(7);
      } finally {
        off();
      }
      if (found !== undefined) expect(found).toEqual({ id: 7, text: TEXT });
      if (looks >= k) continue;
      expect(found).toBeDefined();
      expect(k).toBeGreaterThan(5);
      return;
    } finally {
      store.dispose();
    }
  }
});
