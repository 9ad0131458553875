/** Indexes are added to tables one after the other, while processes that know nothing of them write. */

import { afterAll, expect, test } from "vitest";
import type { Database } from "../../src/index.ts";
import { endAll, StoreFolder } from "../helpers/engine-processes.ts";
import { Talker } from "../helpers/process-group.ts";
import { indexProblems } from "../helpers/process-rest.ts";
import { freshSeed } from "../helpers/seed.ts";
import type { OnlineOrder } from "./index-online-child.ts";
import { type Items, itemsWith, openItems, SHELVES } from "./index-online-store.ts";

const PROCESSES = 3;
const INDEXES = 6;
const shelves = Array.from({ length: SHELVES }, (_, shelf) => shelf);

afterAll(endAll);

/** Compares indexes and rows in one snapshot. */
function compare(db: Database, tables: readonly Items[]): string[] {
  using snapshot = db.snapshot();
  const gone = { "index 0": shelves, "index 2": shelves };
  return tables.flatMap((items) => indexProblems(snapshot, items, gone));
}

test(`${INDEXES} indexes on two tables: every one agrees with the rows, from the beginning`, async () => {
  const seed = freshSeed();
  const replay = `replay with SITU_SEED=${seed}`;
  const folder = new StoreFolder();
  const { path } = folder;
  try {
    const children = Array.from({ length: PROCESSES }, (_, which) => {
      const dawdles = which === 0;
      const order: OnlineOrder = { path, which, seed: seed + which, dawdles };
      return new Talker("index-online-child", order, dawdles ? { SITU_ATOMICS: "all" } : {});
    });
    await Promise.all(children.map((child) => child.hear("ready")));
    for (let indexes = 1; indexes <= INDEXES; indexes++) {
      const items = itemsWith(indexes);
      const db = await openItems(path, items);
      try {
        // Now, while the others go on; and once more, after they have.
        expect(compare(db, items), `${indexes} indexes, ${replay}`).toEqual([]);
        await new Promise((resolve) => setTimeout(resolve, 20));
        expect(compare(db, items), `${indexes} indexes, ${replay}`).toEqual([]);
      } finally {
        await db.close();
      }
    }
    for (const child of children) child.running.child.stdin?.end();
    for (const child of children) {
      const { changes } = await child.report<{ changes: number }>();
      expect(changes, "changes of each process").toBeGreaterThan(20);
    }
    const items = itemsWith(INDEXES);
    const db = await openItems(path, items);
    expect(compare(db, items), replay).toEqual([]);
    await db.close();
  } finally {
    endAll();
    await folder.remove();
  }
});
