/**
 * A server is killed at every message of every kind of commit, and the others recover: the transaction has happened at all shards or
 * at none, as was told if anything was, and nothing stays locked (§4.2.1).
 */

import { expect, it } from "vitest";
import { CASES, type Case, XenicScene } from "./scene.ts";

const WRITING = Object.entries(CASES).filter(([, { accesses }]) =>
  accesses.some(({ value }) => value !== undefined),
) as [string, Case][];

/** The scene after `victims` have died when the `at`th message was delivered; undefined if there were not so many. */
function killedAt(each: Case, at: number, victims: readonly number[]): XenicScene | undefined {
  let delivered = 0;
  let isReached = false;
  const scene = new XenicScene({
    leaseUs: 300,
    trace: ({ what, from, to }) => {
      if (what !== "delivered" || from === to || ++delivered !== at) return;
      isReached = true;
      const { cluster } = scene;
      cluster.fabric.at(cluster.fabric.nowUs, () => {
        for (const id of victims) cluster.kill(id);
      });
    },
  });
  scene.begin(each);
  scene.settle();
  if (!isReached) return undefined;
  const { fabric } = scene.cluster;
  while (scene.cluster.isRecovering && fabric.step());
  fabric.run(fabric.nowUs + 2_000);
  return scene;
}

it.each(WRITING)("%s: one dies, or two at once, at every message", (name, each) => {
  const written = each.accesses.filter(({ value }) => value !== undefined);
  const seen = { all: 0, none: 0, told: 0 };
  const pairs = [[0], [1], [2], [3], [0, 2], [0, 3], [2, 3], [1, 2]];
  for (const victims of pairs) {
    for (let at = 1; ; at++) {
      const scene = killedAt(each, at, victims);
      if (scene === undefined) break;
      const where = `message ${at}, dead ${victims}`;
      const { outcome } = scene;
      const [reader] = scene.cluster.living;
      expect(
        scene.cluster.living.every(({ nic }) => !nic.isRecovering),
        where,
      ).toBe(true);
      const lists = written.map(({ key }) => scene.list(key, reader.id).length);
      expect(new Set(lists).size, where).toBe(1);
      if (lists[0] === 1) seen.all++;
      else seen.none++;
      if (outcome !== undefined) {
        seen.told++;
        expect(lists[0], where).toBe(outcome.kind === "committed" ? 1 : 0);
      } else expect(victims, where).toContain(0);
      expect(scene.leftovers(), where).toBe(0);
    }
  }
  expect(Math.min(seen.all, seen.told)).toBeGreaterThan(0);
  // The first message of a local write that arrives is its LOG, at all backups at once.
  if (name !== "local write") expect(seen.none).toBeGreaterThan(0);
});
