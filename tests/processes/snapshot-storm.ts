/**
 * Transfers, snapshots and kills: tellers move money, auditors count it in snapshots, and all of
 * them are killed at random moments, with old versions moving, being collected and given up.
 */

import type { Counter } from "../../src/engine/slot.ts";
import { Random } from "../../src/runtime/random.ts";
import { endAll, StoreFolder } from "../helpers/engine-processes.ts";
import { indexProblems, restProblems, slotProblems } from "../helpers/process-rest.ts";
import { killAndReplace, type Life, type StormOptions } from "../helpers/process-storm.ts";
import type { SnapshotOrder } from "./snapshot-child.ts";
import { auditAll, fillBank, OWNERS, openBank, TABLES } from "./snapshot-store.ts";

/** After the last process is gone: nothing is open or kept any more. */
const REST_MS = 60_000;

/** Longer than in other storms: old versions pile up only while snapshots live. */
const LONGEST = { ms: 1_200, steps: 300_000 };

export interface SnapshotStormReport {
  readonly seed: number;
  readonly kills: number;
  readonly counters: Readonly<Record<Counter, number>>;
  readonly problems: readonly string[];
}

export async function runSnapshotStorm(options: StormOptions): Promise<SnapshotStormReport> {
  const { seed, processes, kills: wanted, minutes, progress } = options;
  const folder = new StoreFolder();
  const { path } = folder;
  const problems: string[] = [];
  try {
    const first = await openBank(path);
    fillBank(first);
    await first.close();
    const kills = await killAndReplace({
      random: new Random(seed),
      seats: Array.from({ length: processes }, (_, seat) => ({
        script: "snapshot-child",
        // One goes on writing, so that its ring gets full.
        isSpared: seat === 0,
        order: (life: Life): SnapshotOrder => ({
          ...life,
          path,
          role: seat === 0 ? "rotator" : seat % 2 === 0 ? "teller" : "auditor",
        }),
      })),
      kills: wanted,
      endMs: performance.now() + minutes * 60_000,
      withStops: true,
      longest: LONGEST,
      problems,
      progress,
    });
    const db = await openBank(path);
    try {
      problems.push(...(await restProblems(db, REST_MS)));
      problems.push(...(await slotProblems(path)));
      const { counters } = db.stats();
      const owners = Array.from({ length: OWNERS }, (_, owner) => owner);
      db.transactSync((tx) => {
        auditAll(tx);
        for (const accounts of TABLES) {
          problems.push(...indexProblems(tx, accounts, { byOwner: owners }));
          // Every lock word is passed.
          for (const row of tx.scan(accounts).toArray()) tx.put(accounts, row);
        }
      });
      return { seed, kills, counters, problems };
    } catch (error) {
      problems.push(String(error));
      return { seed, kills, counters: db.stats().counters, problems };
    } finally {
      await db.close();
    }
  } finally {
    endAll();
    await folder.remove();
  }
}
