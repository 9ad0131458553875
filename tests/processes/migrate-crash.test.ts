/**
 * docs/FAULTS.md, "The life of a store": a process killed with SIGKILL at each step of a migration, while
 * others write to the table: the old or the new schema, nothing between, and the next one goes on.
 */

import { afterAll, describe, expect, test } from "vitest";
import { localDatabase } from "../../src/database/local/local-database.ts";
import { readIdentity, removeMemory } from "../../src/folder/store-files.ts";
import type { Database } from "../../src/index.ts";
import { readSchemas } from "../../src/tables/catalogue.ts";
import type { When } from "../helpers/engine-atomics.ts";
import { type Ended, endAll, StoreFolder, start, until } from "../helpers/engine-processes.ts";
import { freshSeed, SOAK } from "../helpers/seed.ts";
import type { MigrateOrder } from "./migrate-child.ts";
import { type Direction, ItemModel, isMigrated, migrateItems, openItems } from "./migrate-store.ts";

const DIRECTIONS: readonly Direction[] = ["wider", "back"];
const INDEXED: readonly Direction[] = ["indexed", "indexed anew"];

afterAll(endAll);

async function run(order: MigrateOrder): Promise<Ended> {
  const ended = await start("migrate-child", order).ended;
  if (ended.signal !== "SIGKILL" && ended.code !== 0) throw new Error(ended.stderr);
  return ended;
}

const stepsOf = ({ stdout }: Ended): number => (JSON.parse(stdout) as { steps: number }).steps;

/** Changes rows for as long as something is under way. */
async function changeWhile(
  model: ItemModel,
  databases: readonly Database[],
  underWay: Promise<unknown>,
): Promise<void> {
  let isOver = false;
  const over = underWay.finally(() => {
    isOver = true;
  });
  for (let turn = 0; !isOver; turn++) {
    model.change(databases[turn % databases.length]);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await over;
}

async function check(model: ItemModel, db: Database, point: string): Promise<void> {
  expect(model.problems(db), point).toEqual([]);
  expect((await db.verify()).problems, point).toEqual([]);
}

/** Until the structures of before are freed. */
async function settled(db: Database): Promise<void> {
  const { executor } = localDatabase(db);
  const isClear = (): boolean =>
    readSchemas(executor).every(({ schema }) => schema.remains === undefined);
  await until("remains to be freed", isClear);
}

describe("SIGKILL at each step of a migration", () => {
  test.each([
    ["rows", DIRECTIONS],
    ["an index", INDEXED],
  ])("of %s: others go on, and finish it", async (_, directions) => {
    const seed = freshSeed();
    const folder = new StoreFolder();
    const { path } = folder;
    const model = new ItemModel(seed);
    const databases = [
      await openItems(path, { durability: "none" }),
      await openItems(path, { durability: "none" }),
    ];
    const [db] = databases;
    try {
      for (let n = 0; n < 100; n++) model.change(db);
      let survivors = 0;
      // Each step once, before or after it, in either direction; in a soak all of these.
      for (let round = 0; survivors < directions.length; round++) {
        const step = 1 + (SOAK > 1 ? round >> 2 : round);
        const direction = directions[round % 2];
        const when: When = (round >> 1) % 2 === 0 ? "before" : "after";
        const point = `${direction}, killed ${when} step ${step}; SITU_SEED=${seed}`;
        const child = run({ path, direction, step, when });
        await changeWhile(model, databases, child);
        survivors = (await child).signal === "SIGKILL" ? 0 : survivors + 1;
        await check(model, db, point);
        // One of those that have it open goes on, while the other one writes.
        await changeWhile(model, [databases[1]], migrateItems(db, direction));
        expect(isMigrated(db, direction), point).toBe(true);
        await settled(db);
        await check(model, db, `${point}, finished`);
      }
    } finally {
      endAll();
      for (const each of databases) await each.close();
      await folder.remove();
    }
  });

  test("and the memory is lost: the log has the old or the new", async () => {
    const seed = freshSeed();
    const folder = new StoreFolder();
    const { path } = folder;
    const model = new ItemModel(seed);
    try {
      const first = await openItems(path, { durability: "sync" });
      for (let n = 0; n < 100; n++) model.change(first);
      await first.close();
      let survivors = 0;
      for (
        let round = 0, step = 2;
        survivors < DIRECTIONS.length;
        round++, step += SOAK > 1 ? 1 : 3
      ) {
        const direction = DIRECTIONS[round % 2];
        const point = `${direction}, killed after step ${step}; SITU_SEED=${seed}`;
        const { signal } = await run({ path, direction, step, when: "after" });
        survivors = signal === "SIGKILL" ? 0 : survivors + 1;
        removeMemory(readIdentity(path)!);
        const db = await openItems(path, { durability: "sync" });
        try {
          expect(db.recovered, point).toBeDefined();
          await check(model, db, point);
          model.change(db);
          await migrateItems(db, direction);
          await settled(db);
          await check(model, db, `${point}, finished`);
        } finally {
          await db.close();
        }
      }
    } finally {
      endAll();
      await folder.remove();
    }
  });

  test("a rehearsal has as many steps as there are states", async () => {
    const folder = new StoreFolder();
    try {
      const db = await openItems(folder.path, { durability: "none" });
      for (let n = 0, model = new ItemModel(1); n < 50; n++) model.change(db);
      const ended = await run({ path: folder.path, direction: "wider", step: 0, when: "before" });
      // Announced, building, filled, switching, replaced, and what is freed of two structures.
      expect(stepsOf(ended)).toBeGreaterThan(12);
      await db.close();
    } finally {
      endAll();
      await folder.remove();
    }
  });
});
