/** What was lost with the power had epochs, which others may remember: they do not come again. */

import { expect, test } from "vitest";
import { SimulatedStore } from "../../simulation/cluster/sim-store.ts";
import { Random } from "../../src/runtime/random.ts";
import { raiseLife } from "../../src/tables/served/lives.ts";

test("no epoch of a life that was lost is used again", () => {
  const store = new SimulatedStore(1, true);
  const before = store.open();
  raiseLife(before);
  store.round();
  for (let i = 0; i < 1_000; i++) before.epochs.advance();
  raiseLife(before);
  const lost = before.committer.lastEpoch;
  expect(lost).toBeGreaterThan(before.durability.epoch);
  store.died();
  store.lostPower(new Random(1));
  const after = store.open();
  // Not on disk, so it is begun again.
  expect(raiseLife(after)).toBe(2);
  expect(after.committer.lastEpoch).toBeGreaterThan(lost);
});
