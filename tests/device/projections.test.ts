/**
 * What the threads of the device keep of rows: aggregates and conditions over short fields find there what the pages
 * say, whatever becomes of rows, pages and their generations meanwhile.
 */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { knownDevice } from "../../src/device/device.ts";
import { PAGE_WORDS, PagePacker } from "../../src/device/page.ts";
import { codecOf } from "../../src/tables/codec/codec.ts";
import { workOf } from "../../src/tables/device/device-work.ts";
import { PageRanges } from "../../src/tables/device/elements/page-ranges.ts";
import { Projection } from "../../src/tables/device/elements/projection.ts";
import { count, max, min, sum } from "../../src/tables/expressions/aggregates.ts";
import {
  bool,
  bytes,
  enumOf,
  f64,
  i32,
  i64,
  nullable,
  str,
  timestamp,
  u8,
  u16,
  u32,
  u53,
  u64,
  uuid,
} from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { check, fc } from "../helpers/property.ts";
import { temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
type Both = Database & LocalDatabase;

const Item = table(
  "item",
  {
    id: u32(),
    byte: u8(),
    short: nullable(u16()),
    whole: i32(),
    long: u53(),
    double: nullable(f64()),
    signed: i64(),
    unsigned: nullable(u64()),
    flag: nullable(bool()),
    state: enumOf("a", "b", "c"),
    name: str(6),
    mark: nullable(bytes(5)),
    at: timestamp(),
    uid: uuid(),
    text: str(),
  },
  { key: "id", storage: "device" },
);

const uid = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

function rowOf(id: number, round: number) {
  const n = id * 7 + round * 13;
  return {
    id,
    byte: n % 256,
    short: n % 4 === 0 ? null : n % 65_536,
    whole: (n % 2_000) - 1_000,
    long: n * 2 ** 33,
    double: n % 5 === 0 ? null : n / 7,
    signed: BigInt(n) - 500n,
    unsigned: n % 6 === 0 ? null : BigInt(n) * 2n ** 40n,
    flag: n % 3 === 0 ? null : n % 2 === 0,
    state: (["a", "b", "c"] as const)[n % 3],
    name: `n${n % 50}`,
    mark: n % 7 === 0 ? null : new Uint8Array([n % 9, 2]),
    at: new Date(n * 1_000),
    uid: uid(n % 40),
    text: "x".repeat(300 + (n % 500)),
  };
}

const shown = (value: unknown): string =>
  JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `${v}n` : v));

/** Aggregates and a selection over short fields only. */
async function answers(db: Both, place: "host" | "device"): Promise<unknown> {
  const numbers = await db.aggregate(Item, {
    place,
    values: (i) => ({
      n: count(),
      shorts: count(i.short),
      byte: sum(i.byte),
      whole: sum(i.whole),
      long: max(i.long),
      signed: sum(i.signed),
      unsigned: min(i.unsigned),
    }),
  });
  const grouped = await db.aggregate(Item, {
    place,
    where: (i) => i.flag.isNull().not().and(i.short.gt(500)),
    groupBy: ["state", "flag"],
    values: (i) => ({ n: count(), first: min(i.at), last: max(i.name) }),
  });
  const chosen: unknown[] = [];
  const some = db.select(Item, {
    place,
    where: (i) => i.uid.eq(uid(3)).or(i.name.startsWith("n1")).or(i.mark.isNull()),
    columns: ["id", "uid", "mark", "state"],
  });
  for await (const row of some) chosen.push(row);
  return [shown(numbers), grouped.map(shown).sort(), chosen.map(shown).sort()];
}

const ROWS = 300;

describe("fields that a thread keeps", () => {
  it.each([1, 2])("answer with %i threads as the pages do, round for round", async (threads) => {
    const db = (await stores.open({ tables: [Item], memoryBytes: 32 * 2 ** 20 })) as Both;
    db.elements.size = threads;
    const fill = (round: number, step: number): void =>
      db.transactSync((tx) => {
        for (let id = 0; id < ROWS; id += step) tx.put(Item, rowOf(id, round));
      });
    fill(0, 1);
    for (let round = 1; round <= 6; round++) {
      for (const { mover } of workOf(knownDevice(db.executor)!)) {
        while (mover.move(Number.POSITIVE_INFINITY));
      }
      // Twice: from pages, then from what was kept.
      const expected = await answers(db, "host");
      expect(await answers(db, "device")).toEqual(expected);
      expect(await answers(db, "device")).toEqual(expected);
      const wanted = await db.aggregate(Item, {
        where: (i) => i.short.gt(900),
        values: () => ({ n: count() }),
      });
      const { matched } = await db.updateWhere(Item, {
        place: "device",
        where: (i) => i.short.gt(900),
        set: (i) => ({ whole: i.whole.plus(1), byte: round }),
      });
      expect(matched).toBe(wanted.n);
      expect(await answers(db, "device")).toEqual(await answers(db, "host"));
      const gone = await db.deleteWhere(Item, { place: "device", where: (i) => i.byte.eq(77) });
      expect(gone.matched).toBeGreaterThanOrEqual(0);
      fill(round, round + 1);
      // Pages are freed and written again in other generations.
      for (const { collector } of workOf(knownDevice(db.executor)!)) {
        for (let turn = 0; turn < 50 && collector.work(Number.POSITIVE_INFINITY); turn++);
      }
    }
  });
});

const Small = table("small", { id: u32(), n: nullable(u16()), text: str(8) }, { key: "id" });

describe("a projection", () => {
  it("that has no room for all pages forgets some, and never tells a wrong row", () => {
    const codec = codecOf(Small as never);
    const projection = new Projection(Small, "a file", new Set(["n"]), 2 ** 20);
    const { take } = projection.programs.forWords({
      table: "small",
      where: undefined,
      task: { kind: "select", columns: ["n"] },
    } as never);
    const packer = new PagePacker(1);
    const known: { page: number; generation: number; slots: number }[] = [];
    const numberIn = (page: number, generation: number, slot: number): number | null =>
      slot % 9 === 0 ? null : (page * 31 + generation * 7 + slot) % 65_536;
    let slots = 0;
    let forgotten = 0;
    for (let step = 0; step < 1_200; step++) {
      const page = step % 700;
      const generation = 1 + Math.floor(step / 700);
      packer.clear();
      slots = 0;
      for (;;) {
        const words = codec.encode({
          id: slots,
          n: numberIn(page, generation, slots),
          text: "t",
        } as never);
        if (packer.add(codec.scratch.i32.subarray(0, words)) === undefined) break;
        slots++;
      }
      packer.finish(0, page, generation, 1);
      projection.add(packer.views, 0, page, generation);
      known.push({ page, generation, slots });
    }
    expect(slots).toBeGreaterThan(100);
    for (const each of known) {
      for (const slot of [0, 1, each.slots - 1]) {
        const at = projection.find(each.page, each.generation, slot);
        if (at < 0) {
          forgotten++;
          continue;
        }
        const row = take(projection.views, at, 0);
        expect(row).toEqual({ n: numberIn(each.page, each.generation, slot) });
      }
      expect(projection.find(each.page, each.generation + 5, 0)).toBe(-1);
      expect(projection.find(each.page, each.generation, each.slots)).toBe(-1);
    }
    expect(forgotten).toBeGreaterThan(0);
    expect(forgotten).toBeLessThan(known.length * 3);
    expect(projection.bytes).toBe(2 ** 20);
    expect(PAGE_WORDS).toBeGreaterThan(slots);
  });
});

describe("the numbers of rows", () => {
  it("are those of the page's last generation, and of one row only", () => {
    const step = fc.record({
      page: fc.oneof(fc.nat(50), fc.constantFrom(4_095, 4_096, 2 ** 32 - 1, 3 * 2 ** 30)),
      generation: fc.integer({ min: -3, max: 3 }),
      slots: fc.integer({ min: 1, max: 2_047 }),
    });
    check(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const ranges = new PageRanges();
        const model = new Map<number, { generation: number; first: number; slots: number }>();
        let end = 0;
        for (const { page, generation, slots } of steps) {
          const known = model.get(page);
          const found = ranges.find(page, generation);
          expect(found).toBe(known?.generation === generation ? known.first : -1);
          if (found >= 0) {
            expect(ranges.slotsOf(page)).toBe(known!.slots);
            continue;
          }
          expect(ranges.add(page, generation, slots)).toBe(end);
          model.set(page, { generation, first: end, slots });
          end += slots;
        }
        expect(ranges.end).toBe(end);
      }),
    );
  });
});
