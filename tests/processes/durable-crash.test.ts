/**
 * The real thing: processes that commit are all killed with SIGKILL at a random moment; the memory is there
 * still, or it is deleted as a reboot would; the store is opened again. The longer form is
 * `node dist/tests/processes/soak.js --storm durable --minutes 10`.
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { Random } from "../../src/runtime/random.ts";
import { endAll, StoreFolder, until } from "../helpers/engine-processes.ts";
import { Talker } from "../helpers/process-group.ts";
import { freshSeed, SOAK } from "../helpers/seed.ts";
import type { DurableOrder } from "./durable-child.ts";
import { judge } from "./durable-history.ts";
import { fillDurable, logName, openDurable } from "./durable-store.ts";
import { loseMemory, runDurableStorm, structureProblems } from "./durable-storm.ts";

/** So few that processes die while checkpoints are taken. */
const CHECKPOINT_BYTES = 128 * 1024;

afterAll(endAll);

const seed = freshSeed();
const KILLS = 10 * SOAK;
const replay = `replay with SITU_SEED=${seed}`;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test("killed one by one and all at once, with memory lost or not: nothing acknowledged in sync is lost", async () => {
  const report = await runDurableStorm({ seed, processes: 3, kills: KILLS, minutes: 0 });
  expect(report.problems, replay).toEqual([]);
  expect(report.crashes, replay).toBeGreaterThanOrEqual(5);
  expect(report.kills, replay).toBeGreaterThanOrEqual(KILLS);
  expect(report.acknowledged, replay).toBeGreaterThan(0);
});

const LEAST_OUTCOMES = 20;

/** How many transactions a process has written down as ended. */
function outcomesIn(log: string): number {
  return existsSync(log) ? readFileSync(log, "utf8").split('"lists":').length - 1 : 0;
}

/** Processes at work for a while, then all killed. */
async function crash(path: string, round: number, random: Random): Promise<void> {
  const orders = [1, 2].map(
    (n): DurableOrder => ({
      life: 2 * round + n,
      seed: 1 + random.below(2 ** 30),
      dieAtStep: 0,
      path,
      log: join(path, logName(round, 2 * round + n)),
      syncPercent: 20,
      checkpointBytes: CHECKPOINT_BYTES,
      takesCheckpoints: n === 1,
    }),
  );
  const crew = orders.map((order) => new Talker("durable-child", order));
  await Promise.all(crew.map((member) => member.hear("ready")));
  // However slow the machine is, each of them has done something by then.
  for (const { log } of orders) {
    await until("some outcomes", () => outcomesIn(log) > LEAST_OUTCOMES);
  }
  await sleep(100 + random.below(500));
  for (const { running } of crew) running.child.kill("SIGKILL");
  await Promise.all(crew.map(({ running }) => running.ended));
}

test("a mere crash of all processes: opening joins what is there, and nothing at all is lost", async () => {
  const random = new Random(seed);
  const folder = new StoreFolder();
  const { path } = folder;
  try {
    const first = await openDurable(path, { durability: "lazy" });
    fillDurable(first);
    await first.close();
    for (let round = 1; round <= 3; round++) {
      await crash(path, round, random);
      const db = await openDurable(path);
      expect(db.recovered, replay).toBeUndefined();
      const { problems, lost, acknowledged } = judge(db, path, new Set());
      await db.close();
      expect(problems, replay).toEqual([]);
      expect(lost, replay).toBe(0);
      expect(acknowledged, replay).toBeGreaterThan(10);
    }
    // What the dead had not got to disk, the last one has: a reboot now loses nothing either.
    loseMemory(path);
    const db = await openDurable(path);
    expect(db.recovered?.epoch, replay).toBeGreaterThan(0);
    const { problems, lost } = judge(db, path, new Set());
    await db.close();
    expect(problems, replay).toEqual([]);
    expect(lost, replay).toBe(0);
    expect(await structureProblems(path), replay).toEqual([]);
  } finally {
    endAll();
    await folder.remove();
  }
});

test("all killed and the memory lost, many times: what is there is a whole prefix each time", async () => {
  const random = new Random(seed + 1);
  const folder = new StoreFolder();
  const { path } = folder;
  const reboots = new Set<number>();
  let promises = 0;
  try {
    const first = await openDurable(path, { durability: "lazy" });
    fillDurable(first);
    await first.close();
    for (let round = 1; round <= 4; round++) {
      await crash(path, round, random);
      loseMemory(path);
      reboots.add(round);
      const db = await openDurable(path);
      expect(db.recovered, replay).toBeDefined();
      const { problems, promised } = judge(db, path, reboots);
      await db.close();
      expect(problems, replay).toEqual([]);
      promises += promised;
    }
    // In a single round, on a busy machine, all may be killed before anything was promised.
    expect(promises, replay).toBeGreaterThan(0);
    expect(await structureProblems(path), replay).toEqual([]);
  } finally {
    endAll();
    await folder.remove();
  }
});
