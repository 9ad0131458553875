/**
 * The tests of crash points must fail when a step of a protocol is missing. Here one is taken out of making a
 * store smaller, migrating and sweeping, and the checks of those tests have to find it. (tests/upgrade has that of upgrading, and
 * tests/checkers/planted-bugs.test.ts those of the commit.)
 */

import "../helpers/engine-all-atomics.ts";

import { afterEach, describe, expect, test, vi } from "vitest";
import { localDatabase } from "../../src/database/local/local-database.ts";
import { BlockTable } from "../../src/memory/blocks.ts";
import { EXPIRY_SWEEPER } from "../../src/memory/control.ts";
import { StoreMemory } from "../../src/memory/store-memory.ts";
import { EntryIndex } from "../../src/tables/indexes/entry-index.ts";
import { Successor } from "../../src/tables/migrations/successor.ts";
import { endAll, StoreFolder, start } from "../helpers/engine-processes.ts";
import { SHARINGS } from "../helpers/engine-store.ts";
import { atEachStep, shrink, shrinkBeside } from "../helpers/resize-stage.ts";
import type { SweepOrder } from "./expiry-child.ts";
import { addRound, openSessions, Session } from "./expiry-store.ts";
import type { MigrateOrder } from "./migrate-child.ts";
import { ItemModel, migrateItems, openItems } from "./migrate-store.ts";

afterEach(() => {
  vi.restoreAllMocks();
  endAll();
});

async function withFolder(work: (path: string) => Promise<void>): Promise<void> {
  const folder = new StoreFolder();
  try {
    await work(folder.path);
  } finally {
    endAll();
    await folder.remove();
  }
}

async function killed(script: string, order: MigrateOrder | SweepOrder): Promise<void> {
  const { signal, stderr } = await start(script, order).ended;
  expect(signal, stderr).toBe("SIGKILL");
}

describe("making a store smaller", () => {
  const shrinks = (): void =>
    atEachStep(
      SHARINGS[0],
      () => {},
      ({ dying }) => void shrink(dying, 1),
    );

  test("is caught if nobody frees what a dead one has taken", () => {
    vi.spyOn(BlockTable.prototype, "orphan").mockImplementation(() => {});
    expect(shrinks).toThrow(/dead (before|after) step/);
  });

  test("is caught if a region that a dead one was ending stays between two states", () => {
    vi.spyOn(StoreMemory.prototype, "abandonRegions").mockImplementation(() => {});
    expect(shrinks).toThrow();
  });

  test("is caught if regions end whose units were not taken first", () => {
    vi.spyOn(BlockTable.prototype, "takeRegion").mockImplementation(() => true);
    expect(() => shrinkBeside(SHARINGS[0], "before")).toThrow(/before the limit/);
    expect(() => shrinkBeside(SHARINGS[0], "after")).toThrow(/after the limit/);
  });
});

describe("a migration", () => {
  /** Dies at a step; somebody else writes, and then goes on. What is wrong in the end. */
  async function problemsAfter(step: number, whileWriting: () => void): Promise<string[]> {
    const problems: string[] = [];
    await withFolder(async (path) => {
      const model = new ItemModel(1);
      const db = await openItems(path, { durability: "none" });
      try {
        for (let n = 0; n < 100; n++) model.change(db);
        await killed("migrate-child", { path, direction: "wider", step, when: "after" });
        whileWriting();
        for (let n = 0; n < 100; n++) model.change(db);
        vi.restoreAllMocks();
        await migrateItems(db, "wider");
        problems.push(...model.problems(db).map(String));
        problems.push(...(await db.verify()).problems.map(String));
      } finally {
        await db.close();
      }
    });
    return problems;
  }

  test("is caught if changes do not follow into the rows that were copied", async () => {
    const caught: number[] = [];
    for (const step of [6, 8, 10, 12]) {
      expect(await problemsAfter(step, () => {}), `step ${step}, nothing planted`).toEqual([]);
      const problems = await problemsAfter(step, () => {
        vi.spyOn(Successor.prototype, "follow").mockImplementation(() => {});
        vi.spyOn(Successor.prototype, "patch").mockImplementation(() => {});
      });
      if (problems.length > 0) caught.push(step);
    }
    expect(caught).not.toEqual([]);
  });
});

describe("a sweep of expired rows", () => {
  test("is caught if rows go without their index entries", () =>
    withFolder(async (path) => {
      const db = await openSessions(path);
      addRound(db, 0);
      vi.spyOn(EntryIndex.prototype, "remove").mockImplementation(() => {});
      localDatabase(db).expiry.sweep(60_000);
      vi.restoreAllMocks();
      expect((await db.verify()).problems).not.toEqual([]);
      await db.close();
    }));

  test("is caught if a dead sweeper keeps its role", () =>
    withFolder(async (path) => {
      await (await openSessions(path)).close();
      await killed("expiry-child", { path, round: 0, step: 10, when: "before" });
      const real = Atomics.compareExchange as unknown as (...args: number[]) => number;
      const planted = vi.spyOn(Atomics, "compareExchange") as unknown as {
        mockImplementation(replaced: (...args: number[]) => number): void;
      };
      planted.mockImplementation((array, index, expected, value) =>
        index === EXPIRY_SWEEPER && value === 0 ? expected : real(array, index, expected, value),
      );
      const db = await openSessions(path);
      localDatabase(db).expiry.sweep(60_000);
      // One row should be left: the one that never expires.
      expect((await db.inspect("session")).rows).toBe(4);
      expect(db.count(Session)).toBe(1);
      vi.restoreAllMocks();
      await db.close();
    }));
});
