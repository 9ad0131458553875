/**
 * Damage in the allocator's tables, the catalogue, and between indexes and rows, planted on
 * purpose: all of it is told. And damage anywhere, at random: whatever it is, verifying ends and
 * throws nothing.
 */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { addressOf } from "../../src/memory/address.ts";
import { CATALOGUE_REGION, CATALOGUE_WORD } from "../../src/memory/control.ts";
import { lockWord, PREPARED } from "../../src/memory/object.ts";
import { UNIT_BYTES } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { BTree } from "../../src/stores/btree/btree.ts";
import { Hopscotch } from "../../src/stores/hopscotch/hopscotch.ts";
import { ENTRY_SCHEMA, ROOT_TABLES, writeSchema } from "../../src/tables/catalogue.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import type { IndexState, StoredIndex } from "../../src/tables/indexes/definition.ts";
import type { RowValues } from "../../src/tables/indexes/structure.ts";
import { table } from "../../src/tables/table.ts";
import { inspectTable } from "../../src/tools/tables/inspect.ts";
import { verifyTables } from "../../src/tools/tables/verify.ts";
import { CheckedStore, expectFound, Planted, ROOMY, type Words } from "../helpers/checks.ts";
import { SOAK } from "../helpers/seed.ts";
import { seed } from "../helpers/store.ts";

const LOCK = -4;
const VERSION_HIGH = -3;
const VERSION_LOW = -2;

const People = table(
  "people",
  { id: u32(), city: str(20), mail: str(30), note: str() },
  {
    key: "id",
    indexes: {
      byCity: { on: ["city"] },
      byCityHashed: { on: ["city"], kind: "hash" },
      byMail: { on: ["mail"], unique: true },
      byMailHashed: { on: ["mail"], unique: true, kind: "hash" },
    },
  },
);

let store: CheckedStore;
beforeEach(() => {
  store = new CheckedStore();
});
afterEach(() => store.dispose());

function people(count = 300): void {
  store.fill(
    store.open(People),
    Array.from({ length: count }, (_, id) => ({
      id,
      city: `city ${id % 10}`,
      mail: `${id}@x`,
      note: `note ${id}`,
    })),
  );
}

describe("memory", () => {
  /** The state of the unit that an object lies in, or of one further on. */
  function unitOf({ regionId, word }: Words, further = 0): Planted {
    const { control } = store.executor.memory;
    const unit = regionId * control.unitsPerRegion + Math.floor((4 * word) / UNIT_BYTES);
    return new Planted(control.i32, control.unitAt(unit + further));
  }

  test.each([
    ["a unit that is free", 0, /where no cell begins/],
    ["a block of a class that there is none of", 300 << 8, /it begins a block of class 299/],
    ["a block of one who has left", (10 << 8) | 3, /it belongs to slot 2, which nobody has/],
    ["a unit that continues nothing", (1 << 24) | (5 << 8) | 1, /does not begin 5 before it/],
    ["a block that is never made", (1 << 24) | 1, /it belongs to a block that nobody makes/],
    ["a block of larger cells", (256 << 8) | 1, /it begins a block of 16 units/],
  ])("%s", async (_, state, expected) => {
    people();
    const { rows } = await store.parts("people");
    await expectFound(store, expected, [unitOf(store.objectAt(rows.root)).set(state)]);
  });

  test("a block whose second unit is gone", async () => {
    // Shards of such wide rows do not fit blocks of one unit.
    const Wide = table("wide", { id: u32(), a: str(100) }, { key: "id" });
    store.fill(store.open(Wide), [{ id: 1, a: "" }]);
    const { rows } = await store.parts("wide");
    const buckets = store.follow(store.objectAt(rows.root), 2);
    const planted = unitOf(buckets, 1).set(0);
    await expectFound(store, /and the one 1 on does not belong to it/, [planted]);
  });

  const cells: readonly (readonly [string, (at: Words) => readonly Planted[], RegExp])[] = [
    ["a lock", (at) => [at.place(LOCK).set(lockWord(1, PREPARED))], /locked by slot 1/],
    ["a lock that is none", (at) => [at.place(LOCK).set(3)], /lock word is 3, which is no lock/],
    [
      "no version",
      (at) => [at.place(VERSION_HIGH).set(0), at.place(VERSION_LOW).set(0)],
      /it is in use, and has no version/,
    ],
    ["a later version", (at) => [at.place(VERSION_HIGH).set(9)], /its version is of epoch 3\d{4}/],
    ["no elements", (at) => [at.place(1).set(0)], /it is an array of 0 elements/],
    ["large elements", (at) => [at.place(0).set(1e6)], /it is an array of 65 elements of 1000004/],
    ["small elements", (at) => [at.place(0).set(0)], /it is an array of 65 elements of 4 words/],
    [
      "an element of another incarnation",
      (at) => [at.place(5).set(at.get(5) + 8)],
      /element 0: its incarnation word is \d+, that of the array/,
    ],
    ["a locked element", (at) => [at.place(2).set(5)], /element 0: it is locked by slot 0/],
  ];

  test.each(cells)("a cell with %s", async (_, plant, expected) => {
    people();
    const { rows } = await store.parts("people");
    // The cell of an array, six words before its first bucket.
    const cell = store.follow(store.objectAt(rows.root), 2).moved(store.executor, -6);
    const found = await expectFound(store, expected, plant(cell));
    const where = `memory: the cell at word ${cell.word} of region ${cell.regionId}: `;
    expect(found.problems.some((problem) => problem.startsWith(where))).toBe(true);
  });

  test("a cell of a user's own is looked at, too", async () => {
    const entry = store.run((tx) => tx.addressOf(tx.allocate(100)));
    const at = store.objectAt(entry);
    await expectFound(store, /it is locked by slot 2/, [at.place(LOCK).set(lockWord(2, PREPARED))]);
  });
});

describe("the catalogue", () => {
  function root(): Words {
    const { i32 } = store.executor.memory.control;
    return store.objectAt(addressOf(i32[CATALOGUE_REGION] - 1, i32[CATALOGUE_WORD]));
  }

  test.each([
    ["too many tables", () => [root().place(0).set(1_000)], /it has 1000 tables/],
    ["fewer than none", () => [root().place(0).set(-1)], /it has -1 tables/],
    ["a table fewer", () => [root().place(0).set(0)], /entry 0: it is behind the last of 0/],
    ["a table in no region", () => [root().place(ROOT_TABLES).set(50)], /entry 0: .* region 49/],
    [
      "a table twice",
      () => [
        root().place(0).set(2),
        root()
          .place(ROOT_TABLES + 2)
          .set(root().get(ROOT_TABLES)),
        root()
          .place(ROOT_TABLES + 3)
          .set(root().get(ROOT_TABLES + 1)),
      ],
      /entry 1: .* the catalogue has reached, too/,
    ],
    [
      "a root that is none",
      () => [new Planted(store.executor.memory.control.i32, CATALOGUE_WORD).set(8)],
      /the catalogue: its root: it leads to/,
    ],
  ])("%s", async (_, plant, expected) => {
    people(10);
    await expectFound(store, expected, plant());
  });

  const entries: readonly (readonly [string, (at: Words) => readonly Planted[], RegExp])[] = [
    ["no schema", (at) => [at.place(2).set(0)], /its schema has 0 bytes/],
    ["a schema of another size", (at) => [at.place(2).set(10)], /lies in a cell of another size/],
    ["a schema that is no JSON", (at) => [at.place(ENTRY_SCHEMA).set(0)], /entry 0: .*JSON/],
    [
      "rows in no region",
      (at) => [at.place(0).set(60)],
      /table people: shard 0: it leads to region 59/,
    ],
    [
      "rows that are a schema",
      (at) => [at.place(0).set(at.regionId + 1), at.place(1).set(at.word)],
      /table people: shard 0: .*where one of \d+ is expected/,
    ],
  ];

  test.each(entries)("%s", async (_, plant, expected) => {
    people(10);
    await expectFound(store, expected, plant(store.follow(root(), ROOT_TABLES)));
  });

  /** Changes the text of the schema, to one of the same length. */
  function rewrite(from: string, to: string): Planted[] {
    const entry = store.follow(root(), ROOT_TABLES);
    const bytes = Buffer.from(entry.i32.buffer as ArrayBuffer);
    const start = 4 * (entry.word + 4 + ENTRY_SCHEMA);
    const end = start + entry.get(2);
    const at = bytes.indexOf(from, start);
    expect(at).toBeGreaterThanOrEqual(start);
    expect(at).toBeLessThan(end);
    const planted: Planted[] = [];
    for (let byte = at & ~3; byte < at + to.length; byte += 4) {
      planted.push(new Planted(entry.i32, byte / 4));
    }
    bytes.write(to, at);
    return planted;
  }

  test.each([
    ['"u32"', '"u33"', /"u33" is no type of a field/],
    ['"str(20)"', '"str(2*)"', /is no type of a field/],
    ['"key":["id"]', '"key":["ix"]', /the key field "ix" does not exist/],
    ['"byCity"', '"byMail"', /two indexes have the same name/],
    ['"kind":"hash"', '"kind":"hush"', /kind is "ordered" or "hash"/],
    ['"unique":true', '"unique":null', /unique is true or false/],
    ['"indexes"', '"indices"', /it has no list of indexes/],
  ])("a schema with %s as %s", async (from, to, expected) => {
    people(10);
    await expectFound(store, expected, rewrite(from, to));
  });

  test("an index without all of its roots", async () => {
    people(10);
    const { indexes } = (await store.parts("people")).schema;
    const { roots } = indexes.find(({ name }) => name === "byCityHashed") as StoredIndex;
    const from = JSON.stringify(roots);
    const to = JSON.stringify(roots.slice(1)).padEnd(from.length);
    await expectFound(store, /index byCityHashed has 2 roots/, rewrite(from, to));
  });

  test("a damaged table does not hide the others", async () => {
    people(10);
    store.fill(store.open(table("other", { id: u32() }, { key: "id" })), [{ id: 1 }]);
    const planted = rewrite('"u32"', '"u33"');
    const found = await expectFound(store, /the catalogue: entry 0: the schema of/, planted);
    expect(found.tables.map(({ name, rows }) => [name, rows])).toEqual([["other", 1]]);
  });
});

describe("indexes and rows", () => {
  /** Changes a part of an index, or the rows alone, and expects to be told. */
  async function differs(
    what: string,
    part: number,
    change: (store: {
      read(key: unknown): RowValues | undefined;
      put(row: RowValues): void;
      remove(key: unknown): void;
    }) => void,
    expected: readonly RegExp[],
  ): Promise<void> {
    people();
    const { rows, indexes } = await store.parts("people");
    const found = indexes.find(({ index }) => index.name === what);
    store.changePart(found?.parts[part] ?? rows, (structure, tx) =>
      change({
        read: (key) => structure.read(tx, key),
        put: (row) => structure.put(tx, row),
        remove: (key) => expect(structure.remove(tx, key)).toBe(true),
      }),
    );
    const { problems, tables } = await store.verify();
    for (const each of expected) {
      expect(
        problems.some((problem) => each.test(problem)),
        problems.join("\n"),
      ).toBe(true);
    }
    // Only what was changed is told.
    if (found !== undefined) {
      for (const problem of problems) expect(problem).toContain(`index ${what} of table people`);
    }
    expect(tables[0].problems).toEqual(problems);
    expect(tables[0].indexes.every(({ compared }) => compared)).toBe(true);
  }

  const PART = { counts: 0, entries: 1, places: 2 };

  test("a row without its entry", async () => {
    await differs("byCity", 0, ({ remove }) => remove(["city 3", 13]), [
      /row 13: it has no entry/,
      /it has 299 entries for 300 rows/,
    ]);
  });

  test("an entry without its row", async () => {
    await differs("byCity", 0, ({ put }) => put({ city: "city 3", id: 999 }), [
      /entry \["city 3", 999\]: there is no row 999/,
      /it has 301 entries for 300 rows/,
    ]);
  });

  test("an entry of other values", async () => {
    const change = ({ put, remove }: { put(row: RowValues): void; remove(key: unknown): void }) => {
      remove(["city 3", 13]);
      put({ city: "city 4", id: 13 });
    };
    await differs("byCity", 0, change, [
      /row 13: it has no entry/,
      /entry \["city 4", 13\]: row 13 has other values/,
    ]);
  });

  test.each(["byMail", "byMailHashed"])("%s: an entry that leads to another row", async (name) => {
    await differs(name, 0, ({ put }) => put({ mail: "13@x", id: 14 }), [
      /row 13: the entry for its values leads to row 14/,
      /entry "13@x": row 14 has other values/,
    ]);
  });

  test.each(["byMail", "byMailHashed"])("%s: a row without its entry", async (name) => {
    await differs(name, 0, ({ remove }) => remove("13@x"), [
      /row 13: it has no entry/,
      /it has 299 entries for 300 rows/,
    ]);
  });

  test("a count that is wrong", async () => {
    await differs("byCityHashed", PART.counts, ({ put }) => put({ city: "city 3", position: 29 }), [
      /entry \["city 3", 29\]: it is at 29 of 29 rows/,
      /its parts do not agree: 300 entries, 300 places, counts of 299/,
    ]);
  });

  test("a count that is missing", async () => {
    await differs("byCityHashed", PART.counts, ({ remove }) => remove("city 3"), [
      /place \["city 3", 13\]: it is at 1 of 0 rows/,
    ]);
  });

  test("a count of nothing", async () => {
    await differs("byCityHashed", PART.counts, ({ put }) => put({ city: "x", position: 0 }), [
      /count "x": it is 0/,
    ]);
  });

  test("a place that is missing", async () => {
    await differs("byCityHashed", PART.places, ({ remove }) => remove(["city 3", 13]), [
      /row 13: it has no place among the rows with its values/,
      /entry \["city 3", 1\]: there is no place for it/,
    ]);
  });

  test("a place of another row", async () => {
    await differs(
      "byCityHashed",
      PART.places,
      ({ put }) => put({ city: "city 3", id: 13, position: 2 }),
      [/row 13: its place 2 is that of another row/, /place \["city 3", 13\]: there is no entry/],
    );
  });

  test("an entry that is missing", async () => {
    await differs("byCityHashed", PART.entries, ({ remove }) => remove(["city 3", 1]), [
      /row 13: its place 1 is that of another row, or of none/,
      /299 entries, 300 places, counts of 300/,
      /it has 299 entries for 300 rows/,
    ]);
  });

  test("an entry too many", async () => {
    await differs(
      "byCityHashed",
      PART.entries,
      ({ put }) => put({ city: "city 3", position: 30, id: 999 }),
      [/entry \["city 3", 30\]: there is no row 999/, /entry \["city 3", 30\]: it is at 30 of 30/],
    );
  });

  test("a row that was removed past its indexes", async () => {
    await differs("", 0, ({ remove }) => remove(13), [
      /index byCity of table people: entry \["city 3", 13\]: there is no row 13/,
      /index byCityHashed of table people: place \["city 3", 13\]: there is no row 13/,
      /index byMail of table people: entry "13@x": there is no row 13/,
      /index byMailHashed of table people: it has 300 entries for 299 rows/,
    ]);
  });

  test("a row that was changed past its indexes", async () => {
    await differs("", 0, ({ read, put }) => put({ ...read(13)!, city: "Rome" }), [
      /index byCity of table people: row 13: it has no entry/,
      /index byCityHashed of table people: row 13: it has no place/,
      /index byCityHashed of table people: entry \["city 3", 1\]: row 13 has other values/,
    ]);
  });

  test.each([
    ["hashed", false],
    ["ordered", true],
  ])("a row of a %s table that a lookup does not find", async (_, ordered) => {
    const Numbers = table("numbers", { id: u32() }, { key: "id", ordered });
    store.fill(store.open(Numbers), [{ id: 1 }, { id: 2 }]);
    // The structure is sound; it is the lookup that fails.
    const { prototype } = ordered ? BTree : Hopscotch;
    const read = vi.spyOn(prototype, "read");
    read.mockImplementation((_tx, key) => {
      if (key === 2) throw new Error("lost");
      return undefined;
    });
    const { problems } = await store.verify().finally(() => read.mockRestore());
    expect([...problems].sort()).toEqual([
      "table numbers: row 1: a lookup does not find it",
      "table numbers: row 2: it cannot be looked up: lost",
    ]);
    expect((await store.verify()).problems).toEqual([]);
  });

  test("an index that is being built may lack entries, but has none without its row", async () => {
    people();
    const { indexes, schema } = await store.parts("people");
    const become = (state: IndexState): void => {
      const changed = schema.indexes.map((index) => ({ ...index, state }));
      store.run((tx) => writeSchema(tx, 0, { ...schema, indexes: changed }));
    };
    for (const { parts, index } of indexes) {
      if (index.kind === "ordered") {
        const key = index.unique ? "13@x" : ["city 3", 13];
        store.changePart(parts[0], (structure, tx) => structure.remove(tx, key));
      }
    }
    expect((await store.verify()).problemCount).toBe(4);
    become("building");
    const found = await store.verify();
    expect(found.problems).toEqual([]);
    expect(found.tables[0].indexes.map(({ compared }) => compared)).toEqual(Array(4).fill(true));
    store.changePart(indexes[0].parts[0], (structure, tx) => {
      structure.put(tx, { city: "nowhere", id: 999 });
    });
    const { problems } = await store.verify();
    expect(problems).toEqual([
      'index byCity of table people: entry ["nowhere", 999]: there is no row 999',
    ]);
    // Nothing is promised of one that was only announced.
    become("announced");
    const announced = await store.verify();
    expect(announced.problems).toEqual([]);
    expect(announced.tables[0].indexes[0]).toMatchObject({ state: "announced", compared: false });
  });

  test("of an index that could not be built only the structure is looked at", async () => {
    people();
    const { indexes, schema } = await store.parts("people");
    const [{ parts }] = indexes;
    store.changePart(parts[0], (structure, tx) => structure.put(tx, { city: "nowhere", id: 999 }));
    const [leftover, ...others] = schema.indexes;
    const changed = { ...schema, indexes: others, leftovers: [leftover] };
    store.run((tx) => writeSchema(tx, 0, changed));
    const found = await store.verify();
    expect(found.problems).toEqual([]);
    expect(found.tables[0].indexes).toHaveLength(3);
    const inspected = await inspectTable(store.executor, "people");
    expect(inspected.leftovers).toMatchObject([{ name: "byCity", entries: 301 }]);
    const root = store.objectAt(parts[0].root);
    await expectFound(store, /index byCity of table people, which could not be built: node/, [
      root.place(0).set(77),
    ]);
  });

  test("an index that is damaged is not compared, the others are", async () => {
    people();
    const { indexes } = await store.parts("people");
    const head = store.objectAt(indexes[0].parts[0].root);
    const found = await expectFound(store, /index byCity of table people: node/, [
      head.place(1).set(-1),
    ]);
    expect(found.tables[0].indexes.map(({ name, compared }) => [name, compared])).toEqual([
      ["byCity", false],
      ["byCityHashed", true],
      ["byMail", true],
      ["byMailHashed", true],
    ]);
  });
});

test("problems are bounded in number, and all are counted", async () => {
  people(2_000);
  const { indexes } = await store.parts("people");
  store.changePart(indexes[0].parts[0], (structure, tx) => {
    for (let id = 0; id < 1_000; id++) structure.remove(tx, [`city ${id % 10}`, id]);
  });
  const found = await verifyTables(store.executor, { mostProblems: 7 });
  expect(found.problems).toHaveLength(7);
  expect(found.tables[0].problems).toHaveLength(7);
  expect(found.problemCount).toBe(1_001);
  expect(found.tables[0].problemCount).toBe(1_001);
});

describe("damage at random", () => {
  /** So many words are changed in one run, and so many runs there are for each number. */
  test.each([
    [1, 20 * SOAK],
    [5, 14 * SOAK],
    [200, 7 * SOAK],
    [5_000, 3 * SOAK],
  ])("%i words", async (words, runs) => {
    const Ordered = table(
      "ordered",
      { name: str(100), n: u32() },
      { key: "name", ordered: true, indexes: { byN: { on: ["n"], kind: "hash" } } },
    );
    for (let run = 0; run < runs; run++) {
      const planted = new Random(seed + run);
      store.dispose();
      store = new CheckedStore({ ...ROOMY, regionBytes: 4 * 2 ** 20 });
      people(150);
      store.fill(
        store.open(Ordered),
        Array.from({ length: 300 }, (_, n) => ({ name: `${n}`.repeat(1 + (n % 20)), n: n % 9 })),
      );
      const { slabs, memory } = store.executor;
      for (let i = 0; i < words; i++) {
        // In blocks that are in use, or in the table of units.
        const unit = planted.below(slabs.blocks.count);
        const isTable = planted.below(100) === 0;
        if (
          !isTable &&
          slabs.blocks.classOf(slabs.blocks.blockOf(slabs.blocks.cellAt(unit, 0, 0))) < 0
        ) {
          i--;
          continue;
        }
        const region = slabs.blocks.regionIdOf(unit);
        const { i32 } = isTable ? memory.control : memory.region(region);
        const at = isTable
          ? memory.control.unitAt(unit)
          : slabs.blocks.firstWordOf(unit) + planted.below(UNIT_BYTES / 4);
        const values = [i32[at] ^ (1 << planted.below(32)), planted.next() | 0, 0, -1, i32[at] + 1];
        i32[at] = values[planted.below(values.length)];
      }
      const found = await verifyTables(store.executor).catch((error: unknown) => {
        throw new Error(`SITU_SEED=${seed}, run ${run}`, { cause: error });
      });
      expect(found.problemCount).toBeGreaterThanOrEqual(found.problems.length);
    }
  });
});
