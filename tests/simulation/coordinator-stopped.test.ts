/**
 * docs/FAULTS.md, "Network and cluster": coordinator killed after lock, after some backups logged, after
 * all, after one primary, before truncation. Without a change of the membership a node does not
 * die for good: it is stopped, longer than all time-outs, and resumed. One outcome everywhere.
 */

import { expect, test } from "vitest";
import type { TraceLine } from "../../simulation/fabric/trace.ts";
import { COMMIT, LOCK, LOG } from "../../src/protocols/kinds.ts";
import { balancesOf, FIRST_BALANCE, LONG_MS, Scene, transfer } from "./scene.ts";

const COORDINATOR = 0;
const OTHER = 1;

interface Moment {
  readonly name: string;
  readonly what: TraceLine["what"];
  readonly kind: number;
  readonly to?: number;
  readonly times?: number;
}

const MOMENTS: readonly Moment[] = [
  { name: "after lock", what: "served", kind: LOCK, to: OTHER },
  { name: "after some backups logged", what: "served", kind: LOG },
  { name: "after all backups logged", what: "served", kind: LOG, times: 2 },
  { name: "after one primary committed", what: "served", kind: COMMIT, to: OTHER },
];

test.each(MOMENTS)(
  "coordinator stopped $name, and resumed: one outcome everywhere",
  async (moment) => {
    const scene = new Scene();
    const [a, b] = [scene.accountAt(COORDINATOR), scene.accountAt(OTHER)];
    scene.open([a, b]);
    const client = await scene.client();
    const reader = await scene.client();
    let stops = 0;
    const stop = (): void => {
      stops++;
      scene.fabric.stop(COORDINATOR);
    };
    scene.when(moment.what, moment.kind, stop, moment.to, moment.times);
    const moved = scene.start(transfer(client, a, b));
    await scene.work(LONG_MS);
    expect(stops).toBe(1);
    // Once all have logged, it is told. Before, nobody knows; "aborted" would be a lie, for the
    // coordinator may go on.
    expect(moved.result?.kind).toBe(moment.kind === COMMIT ? "ok" : "unknown");
    // Both rows cannot be read meanwhile: half of them is at the node that is stopped.
    const during = await scene.run(balancesOf(reader, [a, b]));
    expect(during.kind).toBe("failed");
    // The row at the other node is locked, or what it was or will be; it is read alone.
    const alone = await scene.run(balancesOf(reader, [b]));
    if (moment.kind === COMMIT) expect(alone).toMatchObject({ result: [FIRST_BALANCE + 1n] });
    else expect(alone.kind).toBe("failed");

    scene.rest();
    const after = await scene.run(balancesOf(reader, [a, b]));
    if (after.kind !== "ok") expect.fail("at rest everything can be read");
    const [left, right] = after.result;
    expect(left + right).toBe(2n * FIRST_BALANCE);
    // From the last LOG on it is committed, whatever happens.
    if (moment.kind !== LOCK) expect(right).toBe(FIRST_BALANCE + 1n);
  },
);

test("coordinator stopped before truncation, and resumed: the backups follow", async () => {
  const scene = new Scene();
  const [a, b] = [scene.accountAt(COORDINATOR), scene.accountAt(OTHER)];
  scene.open([a, b]);
  const client = await scene.client();
  const moved = await scene.run(transfer(client, a, b));
  expect(moved.kind).toBe("ok");
  scene.fabric.stop(COORDINATOR);
  scene.pass(LONG_MS);
  // The copies wait, and keep what they must apply.
  const backup = scene.nodes[2];
  expect(backup.service.backup?.logged).toBe(1);
  expect(scene.balances(2).get(`n${b}`)).toBe(FIRST_BALANCE);
  scene.rest();
  expect(scene.balances(2).get(`n${b}`)).toBe(FIRST_BALANCE + 1n);
  expect(scene.balance(a)).toBe(FIRST_BALANCE - 1n);
});

test("coordinator slow between LOG and COMMIT: readers of either row wait, and see both or none", async () => {
  const scene = new Scene();
  const [a, b] = [scene.accountAt(COORDINATOR), scene.accountAt(OTHER)];
  scene.open([a, b]);
  const client = await scene.client();
  const reader = await scene.client();
  scene.when("served", LOG, () => scene.fabric.slow(COORDINATOR, { minUs: 5_000, maxUs: 5_000 }));
  const moved = scene.start(transfer(client, a, b));
  const seen: bigint[] = [];
  let waited = 0;
  while (moved.result === undefined) {
    const each = await scene.run(balancesOf(reader, [b]));
    if (each.kind === "ok") seen.push(each.result[0]);
    const both = await scene.run(balancesOf(reader, [a, b]));
    waited += each.attempts - 1 + both.attempts - 1;
    if (both.kind === "ok") expect(both.result[0] + both.result[1]).toBe(2n * FIRST_BALANCE);
  }
  expect(moved.result.kind).toBe("ok");
  expect(waited).toBeGreaterThan(0);
  // Once the new balance has been seen, never the old one again.
  expect(seen).toEqual([...seen].sort());
  scene.fabric.slow(COORDINATOR, undefined);
  scene.rest();
  expect(scene.balance(b)).toBe(FIRST_BALANCE + 1n);
});

test("coordinator that has left: it does not wait for answers that never come before it closes", async () => {
  const scene = new Scene({ recovers: true });
  const [a, b] = [scene.accountAt(COORDINATOR), scene.accountAt(OTHER)];
  scene.open([a, b]);
  const client = await scene.client();
  const { fabric } = scene;
  scene.when("served", LOCK, () => fabric.partition(OTHER, COORDINATOR), OTHER);
  scene.start(transfer(client, a, b));
  await scene.work(50);
  const { service } = scene.nodes[COORDINATOR];
  expect([service.coordinator.busy, service.participant.prepared]).toEqual([1, 1]);
  let isDrained = false;
  const drain = async (): Promise<void> => {
    await service.drain();
    isDrained = true;
  };
  const draining = drain();
  await scene.work(50);
  expect(isDrained).toBe(false);
  service.leave();
  await scene.work(50);
  expect(isDrained).toBe(true);
  await draining;
  fabric.clearFaults();
  scene.rest();
});
