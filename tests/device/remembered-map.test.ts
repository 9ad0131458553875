/**
 * What a thread of the device remembers of a table's map: a walk finds what a walk that remembers nothing finds, whatever
 * was changed, moved or split since, through new snapshots and old ones; and reads only what has changed.
 */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { knownDevice } from "../../src/device/device.ts";
import { readAtSnapshot, runReadOnly } from "../../src/engine/run.ts";
import { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import type { DeviceTable } from "../../src/tables/device/device-table.ts";
import { workOf } from "../../src/tables/device/device-work.ts";
import {
  type MapStep,
  MapSteps,
  RememberedMap,
  RememberedMaps,
} from "../../src/tables/device/elements/map-steps.ts";
import { MapWalk, sharesPage } from "../../src/tables/device/elements/map-walk.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { check, fc } from "../helpers/property.ts";
import { temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
type Both = Database & LocalDatabase;

const Hashed = table("item", { id: u32(), text: str(40) }, { key: "id", storage: "device" });
const Ordered = table(
  "item",
  { id: u32(), text: str(40) },
  { key: "id", ordered: true, storage: "device" },
);
const LIFE_MS = 60_000;
/** Enough for several shards. */
const ROWS = 1_500;

const tableOf = (db: LocalDatabase): DeviceTable => workOf(knownDevice(db.executor)!)[0].table;

function snapshotOf({ executor }: LocalDatabase): Snapshot {
  return Snapshot.take(executor, LIFE_MS, LIFE_MS);
}

function fill(db: Both, of: typeof Hashed, from: number, to: number, text: string): void {
  db.transactSync((tx) => {
    for (let id = from; id < to; id++) tx.put(of, { id, text });
  });
}

function moveAll(db: LocalDatabase): void {
  while (workOf(knownDevice(db.executor)!)[0].mover.move(Number.POSITIVE_INFINITY));
}

function stepsOf(db: LocalDatabase, map: RememberedMap, snapshot: Snapshot): MapStep[] {
  const steps = new MapSteps(map);
  const tx = new Transaction(db.executor);
  const found: MapStep[] = [];
  for (;;) {
    const step = readAtSnapshot(db.executor, tx, snapshot, () => steps.next(tx), undefined);
    if (step === undefined) return found;
    found.push(step);
  }
}

const shown = (page: number, generation: number, where: number, key: unknown): string =>
  sharesPage(where) ? `${page} ${generation} ${where}` : `key ${key}`;

function remembered(db: LocalDatabase, map: RememberedMap, snapshot: Snapshot): string[] {
  return stepsOf(db, map, snapshot).flatMap(({ pages, generations, wheres, keys, count }) =>
    Array.from({ length: count }, (_, i) =>
      shown(pages[i], generations[i], wheres[i], keys.get(i)),
    ),
  );
}

function walked(db: LocalDatabase, snapshot: Snapshot): string[] {
  const walk = new MapWalk(tableOf(db), () => true);
  const tx = new Transaction(db.executor);
  const found: string[] = [];
  while (readAtSnapshot(db.executor, tx, snapshot, () => walk.next(tx, 100), undefined)) {
    for (const at of walk.found) {
      found.push(shown(walk.pages[at], walk.generations[at], walk.wheres[at], walk.keys[at]));
    }
  }
  return found;
}

type Act =
  | { readonly kind: "write" | "remove"; readonly from: number; readonly rows: number }
  | { readonly kind: "move" | "snapshot" };

const acts: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    kind: fc.constantFrom("write" as const, "remove" as const),
    from: fc.nat(2 * ROWS),
    rows: fc.integer({ min: 1, max: 40 }),
  }),
  fc.record({ kind: fc.constantFrom("move" as const, "snapshot" as const) }),
);

describe.each([
  ["hashed", Hashed],
  ["ordered", Ordered],
] as const)("the map of a table that is %s", (_, of) => {
  it("is the same with and without remembering, round for round", async () => {
    const db = (await stores.open({ tables: [of], memoryBytes: 32 * 2 ** 20 })) as Both;
    fill(db, of as typeof Hashed, 0, ROWS, "first");
    moveAll(db);
    const maps = new RememberedMaps();
    let round = 0;
    check(
      fc.property(fc.array(acts, { minLength: 1, maxLength: 6 }), (all) => {
        const old: Snapshot[] = [];
        for (const act of all) {
          round++;
          if (act.kind === "move") moveAll(db);
          else if (act.kind === "snapshot") old.push(snapshotOf(db));
          else if (act.kind === "write") {
            fill(db, of as typeof Hashed, act.from, act.from + act.rows, `round ${round}`);
          } else if (act.kind === "remove") {
            db.transactSync((tx) => {
              for (let i = 0; i < act.rows; i++) tx.delete(of, act.from + i);
            });
          }
          // The newest first: what it remembers is too new for the others.
          for (const snapshot of [snapshotOf(db), ...old]) {
            const map = maps.of(tableOf(db));
            expect(remembered(db, map, snapshot)).toEqual(walked(db, snapshot));
            if (!old.includes(snapshot)) snapshot.release();
          }
        }
        for (const snapshot of old) snapshot.release();
      }),
      { numRuns: 15 },
    );
  });
});

describe("steps of a hashed map", () => {
  async function opened(): Promise<{ readonly db: Both; readonly map: RememberedMap }> {
    const db = (await stores.open({ tables: [Hashed], memoryBytes: 32 * 2 ** 20 })) as Both;
    fill(db, Hashed, 0, ROWS, "first");
    moveAll(db);
    return { db, map: new RememberedMap(tableOf(db)) };
  }

  it("are read again only where something has changed", async () => {
    const { db, map } = await opened();
    const walk = (): void => {
      const snapshot = snapshotOf(db);
      stepsOf(db, map, snapshot);
      snapshot.release();
    };
    walk();
    const { read } = map;
    expect(read).toBeGreaterThan(1);
    walk();
    expect([map.read, map.unchanged]).toEqual([read, read]);
    db.put(Hashed, { id: 7, text: "another" });
    walk();
    expect([map.read, map.unchanged]).toEqual([read + 1, 2 * read - 1]);
    expect(map.bytes).toBeGreaterThan(0);
  });

  it("that a transaction depends on end its attempt when another has changed them", async () => {
    const { db, map } = await opened();
    const snapshot = snapshotOf(db);
    const steps = stepsOf(db, map, snapshot);
    snapshot.release();
    const other = (await stores.open({ path: db.path, tables: [Hashed] })) as Both;
    const tx = new Transaction(db.executor);
    const attempts: boolean[] = [];
    const body = (): void => {
      attempts.push(steps.every(({ seen }) => seen!.dependIn(tx)));
      if (attempts.length === 1) other.put(Hashed, { id: 7, text: "meanwhile" });
    };
    runReadOnly(db.executor, tx, body, undefined);
    // What was the same when it looked was not when it would have committed.
    expect(attempts).toEqual([true, false]);
  });
});
