/**
 * neoDBMS, "Update NDP" (Bernhardt et al., TODS 2026), as far as it is built, section by section. "Deviation" names
 * what is different here and why; decisions 0062 to 0065 have the whole of it.
 *
 * Deviations that concern all of it: the device is threads of the process, which read the store's memory, so nothing is
 * passed along with an operation (§2.3.3). Versions are not linked (§2.3.4): old places stay in the versions of the
 * map that snapshots keep. An update compares places when it is applied, and locks nothing before (§5).
 *
 * Absent: the shared lock table (§5.1) and controlled lock violation (§5.4), for which there is no need (decision 0066).
 * Otherwise: SELECT FOR UPDATE is priority (§7.2, decision 0112), the overflow log a second copy of the pages (§6.2,
 * decision 0111, tests/device/media-log.test.ts). Figures with times are in `npm run bench -- device`: tests assert none.
 */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { knownDevice } from "../../src/device/device.ts";
import { PAGE_BYTES } from "../../src/device/page.ts";
import { runReadOnly } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { str, table, u32 } from "../../src/index.ts";
import { figureOf } from "../../src/log/figures.ts";
import type { Cursor } from "../../src/stores/store.ts";
import { type DeviceWork, workOf } from "../../src/tables/device/device-work.ts";
import { hasDeviceJobs } from "../../src/tables/device/elements/device-jobs.ts";
import { count, sum } from "../../src/tables/expressions/aggregates.ts";
import { failure, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
type Both = Database & LocalDatabase;

/** Rows of 1 KB, as YCSB has them. */
const fields = Object.fromEntries(
  Array.from({ length: 10 }, (_, i) => [`field${i}`, str(100)]),
) as Record<`field${0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9}`, ReturnType<typeof str>>;
const User = table(
  "usertable",
  { id: u32(), visits: u32(), ...fields },
  { key: "id", storage: "device" },
);
/** So few that nobody looks through the pages for space meanwhile. */
const ROWS = 400;
const ROW_BYTES = 1_024;
const place = "device" as const;

const workIn = (db: LocalDatabase): DeviceWork => workOf(knownDevice(db.executor)!)[0];

async function loaded(more: object = {}): Promise<Both> {
  const db = (await stores.open({ tables: [User], memoryBytes: 64 * 2 ** 20, ...more })) as Both;
  const text = "0123456789".repeat(10);
  const texts = Object.fromEntries(Object.keys(fields).map((name) => [name, text]));
  db.transactSync((tx) => {
    for (let id = 0; id < ROWS; id++) {
      tx.insert(User, { id, visits: id % 100, ...texts } as never);
    }
  });
  while (workIn(db).mover.move(Number.POSITIVE_INFINITY));
  return db;
}

async function settled(db: LocalDatabase): Promise<void> {
  while (hasDeviceJobs(db.executor)) await new Promise((resolve) => setTimeout(resolve, 1));
}

function freePages(db: LocalDatabase): number {
  const { free } = workIn(db).table;
  const tx = new Transaction(db.executor);
  const cursor = free.cursor({ from: undefined, to: undefined }, false);
  return runReadOnly(db.executor, tx, () => countAll(cursor, tx), undefined);
}

function countAll(cursor: Cursor<unknown>, tx: Transaction): number {
  let all = 0;
  for (let some = cursor.skip(tx); some > 0; some = cursor.skip(tx)) all += some;
  return all;
}

/** The bytes of the first pages. */
function pagesOf(db: LocalDatabase, length: number): Buffer[] {
  const { file } = workIn(db).table;
  return Array.from({ length }, (_, page) =>
    Buffer.from(file.readAlone(page).u8.slice(0, PAGE_BYTES)),
  );
}

describe("§2.3.4 pages and versions", () => {
  it("Table 2: about seven rows of 1 KB fit a page of 8 KB", async () => {
    const db = await loaded();
    const perPage = ROWS / workIn(db).table.file.pages();
    expect(PAGE_BYTES).toBe(8_192);
    expect(perPage).toBeGreaterThan(6.5);
    expect(perPage).toBeLessThanOrEqual(8);
  });

  it('one-point invalidation: "an update never touches the old record"', async () => {
    const db = await loaded();
    const { file } = workIn(db).table;
    const pages = file.pages();
    const before = pagesOf(db, pages);
    await db.updateWhere(User, { place, set: { visits: 1 } });
    await settled(db);
    expect(file.pages()).toBeGreaterThan(pages);
    expect(pagesOf(db, pages)).toEqual(before);
  });

  it("a snapshot from before an update finds the old versions, one from after it the new ones", async () => {
    const db = await loaded();
    const old = db.snapshot();
    await db.updateWhere(User, { place, set: { visits: 7 } });
    const values = (u: { visits: never }) => ({ n: count(), sum: sum(u.visits) });
    const before = await old.aggregate(User, { place, values: values as never });
    expect(before).toEqual({ n: ROWS, sum: (99 * 100 * ROWS) / 200 });
    expect(await db.aggregate(User, { place, values: values as never })).toEqual({
      n: ROWS,
      sum: 7 * ROWS,
    });
    old.close();
  });
});

describe("§4 the life of an update", () => {
  it("§4.1.3: the whole map is walked over, and rows are written to pages, never through memory", async () => {
    const db = await loaded();
    const { table: shared } = workIn(db);
    const written = shared.writtenBytes;
    const pages = shared.file.pages();
    const { matched, changed } = await db.updateWhere(User, {
      place,
      where: (u) => u.visits.lt(50),
      set: { field0: "new" },
    });
    expect({ matched, changed }).toEqual({ matched: ROWS / 2, changed: ROWS / 2 });
    // The delta has got nothing, and the new versions fill as many pages as they need: of the pages that were reserved
    // ahead (§4.1.2), as many as the disk's pace asked for, the rest is given back.
    expect(shared.writtenBytes).toBe(written);
    await settled(db);
    const added = shared.file.pages() - pages - freePages(db);
    expect(added * PAGE_BYTES).toBeGreaterThanOrEqual((ROWS / 2) * ROW_BYTES);
    expect(added * PAGE_BYTES).toBeLessThan((ROWS / 2) * ROW_BYTES * 1.5);
  });

  it("§5.3: what the host has committed meanwhile is not lost (deviation: it is repaired, not aborted)", async () => {
    const db = await loaded();
    let isOver = false;
    let hostAdded = 0;
    const host = (async () => {
      for (let n = 0; !isOver; n++) {
        const id = (n * 13) % ROWS;
        await db.transact(async (tx) => {
          const row = (await tx.get(User, id))!;
          await tx.update(User, id, { visits: row.visits + 1_000 });
        });
        hostAdded += 1_000;
      }
    })();
    const ROUNDS = 5;
    for (let round = 0; round < ROUNDS; round++) {
      const { changed } = await db.updateWhere(User, {
        place,
        set: (u) => ({ visits: u.visits.plus(1) }),
      });
      expect(changed).toBe(ROWS);
    }
    isOver = true;
    await host;
    const { total } = await db.aggregate(User, { values: (u) => ({ total: sum(u.visits) }) });
    expect(total).toBe((99 * 100 * ROWS) / 200 + ROUNDS * ROWS + hostAdded);
  });

  it("§4.1.8 abort: nothing has changed, no lock is left, and the space is taken back", async () => {
    const db = await loaded();
    const values = (u: { visits: never }) => ({ n: count(), sum: sum(u.visits) });
    const before = await db.aggregate(User, { values: values as never });
    const { file } = workIn(db).table;
    const pages = file.pages();
    await failure("SITU_ARITHMETIC", () =>
      db.updateWhere(User, {
        place,
        // Fails at one row of a hundred.
        set: (u) => ({ field0: "never", visits: u.visits.plus(2 ** 32 - 99) }),
      }),
    );
    expect(await db.aggregate(User, { values: values as never })).toEqual(before);
    // Rows can be written at once: nobody holds them.
    for (let id = 0; id < 20; id++) db.update(User, id, { field1: "written" });
    await settled(db);
    expect(freePages(db)).toBe(file.pages() - pages);
  });
});

describe("§6 logging", () => {
  it("basic logging: the log gets maps, not rows (Table 2: about 16 bytes of maps for a row)", async () => {
    const db = await loaded({ durability: "lazy" });
    await db.durable();
    const { memory } = db.executor;
    const start = figureOf(memory, "logBytes");
    await db.updateWhere(User, { place, set: { field0: "on the device" } });
    await db.durable();
    const onDevice = figureOf(memory, "logBytes") - start;
    await db.updateWhere(User, { place: "host", set: { field0: "on the host" } });
    await db.durable();
    const onHost = figureOf(memory, "logBytes") - start - onDevice;
    // Deviation: records name words of hash buckets, 12 bytes of a place and what says where they lie.
    expect(onDevice / ROWS).toBeLessThan(64);
    expect(onHost / ROWS).toBeGreaterThan(0.9 * ROW_BYTES);
    expect(onHost / onDevice).toBeGreaterThan(16);
  });
});
