/** What was lost with the power had epochs, which others may remember: they do not come again. */

import { expect, test } from "vitest";
import { leftOvers } from "../../simulation/cluster/rest.ts";
import { SimulatedStore } from "../../simulation/cluster/sim-store.ts";
import { raiseEpoch } from "../../src/engine/epoch.ts";
import { ABORTED, COMMITTED, type Outcome } from "../../src/protocols/coordinator.ts";
import { LOST_EPOCHS } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { raiseLife } from "../../src/tables/served/lives.ts";
import { Scene } from "./scene.ts";

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

/**
 * A COMMIT raises the clock of a node to the epoch in which the transaction becomes visible. What is open at the node keeps
 * its clock from going further than MAX_EPOCH_LAG / 2, and one that is open there is the transaction itself: it waited
 * for itself, with its rows locked, for ever.
 */
test.each([1, 5])("clocks that %i losses of power have set apart come together", (losses) => {
  const scene = new Scene({ nodes: 3, backups: 1 });
  const [near, far] = [scene.accountAt(1), scene.accountAt(2)];
  scene.open([near, far]);
  const { control } = scene.nodes[2].executor.memory;
  const ahead = scene.nodes[2].executor.epochs.current() + losses * LOST_EPOCHS;
  raiseEpoch(control, ahead);
  const { driver, coordinator } = scene.nodes[0].service;
  const outcomes: Outcome[] = [];
  for (let attempt = 0; attempt < 4 * losses && outcomes.at(-1) !== COMMITTED; attempt++) {
    const parts = new Map([
      [1, scene.put(near, 1n)],
      [2, scene.put(far, 2n)],
    ]);
    driver.run(
      coordinator.commit(parts),
      1_000,
      (outcome) => outcomes.push(outcome),
      () => {},
    );
    scene.pass(2_000);
  }
  expect(outcomes.filter((each) => each !== ABORTED)).toEqual([COMMITTED]);
  expect(scene.nodes[1].executor.epochs.current()).toBeGreaterThanOrEqual(ahead);
  scene.pass(1_000);
  expect(leftOvers(scene.nodes)).toEqual([]);
  expect([scene.balance(near), scene.balance(far)]).toEqual([1n, 2n]);
});
