/**
 * docs/FAULTS.md, "One machine": a process killed with SIGKILL before and after every step of its commit;
 * the recovering process killed at each of its steps too. Whole or not at all, no lock is left.
 */

import { afterAll, describe, expect, test } from "vitest";
import type { When } from "../helpers/engine-atomics.ts";
import { type Ended, endAll, StoreFolder, start } from "../helpers/engine-processes.ts";
import { SOAK } from "../helpers/seed.ts";
import type { CrashOrder } from "./crash-child.ts";
import { describeStore, expectedStore, fillStore, openStore, playRound } from "./crash-store.ts";

const MOST_STEPS = 300;
/** In one process, tests/engine/crash-points.test.ts tries every step; here a step costs two processes. */
const STRIDE = SOAK > 1 ? 1 : 8;
/** By how many steps two runs of one commit may differ: looks at the epoch, which others move. */
const SPARE_STEPS = 4;

/** One store in which round after round is played, by processes that die over it. */
class Lane {
  readonly folder = new StoreFolder();
  rounds = 0;
  readonly outcomes = { done: 0, "not done": 0 };

  async create(): Promise<void> {
    const db = await openStore(this.folder.path);
    fillStore(db);
    await db.close();
  }

  async run(order: Omit<CrashOrder, "path" | "signal" | "round">): Promise<Ended> {
    const { path } = this.folder;
    const child = start("crash-child", {
      ...order,
      path,
      signal: "SIGKILL",
      round: this.rounds + 1,
    });
    const ended = await child.ended;
    if (ended.signal !== "SIGKILL" && ended.code !== 0) throw new Error(ended.stderr);
    return ended;
  }

  /** A fresh process looks: the round was played whole or not at all; then it plays one itself. */
  async check(point: string): Promise<void> {
    const db = await openStore(this.folder.path);
    try {
      const next = this.rounds + 1;
      const seen = describeStore(db, next);
      const done = seen === expectedStore(next, next);
      if (!done) expect(seen, point).toBe(expectedStore(this.rounds, next));
      this.outcomes[done ? "done" : "not done"]++;
      if (done) this.rounds++;
      expect(
        db.stats().executors.map(({ pid }) => pid),
        `${point}: executors`,
      ).toEqual([process.pid]);

      // The same keys, at once: nothing is locked any more, so nobody waits for anything.
      const waits = db.stats().counters.lockWaits;
      db.transactSync((tx) => playRound(tx, this.rounds + 1));
      this.rounds++;
      expect(describeStore(db, this.rounds), point).toBe(expectedStore(this.rounds, this.rounds));
      expect(db.stats().counters.lockWaits, `${point}: waited for a lock`).toBe(waits);
    } finally {
      await db.close();
    }
  }
}

async function withLane(work: (lane: Lane) => Promise<void>): Promise<void> {
  const lane = new Lane();
  try {
    await lane.create();
    await work(lane);
  } finally {
    endAll();
    await lane.folder.remove();
  }
}

async function stepsOf(lane: Lane, role: CrashOrder["role"]): Promise<number> {
  const { stdout } = await lane.run({ role, step: 0, when: "before" });
  if (role === "victim") lane.rounds++;
  return (JSON.parse(stdout) as { steps: number }).steps;
}

describe("SIGKILL at every step", () => {
  afterAll(endAll);

  test.each<When>(["before", "after"])("of a commit: %s it", async (when) => {
    await withLane(async (lane) => {
      const steps = await stepsOf(lane, "victim");
      expect(steps).toBeGreaterThan(15);
      expect(steps).toBeLessThan(MOST_STEPS);
      // "After" differs from "before the next" only in plain stores: both together meet every fourth step, and
      // tests/engine/ tries them all.
      for (let step = when === "before" ? 1 : 4; step <= steps; step += STRIDE) {
        const { signal } = await lane.run({ role: "victim", step, when });
        // The rehearsal may have had a step or two more: then the round was played to its end.
        if (step <= steps - SPARE_STEPS) {
          expect(signal, `${when} step ${step} of ${steps}`).toBe("SIGKILL");
        }
        await lane.check(`killed ${when} step ${step} of ${steps}`);
      }
      expect(lane.outcomes.done).toBeGreaterThan(0);
      expect(lane.outcomes["not done"]).toBeGreaterThan(1);
    });
  });

  test("of the recovery: a third process finishes", async () => {
    await withLane(async (lane) => {
      const steps = await stepsOf(lane, "victim");
      // Deaths that leave much to do: locks taken, committed, half-way through installing.
      const deaths = [0.3, 0.5, 0.6, 0.7, 0.8, 0.95].map((part) => Math.ceil(part * steps));
      let survived = 0;
      for (let step = 1, i = 0; survived < deaths.length; step += STRIDE, i++) {
        const death = deaths[i % deaths.length];
        await lane.run({ role: "victim", step: death, when: "after" });
        const recoverer = await lane.run({
          role: "recoverer",
          step,
          when: i % 2 === 0 ? "before" : "after",
        });
        // The steps differ from death to death: done when the recovery got through for all of them.
        survived = recoverer.signal === "SIGKILL" ? 0 : survived + 1;
        await lane.check(`victim after step ${death}, recoverer at step ${step}`);
        expect(step).toBeLessThan(MOST_STEPS);
      }
      expect(lane.outcomes.done).toBeGreaterThan(3);
      expect(lane.outcomes["not done"]).toBeGreaterThan(3);
    });
  });

  test("of creating a store: the next one to open it creates it anew", async () => {
    let steps = Number.POSITIVE_INFINITY;
    for (let step = 0; step <= steps; step += step < 4 || SOAK > 1 ? 1 : Math.ceil(steps / 8)) {
      const lane = new Lane();
      try {
        const ended = await lane.run({ role: "recoverer", step, when: "before" });
        if (step === 0) steps = (JSON.parse(ended.stdout) as { steps: number }).steps;
        else expect(ended.signal, `step ${step} of ${steps}`).toBe("SIGKILL");
        await lane.create();
        await lane.check(`creator killed before step ${step} of ${steps}`);
      } finally {
        endAll();
        await lane.folder.remove();
      }
    }
  });

  test("a survivor that meets the locks gets past them", async () => {
    await withLane(async (lane) => {
      const steps = await stepsOf(lane, "victim");
      for (const part of [0.2, 0.4, 0.5, 0.6, 0.7, 0.9]) {
        const db = await openStore(lane.folder.path);
        try {
          await lane.run({ role: "victim", step: Math.ceil(part * steps), when: "after" });
          const next = lane.rounds + 1;
          const seen = describeStore(db, next);
          if (seen === expectedStore(next, next)) lane.rounds++;
          else expect(seen).toBe(expectedStore(lane.rounds, next));
        } finally {
          await db.close();
        }
        await lane.check(`met after ${part} of the steps`);
      }
    });
  });
});
