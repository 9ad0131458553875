/** Adds, deletes and changes of type in several processes that are killed: both directions of every edge agree. */

import { afterAll, expect, test } from "vitest";
import { Random } from "../../src/runtime/random.ts";
import { endAll, StoreFolder } from "../helpers/engine-processes.ts";
import { restProblems, slotProblems } from "../helpers/process-rest.ts";
import { killAndReplace, type Life } from "../helpers/process-storm.ts";
import { freshSeed, SOAK } from "../helpers/seed.ts";
import type { GraphOrder } from "./graph-child.ts";
import { graphProblems, IDS, openGraph, openStore } from "./graph-store.ts";

const KILLS = 15 * SOAK;
const ENOUGH = { commits: 500, recoveries: 1 };

afterAll(endAll);

test(`${KILLS} kills: every edge has its inverse, and every list its count`, async () => {
  const seed = freshSeed();
  const replay = `replay with SITU_SEED=${seed}`;
  const folder = new StoreFolder();
  const { path } = folder;
  const problems: string[] = [];
  try {
    const first = await openStore(path);
    const made = openGraph(first);
    for (let id = 1; id <= IDS; id++) made.objAdd("user", { name: "" }, { id });
    await first.close();
    const kills = await killAndReplace({
      random: new Random(seed),
      seats: Array.from({ length: 3 }, () => ({
        script: "graph-child",
        order: (life: Life): GraphOrder => ({ ...life, path }),
      })),
      kills: KILLS,
      endMs: performance.now(),
      isEnough: async () => {
        const db = await openStore(path);
        const { commits, recoveries } = db.stats().counters;
        await db.close();
        return commits > ENOUGH.commits && recoveries > ENOUGH.recoveries;
      },
      withStops: true,
      longest: { ms: 1_200, steps: 200_000 },
      problems,
    });
    expect(problems, replay).toEqual([]);
    expect(kills, replay).toBeGreaterThanOrEqual(KILLS);
    const db = await openStore(path);
    try {
      expect(await restProblems(db, 60_000), replay).toEqual([]);
      expect(await slotProblems(path), replay).toEqual([]);
      const g = openGraph(db);
      const ids = Array.from({ length: IDS }, (_, i) => i + 1);
      expect(graphProblems(g, ids), replay).toEqual([]);
      expect((await db.verify()).problems, replay).toEqual([]);
      for (const id of ids) await g.objDelete("user", id);
      expect(ids.filter((id) => g.assocCount(id, "follows") > 0)).toEqual([]);
      expect((await db.verify()).problems, replay).toEqual([]);
    } finally {
      await db.close();
    }
  } finally {
    endAll();
    await folder.remove();
  }
});
