/** Verifying and inspecting stores that are sound, at rest and while others write to them. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runSync } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { Random } from "../../src/runtime/random.ts";
import { openTable } from "../../src/tables/catalogue.ts";
import {
  bool,
  bytes,
  f64,
  i32,
  i64,
  json,
  pointer,
  str,
  u8,
  u16,
  u32,
  u64,
} from "../../src/tables/fields.ts";
import type { RowValues } from "../../src/tables/indexes/structure.ts";
import type { TableStore } from "../../src/tables/indexes/table-store.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { inspectTable } from "../../src/tools/tables/inspect.ts";
import { verifyTables } from "../../src/tools/tables/verify.ts";
import { CheckedStore } from "../helpers/checks.ts";
import { dieAt } from "../helpers/engine-atomics.ts";
import { failure, seed } from "../helpers/store.ts";

let store: CheckedStore;
beforeEach(() => {
  store = new CheckedStore();
});
afterEach(() => store.dispose());

/** All kinds of indexes, on all kinds of fields. */
const INDEXES = {
  byGroup: { on: ["group"] },
  byGroupHashed: { on: ["group"], kind: "hash" },
  byName: { on: ["name"], unique: true },
  byNumber: { on: ["number"], unique: true, kind: "hash" },
  byGroupAndFlag: { on: ["group", "flag"] },
  byBytesHashed: { on: ["tag", "group"], kind: "hash" },
} as const;

const FIELDS = {
  id: u32(),
  group: u8(),
  name: str(40),
  number: i64(),
  flag: bool(),
  tag: bytes(6),
};

const KINDS = [
  ["hashed, rows in buckets", { ...FIELDS }, false],
  ["ordered, rows in leaves", { ...FIELDS }, true],
  ["hashed, rows as objects", { ...FIELDS, text: str() }, false],
  ["ordered, rows as objects", { ...FIELDS, text: str() }, true],
] as const;

function rowOf(random: Random, id: number, hasText: boolean, isLarge: boolean): RowValues {
  const row: RowValues = {
    id,
    group: random.below(7),
    name: `${id}-${random.below(10)}`,
    number: BigInt(id) * 1_000_003n - 5_000_000n,
    flag: random.below(2) === 1,
    tag: Uint8Array.from({ length: random.below(3) }, () => random.below(3)),
  };
  if (hasText) row.text = "§".repeat(isLarge ? 400_000 + random.below(100_000) : random.below(60));
  return row;
}

/** Random changes, checked against a map. */
function mutate(
  target: CheckedStore,
  opened: TableStore,
  model: Map<number, RowValues>,
  random: Random,
  rounds: number,
  keys: number,
): void {
  const hasText = "text" in opened.table.fields;
  for (let round = 0; round < rounds; round++) {
    target.change(opened, (tx) => {
      for (let i = 0; i < 20; i++) {
        const id = random.below(keys);
        if (random.below(3) === 0) {
          expect(opened.store.remove(tx, id)).toBe(model.delete(id));
        } else {
          const row = rowOf(random, id, hasText, random.below(300) === 0);
          opened.store.put(tx, row);
          model.set(id, row);
        }
      }
    });
  }
}

describe.each(KINDS)("%s", (_, fields, ordered) => {
  const Things = table("things", fields, { key: "id", ordered, indexes: INDEXES });

  test("random changes leave no problem", async () => {
    const random = new Random(seed);
    const opened = store.open(Things);
    const model = new Map<number, RowValues>();
    // It grows, stays, and shrinks to nothing.
    for (const [rounds, keys] of [
      [60, 3_000],
      [40, 600],
    ]) {
      mutate(store, opened, model, random, rounds, keys);
      const found = await store.verify();
      expect(found.problems, `seed ${seed}`).toEqual([]);
      expect(found.tables).toHaveLength(1);
      expect(found.tables[0]).toMatchObject({ name: "things", rows: model.size, problemCount: 0 });
      for (const index of found.tables[0].indexes) {
        expect(index).toMatchObject({ state: "ready", entries: model.size, compared: true });
      }
    }
    for (const id of [...model.keys()]) store.change(opened, (tx) => opened.store.remove(tx, id));
    const found = await store.verify();
    expect(found.problems).toEqual([]);
    expect(found.tables[0].rows).toBe(0);
  });

  test("is told by figures", async () => {
    const random = new Random(seed);
    const opened = store.open(Things);
    const hasText = "text" in fields;
    const rows = Array.from({ length: 2_000 }, (_, id) => rowOf(random, id, hasText, id === 7));
    store.fill(opened, rows);
    const found = await inspectTable(store.executor, "things");
    // Plain objects: JSON takes nothing away.
    expect(JSON.parse(JSON.stringify(found))).toEqual(found);
    expect(found.problems).toEqual([]);
    expect(found.schema).toMatchObject({ name: "things", key: ["id"], ordered });
    expect(found.rows).toBe(2_000);
    expect(found.structure.rowObjects).toBe(hasText ? 2_000 : 0);
    expect(found.indexes.map(({ name }) => name)).toEqual(Object.keys(INDEXES));
    expect(found.indexes.map(({ entries }) => entries)).toEqual(Array(6).fill(2_000));
    expect(found.indexes.map(({ structures }) => structures.length)).toEqual([1, 3, 1, 1, 1, 3]);
    const { structure } = found;
    if (structure.kind === "btree") {
      expect(structure.levels).toBeGreaterThanOrEqual(2);
      expect(structure.leaves).toBeGreaterThan(10);
      expect(structure.leafFill).toBeGreaterThan(0.4);
      expect(structure.leafFill).toBeLessThanOrEqual(1);
    } else {
      expect(structure.shards).toBeGreaterThan(5);
      expect(structure.buckets).toBe(65 * structure.shards);
      expect(structure.occupancy).toBeGreaterThan(0.3);
      expect(structure.occupancy).toBeLessThanOrEqual(1);
      const inBuckets = Math.round(structure.occupancy * structure.buckets * 4);
      expect(inBuckets + structure.chainRows).toBe(2_000);
    }
    const parts = [structure, ...found.indexes].map(({ memoryBytes }) => memoryBytes);
    expect(found.memoryBytes).toBe(parts.reduce((a, b) => a + b));
    // All that is in use, but for the catalogue.
    const { memory } = await store.verify();
    expect(memory.cellBytes - found.memoryBytes).toBeLessThan(10_000);
    expect(memory.cellBytes - found.memoryBytes).toBeGreaterThan(0);
  });
});

test("rows with all types of fields, and the largest of all", async () => {
  const All = table(
    "all",
    {
      a: u8(),
      b: u16(),
      c: u32(),
      d: i32(),
      e: f64(),
      f: bool(),
      g: u64(),
      h: i64(),
      i: str(),
      j: bytes(),
      k: json(),
      l: pointer(),
      m: str(255),
      n: bytes(3),
      o: str(300),
    },
    { key: ["c", "m"], indexes: { byAll: { on: ["a", "b", "d", "f", "g", "h", "n"] } } },
  );
  const opened = store.open(All);
  const row = (c: number, large: number): RowValues => ({
    a: 255,
    b: 65_535,
    c,
    d: -(2 ** 31),
    e: c === 0 ? Number.NaN : -0,
    f: true,
    g: 2n ** 64n - 1n,
    h: -(2n ** 63n),
    i: "漢".repeat(large / 3),
    j: new Uint8Array(large).fill(0xff),
    k: { deep: ["x".repeat(large / 2), null, { y: 1.5 }] },
    l: null,
    m: "é".repeat(127),
    n: Uint8Array.of(0, 0, 0),
    o: "",
  });
  store.fill(opened, [row(0, 0), row(1, 1_000_000), row(2, 900_000), row(3, 600)], 1);
  const found = await store.verify();
  expect(found.problems).toEqual([]);
  expect(found.tables[0].rows).toBe(4);
  const { structure } = await inspectTable(store.executor, "all");
  expect(structure).toMatchObject({ rowObjects: 4, cutRows: 2 });
});

test("an empty store, and tables without rows", async () => {
  expect(await store.verify()).toMatchObject({ tables: [], problems: [] });
  store.open(table("a", { id: u32() }, { key: "id" }));
  store.open(table("b", { id: u32() }, { key: "id", ordered: true }));
  const found = await store.verify();
  expect(found.problems).toEqual([]);
  expect(found.tables.map(({ name, rows }) => [name, rows])).toEqual([
    ["a", 0],
    ["b", 0],
  ]);
  const error = await failure("SITU_UNKNOWN_TABLE", () => inspectTable(store.executor, "c"));
  expect(error.message).toContain("no table c");
});

describe("while others write", () => {
  test.each(KINDS)("%s", async (_, fields, ordered) => {
    const Things = table("things", fields, { key: "id", ordered, indexes: INDEXES });
    const random = new Random(seed);
    const opened = store.open(Things);
    const model = new Map<number, RowValues>();
    mutate(store, opened, model, random, 60, 3_000);
    // Another executor, as another process would: it changes the table at every turn.
    const writer = store.store.open();
    const its = openTable(writer, Things as Table);
    const tx = new Transaction(writer);
    let changes = 0;
    let next = 10_000;
    const write = (): void => {
      for (let i = 0; i < 20; i++) {
        runSync(
          writer,
          tx,
          5_000,
          () => {
            its.store.put(tx, rowOf(random, next++, "text" in fields, false));
            its.store.remove(tx, random.below(3_000));
          },
          undefined,
        );
        its.store.maintain();
        changes++;
      }
    };
    const found = await verifyTables(store.executor, { onProgress: write });
    expect(found.problems, `seed ${seed}`).toEqual([]);
    expect(changes).toBeGreaterThan(0);
    const [verified] = found.tables;
    expect(verified.indexes.every(({ entries }) => entries === verified.rows)).toBe(true);
    expect((await store.verify()).problems, `seed ${seed}`).toEqual([]);
  });
});

describe("a run", () => {
  const Numbers = table("numbers", { id: u32() }, { key: "id" });
  const rows = Array.from({ length: 30_000 }, (_, id) => ({ id }));

  test("tells its progress", async () => {
    store.fill(store.open(Numbers), rows, 256);
    const seen: [string, number][] = [];
    await verifyTables(store.executor, {
      onProgress: ({ subject, rows: count }) => seen.push([subject, count]),
    });
    expect(seen.some(([subject]) => subject === "table numbers")).toBe(true);
  });

  test("ends when it is told to", async () => {
    store.fill(store.open(Numbers), rows, 256);
    const controller = new AbortController();
    const running = verifyTables(store.executor, {
      signal: controller.signal,
      onProgress: () => controller.abort(new Error("enough")),
    });
    await expect(running).rejects.toThrow("enough");
    // Its snapshot is released.
    expect(store.executor.versions.registry.inUse).toBe(0);
  });

  test("begins again when its snapshot is released, a few times", async () => {
    store.fill(store.open(Numbers), rows, 256);
    let releases = 0;
    const release = (): void => {
      if (store.executor.versions.registry.inUse === 0) return;
      store.executor.versions.keeper.releaseOldest();
      releases++;
    };
    const found = await verifyTables(store.executor, {
      onProgress: () => (releases < 2 ? release() : undefined),
    });
    expect(releases).toBe(2);
    expect(found).toMatchObject({ problems: [], tables: [{ name: "numbers", rows: 30_000 }] });
    await failure("SITU_SNAPSHOT_TOO_OLD", () =>
      verifyTables(store.executor, { onProgress: release }),
    );
  });

  test("ends when the store is closed", async () => {
    store.fill(store.open(Numbers), rows, 256);
    const other = store.store.open();
    const running = verifyTables(other, {
      onProgress: () => {
        if (other.memory.control.i32.length > 0) store.store.close(other);
      },
    });
    await failure("SITU_CLOSED", () => running);
  });
});

test("an executor that died over its commit is no damage", async () => {
  const Numbers = table("numbers", { id: u32() }, { key: "id", indexes: { all: { on: ["id"] } } });
  const opened = store.open(Numbers);
  store.fill(opened, [{ id: 0 }]);
  let deaths = 0;
  for (let died = true; died; ) {
    const victim = store.store.open();
    const its = openTable(victim, Numbers as Table);
    const tx = new Transaction(victim);
    victim.enter();
    its.store.put(tx, { id: ++deaths });
    died = dieAt(deaths, "after", () => {
      expect(victim.committer.commit(tx)).toBe(true);
    });
    // All that it had locked is locked.
    store.store.kill(victim);
    const found = await store.verify();
    expect(found.problems, `after step ${deaths}`).toEqual([]);
    expect(found.tables[0].indexes[0].entries).toBe(found.tables[0].rows);
  }
  expect(deaths).toBeGreaterThan(3);
});
