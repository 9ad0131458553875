/**
 * SIGKILL and SIGSTOP of any process at any moment, also of one that is recovering another, over all
 * kinds of tables, both isolations, synchronous and asynchronous bodies, snapshots and plain gets at
 * once. The longer form is `npm run soak -- --storm mixed --minutes 10`.
 */

import { afterAll, describe, expect, test } from "vitest";
import { endAll } from "../helpers/engine-processes.ts";
import { freshSeed, SOAK } from "../helpers/seed.ts";
import { KINDS } from "./mixed-store.ts";
import { runMixedStorm } from "./mixed-storm.ts";

const KILLS = 6 * SOAK;
const seed = freshSeed();

afterAll(endAll);

function repeatWith(durability: string): string {
  const soak = `npm run soak -- --storm mixed --seed ${seed} --processes 4 --kills ${KILLS} --minutes 0`;
  return `repeat with SITU_SEED=${seed}, or ${soak} --durability ${durability}`;
}

test.each(["none", "lazy", "sync"] as const)(
  `${KILLS} kills: each transaction as isolated as it says, no money lost, no lock left; durability: %s`,
  async (durability) => {
    const report = await runMixedStorm({
      seed,
      durability,
      processes: 4,
      kills: KILLS,
      minutes: 0,
    });
    expect(report.problems, repeatWith(durability)).toEqual([]);
    expect(report.kills).toBeGreaterThanOrEqual(KILLS);
  },
);

describe("the check trips if reads are not validated", () => {
  /** One round may be lucky; several are not. */
  const MOST_ROUNDS = 20;
  // Every fourth kind, others with another seed; with SITU_SOAK all of them.
  const planted = KINDS.map(({ name }, kind) => [name, kind] as const).filter(
    ([, kind]) => SOAK > 1 || (kind + seed) % 4 === 0,
  );

  test.each(planted)("of %s", async (_, kind) => {
    const anomalies = new Set<string>();
    for (let round = 0; round < MOST_ROUNDS && !anomalies.has("not-isolated"); round++) {
      const report = await runMixedStorm({
        seed: seed + round,
        durability: "none",
        processes: 3,
        kills: 0,
        minutes: 0,
        plantedKind: kind,
      });
      for (const each of report.anomalies) anomalies.add(each);
    }
    expect([...anomalies], `SITU_SEED=${seed}`).toContain("not-isolated");
  });
});
