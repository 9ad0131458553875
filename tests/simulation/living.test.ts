/**
 * Whole lives of clusters: leases, membership, recovery and copies as nodes have them, and the clients that users have.
 * Nothing acknowledged is lost or done twice, histories are strictly serializable, and when all is healed every copy is
 * there and equal.
 */

import { expect, test } from "vitest";
import { livingRun, replayLiving, simulateLiving } from "../../simulation/living/simulate.ts";
import { NodeService, type ServiceOptions } from "../../src/cluster/service.ts";
import { fixedSeed, SOAK } from "../helpers/seed.ts";

const FIRST = fixedSeed(1);
/** Lives that went wrong once, and what was the matter. */
const MENDED: readonly (readonly [string, number])[] = [
  ["a refusal of one copy of a request was taken for that of both, and done again: no lease", 1146],
  ["the same: another configuration", 1080],
  ["a node that returned dropped what it had logged with what it had locked", 1112],
  [
    "a primary did not tell one that copied of what it had logged, and installed in another partition",
    2021,
  ],
  [
    "a node that filled a partition took a transaction for done there that it had ended elsewhere",
    600175,
  ],
  ["a commit waited for a clock that it kept back itself, behind that of a rebuilt node", 52010],
];

test("nodes die, stop, are cut off and come back, again and again", async () => {
  let [crashes, copied] = [0, 0];
  for (let seed = FIRST; seed < FIRST + 3 * SOAK; seed++) {
    const report = await simulateLiving(livingRun(seed));
    expect(report.problems, `replay: ${replayLiving(seed)}`).toEqual([]);
    crashes += report.crashes;
    copied += report.copied;
  }
  expect(crashes).toBeGreaterThan(0);
  expect(copied).toBeGreaterThan(0);
});

test.each(MENDED)("%s (seed %d)", async (_, seed) => {
  expect((await simulateLiving(livingRun(seed))).problems).toEqual([]);
});

const CALLS = [18, 7];

test.each(CALLS)(
  "procedures are done once, whoever of those that run them dies (seed %d)",
  async (seed) => {
    const run = livingRun(seed);
    expect(run.workload).toBe("calls");
    expect((await simulateLiving(run)).problems).toEqual([]);
  },
);

test("copies that forget for whom they have committed: a call is done twice, and that is found", async () => {
  const planted = {
    makeService: (options: ServiceOptions) => {
      const service = new NodeService(options);
      service.participant.committed = undefined;
      service.backup!.committed = undefined;
      return service;
    },
  };
  const { problems } = await simulateLiving(livingRun(CALLS[0]), undefined, planted);
  expect(problems).toEqual([expect.stringMatching(/^counter \d+ has \d+; \d+ calls were/)]);
});

test("the same seed gives the same life", async () => {
  const run = livingRun(FIRST);
  expect(await simulateLiving(run)).toEqual(await simulateLiving(run));
});
