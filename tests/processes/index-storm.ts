/**
 * Rows and their indexes change, indexes are added, processes are killed, those who build an index
 * among them. In the end every row has its entries and every entry its row.
 */

import type { Counter } from "../../src/engine/slot.ts";
import { SituError } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { endAll, StoreFolder } from "../helpers/engine-processes.ts";
import { indexProblems, restProblems, slotProblems } from "../helpers/process-rest.ts";
import { killAndReplace, type Life, type StormOptions } from "../helpers/process-storm.ts";
import type { IndexOrder } from "./index-child.ts";
import {
  AT_FIRST,
  fillPeople,
  IDS,
  LATER,
  openPeople,
  type Person,
  Total,
  VALUES,
} from "./index-store.ts";

const REST_MS = 60_000;
/** The storm goes on until more than this has happened. */
export const ENOUGH = { commits: 200, refusals: 10, recoveries: 1 } as const;
const LONGEST = { ms: 1_200, steps: 200_000 };

export interface IndexStormReport {
  readonly seed: number;
  readonly kills: number;
  readonly rows: number;
  /** Changes that were refused, because another row had the value. */
  readonly refusals: number;
  readonly counters: Readonly<Record<Counter, number>>;
  readonly problems: readonly string[];
}

export async function runIndexStorm(options: StormOptions): Promise<IndexStormReport> {
  const { seed, processes, kills: wanted, minutes, progress } = options;
  const folder = new StoreFolder();
  const { path } = folder;
  const problems: string[] = [];
  try {
    const first = await openPeople(path, AT_FIRST);
    fillPeople(first);
    await first.close();
    const kills = await killAndReplace({
      random: new Random(seed),
      seats: Array.from({ length: processes }, (_, seat) => ({
        script: "index-child",
        order: (life: Life): IndexOrder => ({
          ...life,
          path,
          // A while without; then some seats declare the new indexes, and others do not.
          isLater: life.life > 2 * processes && seat % 2 === 0,
        }),
      })),
      kills: wanted,
      endMs: performance.now() + minutes * 60_000,
      isEnough: () => hasDoneEnough(path),
      withStops: true,
      longest: LONGEST,
      problems,
      progress,
    });
    return { seed, kills, ...(await inspect(path, problems)), problems };
  } finally {
    endAll();
    await folder.remove();
  }
}

async function hasDoneEnough(path: string): Promise<boolean> {
  const db = await openPeople(path, AT_FIRST);
  try {
    const { commits, recoveries } = db.stats().counters;
    const refusals = db.get(Total, 0)?.refusals ?? 0;
    return commits > ENOUGH.commits && refusals > ENOUGH.refusals && recoveries > ENOUGH.recoveries;
  } finally {
    await db.close();
  }
}

async function inspect(
  path: string,
  problems: string[],
): Promise<Pick<IndexStormReport, "rows" | "refusals" | "counters">> {
  // Whoever opens the store with these indexes finishes what others have begun to build.
  const db = await openPeople(path, LATER);
  try {
    problems.push(...(await restProblems(db, REST_MS)));
    problems.push(...(await slotProblems(path)));
    let rows = 0;
    for (const people of LATER) {
      rows += db.count(people);
      db.transactSync((tx) => {
        problems.push(...indexProblems(tx, people, VALUES));
        // Every lock word is passed, and every entry removed and made anew.
        for (const row of tx.scan(people).toArray()) {
          tx.delete(people, row.id);
          tx.insert(people, row);
        }
        problems.push(...indexProblems(tx, people, VALUES));
      });
      const row: Person | undefined = db.scan(people, { limit: 1 }).toArray()[0];
      if (row === undefined) continue;
      for (const other of [
        { ...row, id: IDS + 1, badge: "new" },
        { ...row, id: IDS + 1, email: "new" },
      ]) {
        try {
          db.transactSync((tx) => tx.insert(people, other));
          problems.push(`${people.name} took a second ${JSON.stringify(other)}`);
        } catch (error) {
          if (!(error instanceof SituError) || error.code !== "SITU_UNIQUE") throw error;
        }
      }
    }
    return { rows, refusals: db.get(Total, 0)!.refusals, counters: db.stats().counters };
  } catch (error) {
    problems.push(String(error));
    return { rows: 0, refusals: 0, counters: db.stats().counters };
  } finally {
    await db.close();
  }
}
