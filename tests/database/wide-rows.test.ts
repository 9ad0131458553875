/**
 * Rows of fixed size that are too large for a slot, with several texts side by side: they are read
 * all at once, and changed field by field in their objects. Against a plain map of rows.
 */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { f64, str, u8, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { loseMemory } from "../helpers/logged-stores.ts";
import { check, fc } from "../helpers/property.ts";
import { failureSync, MIB, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const wide = {
  id: u32(),
  flag: u8(),
  sum: f64(),
  first: str(100),
  long: str(200),
  name: str(24),
  other: str(100),
  short: str(4),
};
const LAYOUTS = {
  hopscotch: table("hopscotch", wide, { key: "id" }),
  buckets: table("buckets", wide, { key: "id", layout: "buckets" }),
  ordered: table("ordered", wide, { key: "id", ordered: true }),
};
const indexed = table("indexed", wide, {
  key: "id",
  indexes: { byName: { on: ["name"], unique: true, kind: "hash" }, byOther: { on: ["other"] } },
});
type Wide = (typeof LAYOUTS)["hopscotch"];
type Row = {
  id: number;
  flag: number;
  sum: number;
  first: string;
  long: string;
  name: string;
  other: string;
  short: string;
};

/** Texts of up to `max` bytes: plain ones, such with characters of several bytes, with zeros. */
function texts(max: number): fc.Arbitrary<string> {
  const plain = fc.string({ maxLength: max });
  const other = fc
    .string({ unit: "binary", maxLength: max })
    .map((text) => cut(text.toWellFormed(), max));
  const full = fc.constantFrom("a", "é", "€", "😀", "\0").map((unit) => cut(unit.repeat(max), max));
  return fc.oneof(plain, other, full);
}

function cut(text: string, max: number): string {
  let kept = text;
  while (Buffer.byteLength(kept) > max || !kept.isWellFormed()) kept = kept.slice(0, -1);
  return kept;
}

const fields = {
  flag: fc.nat(255),
  sum: fc.double({ noNaN: true }),
  first: texts(100),
  long: texts(200),
  name: texts(24),
  other: texts(100),
  short: texts(4),
};
const rows: fc.Arbitrary<Row> = fc.record({ id: fc.nat(7), ...fields });
const changes = fc.record(fields, { requiredKeys: [] });

const open = (path?: string): Promise<Database> =>
  stores.open({
    ...(path === undefined ? {} : { path }),
    tables: [...Object.values(LAYOUTS), indexed],
    memoryBytes: 64 * MIB,
    durability: "lazy",
  });

describe.each(Object.entries(LAYOUTS))("%s", (_, of) => {
  const tableOf = of as Wide;

  it("rows come back as they were put, with texts of any characters", async () => {
    const db = await open();
    const property = fc.property(rows, (row) => {
      db.transactSync((tx) => {
        tx.put(tableOf, row);
        expect(tx.get(tableOf, row.id)).toEqual(row);
      });
      expect(db.get(tableOf, row.id)).toEqual(row);
      expect(db.scan(tableOf).toArray()).toContainEqual(row);
    });
    check(property, 300);
  });

  it("changes of some fields leave the others alone; a snapshot keeps the row as it was", async () => {
    const db = await open();
    const property = fc.property(rows, fc.array(changes, { maxLength: 4 }), (row, list) => {
      db.transactSync((tx) => tx.put(tableOf, row));
      const before = db.snapshot();
      let expected = row;
      for (const change of list) {
        expected = { ...expected, ...change };
        db.transactSync((tx) => {
          tx.update(tableOf, row.id, change);
          expect(tx.get(tableOf, row.id)).toEqual(expected);
        });
        expect(db.get(tableOf, row.id)).toEqual(expected);
      }
      // Several changes of one row in one transaction, on top of each other.
      db.transactSync((tx) => {
        for (const change of list) tx.update(tableOf, row.id, change);
      });
      expect(db.get(tableOf, row.id)).toEqual(expected);
      expect(before.get(tableOf, row.id)).toEqual(row);
      before.close();
    });
    check(property, 150);
  });

  it("a change that is refused changes nothing", async () => {
    const db = await open();
    const row = {
      id: 1,
      flag: 2,
      sum: 3,
      first: "é",
      long: "b",
      name: "c",
      other: "d",
      short: "e",
    };
    db.transactSync((tx) => tx.put(tableOf, row));
    const wrong = { first: "x".repeat(101) };
    failureSync("SITU_TOO_LARGE", () => db.transactSync((tx) => tx.update(tableOf, 1, wrong)));
    const lone = { other: "\ud800" };
    failureSync("SITU_TYPE", () => db.transactSync((tx) => tx.update(tableOf, 1, lone)));
    db.transactSync((tx) => {
      failureSync("SITU_TOO_LARGE", () => tx.update(tableOf, 1, { flag: 9, name: "n".repeat(25) }));
      expect(tx.get(tableOf, 1)).toEqual(row);
    });
    db.transactSync((tx) => tx.update(tableOf, 1, {}));
    expect(db.get(tableOf, 1)).toEqual(row);
  });

  it("what was changed in its place is in the log", async () => {
    const db = await open();
    const [row] = fc.sample(rows, { numRuns: 1, seed: 5 });
    db.transactSync((tx) => tx.put(tableOf, row));
    const change = { long: "€".repeat(66), flag: 77 };
    db.transactSync((tx) => tx.update(tableOf, row.id, change));
    await db.close();
    loseMemory(db.path);
    const again = await open(db.path);
    expect(again.recovered).toBeDefined();
    expect(again.get(tableOf, row.id)).toEqual({ ...row, ...change });
  });
});

it("indexes follow what is changed in its place", async () => {
  const db = await open();
  const row = { id: 1, flag: 2, sum: 3, first: "a", long: "b", name: "c", other: "d", short: "e" };
  db.transactSync((tx) => tx.put(indexed, row));
  db.transactSync((tx) => tx.update(indexed, 1, { name: "new", other: "é" }));
  const expected = { ...row, name: "new", other: "é" };
  db.transactSync((tx) => {
    expect(tx.get(indexed, "new", { index: "byName" })).toEqual(expected);
    expect(tx.get(indexed, "c", { index: "byName" })).toBeUndefined();
    expect(tx.scan(indexed, { index: "byOther", eq: "é" }).toArray()).toEqual([expected]);
    expect(tx.count(indexed, { index: "byOther", eq: "d" })).toBe(0);
  });
});
