/**
 * How far the log may be behind in "lazy": commits wait, with nothing locked, instead of being
 * acknowledged beyond `lagMs`; a writer that rests is called by the next commit.
 */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { type HeldLog, loseMemory, openHeld } from "../helpers/logged-stores.ts";
import { eventually, failure, failureSync, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
const LAG_MS = 20;

const put = (db: Database, id: number, timeoutMs = 10_000): void =>
  db.transactSync((tx) => tx.put(Cell, { id, value: id }), { timeoutMs });

/** A log whose writer lives and gets nothing to disk but by `log.round()`: a disk as slow as one likes. */
const held = (): Promise<{ db: Database; log: HeldLog; path: string }> =>
  openHeld(stores, { tables: [Cell], lagMs: LAG_MS });

describe("a log that is behind by more than lagMs", () => {
  it("lets nobody commit, sync or async; reads go on; it names who is behind", async () => {
    const { db, log } = await held();
    put(db, 1);
    await sleep(2 * LAG_MS);
    const error = failureSync("SITU_TIMEOUT", () => put(db, 2, 100));
    expect(error.message).toMatch(/nothing was committed: the log is behind.*process \d+/);
    await failure("SITU_TIMEOUT", () =>
      db.transact((tx) => tx.put(Cell, { id: 2, value: 2 }), { timeoutMs: 100 }),
    );
    expect(db.get(Cell, 1)).toEqual({ id: 1, value: 1 });
    expect(db.get(Cell, 2)).toBeUndefined();
    expect(log.round()).toBe("done");
    log.executor.durability.setRests(true);
    put(db, 2);
    expect(db.get(Cell, 2)).toEqual({ id: 2, value: 2 });
  });

  it("lets them go on when it has caught up", async () => {
    const { db, log } = await held();
    put(db, 1);
    await sleep(2 * LAG_MS);
    const waiting = db.transact((tx) => tx.put(Cell, { id: 2, value: 2 }), { timeoutMs: 20_000 });
    let isDone = false;
    void waiting.then(() => {
      isDone = true;
    });
    await sleep(2 * LAG_MS);
    expect(isDone).toBe(false);
    while (!isDone) {
      log.round();
      await sleep(1);
    }
    await waiting;
  });

  it("on a disk whose rounds take longer than that: commits wait, and go on", async () => {
    const { db, log } = await held();
    let rounds = 0;
    const disk = setInterval(() => {
      log.round();
      rounds++;
    }, 3 * LAG_MS);
    stores.later(() => clearInterval(disk));
    for (let id = 1; id <= 8; id++) {
      await db.transact((tx) => tx.put(Cell, { id, value: id }), { timeoutMs: 20_000 });
      await sleep(LAG_MS + 5);
    }
    expect(db.count(Cell)).toBe(8);
    expect(rounds).toBeGreaterThan(0);
  });
});

describe("a writer that rests", () => {
  it("is called by the next commit, and gets that to disk", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Cell], durability: "lazy" });
    for (let id = 1; id <= 3; id++) {
      // Long enough for it to rest.
      await sleep(400);
      const { durableEpoch } = db.stats().durability;
      put(db, id);
      await eventually(() => db.stats().durability.durableEpoch > durableEpoch);
    }
    await db.close();
    loseMemory(path);
    const again = await stores.open({ path, tables: [Cell] });
    expect(again.count(Cell)).toBe(3);
  });
});
