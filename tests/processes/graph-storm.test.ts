/** Adds, deletes and changes of type in several processes that are killed: both directions of every edge agree. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { readIdentity, removeMemory } from "../../src/folder/store-files.ts";
import type { Database, DurabilityMode } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { endAll, StoreFolder, start } from "../helpers/engine-processes.ts";
import { restProblems, slotProblems } from "../helpers/process-rest.ts";
import { killAndReplace, type Life } from "../helpers/process-storm.ts";
import { freshSeed, SOAK } from "../helpers/seed.ts";
import type { GraphOrder } from "./graph-child.ts";
import {
  fillHub,
  graphProblems,
  HUBS,
  IDS,
  openGraph,
  openStore,
  SPOKES,
  type StormGraph,
} from "./graph-store.ts";

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

const HUB_KILLS = 4 * SOAK;
const ALL_IDS = Array.from({ length: HUBS + SPOKES }, (_, i) => i + 1);

/** Somebody goes on with each deletion that was under way; then the hub can be added. */
async function hubsBack(db: Database, g: StormGraph): Promise<void> {
  const deadline = performance.now() + 60_000;
  for (let hub = 1; hub <= HUBS; hub++) {
    while (g.objGet("user", hub) === undefined) {
      try {
        g.objAdd("user", { name: "" }, { id: hub });
      } catch (error) {
        if (performance.now() > deadline) throw error;
        await sleep(10);
      }
    }
  }
  expect((await db.verify()).problems).toEqual([]);
}

/** Of what is left: that it is sound, can be filled again, and deleted in steps. */
async function checkHubs(path: string, durability: DurabilityMode, replay: string): Promise<void> {
  const db = await openStore(path, durability);
  try {
    const g = openGraph(db);
    await hubsBack(db, g);
    expect(await restProblems(db, 60_000), replay).toEqual([]);
    if (durability === "none") expect(await slotProblems(path), replay).toEqual([]);
    expect(graphProblems(g, ALL_IDS), replay).toEqual([]);
    for (let hub = 1; hub <= HUBS; hub++) fillHub(db, g, hub);
    expect(graphProblems(g, ALL_IDS), replay).toEqual([]);
    for (let hub = 1; hub <= HUBS; hub++) {
      const { edges } = await g.objDelete("user", hub);
      expect(edges, replay).toBeGreaterThanOrEqual(2 * SPOKES);
    }
    expect(ALL_IDS.filter((id) => g.assocCount(id, "follows") > 0)).toEqual([]);
    expect((await db.verify()).problems, replay).toEqual([]);
  } finally {
    await db.close();
  }
}

test.each(["none", "lazy"] as const)(
  `${HUB_KILLS} kills of processes that change and delete objects with large lists, %s`,
  async (durability) => {
    const seed = freshSeed();
    const replay = `replay with SITU_SEED=${seed}`;
    const folder = new StoreFolder();
    const { path } = folder;
    const problems: string[] = [];
    const orderOf = (life: Life): GraphOrder => ({ ...life, path, hubs: true, durability });
    try {
      const first = await openStore(path, durability);
      const made = openGraph(first);
      for (const id of ALL_IDS) made.objAdd("user", { name: "" }, { id });
      for (let hub = 1; hub <= HUBS; hub++) fillHub(first, made, hub);
      await first.close();
      const seats = Array.from({ length: 3 }, () => ({ script: "graph-child", order: orderOf }));
      const kills = await killAndReplace({
        random: new Random(seed),
        seats,
        kills: HUB_KILLS,
        endMs: performance.now(),
        withStops: true,
        longest: { ms: 1_200, steps: 400_000 },
        problems,
      });
      expect(problems, replay).toEqual([]);
      expect(kills, replay).toBeGreaterThanOrEqual(HUB_KILLS);
      await checkHubs(path, durability, replay);
      if (durability === "none") return;
      // All of them at once, and with them the memory: what is left is the log.
      const last = [1, 2, 3].map((life) =>
        start("graph-child", orderOf({ life, seed: seed + life, dieAtStep: 0 })),
      );
      await Promise.all(
        last.map(({ child }) => new Promise((ready) => child.stdout?.once("data", ready))),
      );
      await sleep(500);
      for (const { child } of last) child.kill("SIGKILL");
      await Promise.all(last.map(({ ended }) => ended));
      removeMemory(readIdentity(path)!);
      await checkHubs(path, durability, replay);
    } finally {
      endAll();
      await folder.remove();
    }
  },
);
