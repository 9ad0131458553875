/** Snapshot isolation for what it is recommended for: reading much, while others rewrite it all. */

import { describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const ROWS = 60_000;
const fields = { id: u32(), version: u32(), text: str(100) };
const Ordered = table("ordered", fields, { key: "id", ordered: true });
const Hashed = table("hashed", fields, { key: "id" });
const Objects = table(
  "objects",
  { id: u32(), version: u32(), text: str() },
  { key: "id", ordered: true },
);
const Result = table("result", { id: u32(), sum: u32() }, { key: "id" });
const tables = [Ordered, Hashed, Objects, Result];

describe("a transaction that scans more than an arena holds of what others have overwritten", () => {
  // One type for all: the test does the same with each.
  const sources = [
    Ordered,
    Hashed as unknown as typeof Ordered,
    Objects as unknown as typeof Ordered,
  ];
  for (const source of sources) {
    it(`${source.name}: sees one moment, and writes its result`, async () => {
      const memoryBytes = 128 * 2 ** 20;
      const db = await stores.open({ tables, memoryBytes, versionBytes: memoryBytes });
      const other = await open({ path: db.path, tables });
      const text = "x".repeat(100);
      const rewrite = (version: number): void => {
        for (let first = 0; first < ROWS; first += 500) {
          other.transactSync((tx) => {
            for (let id = first; id < first + 500; id++) tx.put(source, { id, version, text });
          });
        }
      };
      rewrite(1);
      let attempts = 0;
      await db.transact(
        async (tx) => {
          attempts++;
          await tx.get(source, 1);
          rewrite(2);
          let sum = 0;
          for await (const row of tx.scan(source)) sum += row.version;
          await tx.put(Result, { id: 1, sum });
        },
        { isolation: "snapshot", timeoutMs: 60_000 },
      );
      expect(attempts).toBe(1);
      expect(db.get(Result, 1)).toEqual({ id: 1, sum: ROWS });
      await other.close();
    });
  }
});
