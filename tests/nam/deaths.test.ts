/**
 * A compute server dies, or stands still and comes back, at each verb of a commit (NAM-DB §6.2). Another one settles what it
 * has left: whole or not at all, no lock stays, and its late verbs change nothing.
 */

import { describe, expect, it } from "vitest";
import { keyOf, NamScene, RECORDS, rowOf } from "./scene.ts";

/** Two updates and an insert: all steps there are. */
function begin(scene: NamScene): { readonly outcome: () => string } {
  const transaction = scene.transaction();
  for (const key of [1, 2, 3]) transaction.write(scene.table, keyOf(key), rowOf(10 + key));
  let outcome = "running";
  scene.compute[0].driver.run(
    transaction.commit(),
    50,
    ({ kind }) => {
      outcome = kind;
    },
    (error) => {
      outcome = (error as { code: string }).code;
    },
  );
  return { outcome: () => outcome };
}

const BEFORE = [1, 2, undefined];
const AFTER = [11, 12, 13];

function makeScene(layout: "vector" | "compressed"): NamScene {
  const scene = new NamScene({ timestamps: { layout }, tables: [{ ...RECORDS, ring: 4 }] });
  scene.write({ 1: 1, 2: 2 });
  return scene;
}

/** How many verbs of the commit memory servers serve. */
function verbsOf(layout: "vector" | "compressed"): number {
  const scene = makeScene(layout);
  const served = scene.served;
  begin(scene);
  scene.cluster.fabric.run();
  return scene.served - served;
}

/** Lets the commit run until so many of its verbs were served. */
function stopAfter(scene: NamScene, verbs: number): { readonly outcome: () => string } {
  const served = scene.served;
  const commit = begin(scene);
  while (scene.served - served < verbs && scene.cluster.fabric.step());
  return commit;
}

describe.each(["vector", "compressed"] as const)("timestamps as %s", (layout) => {
  const verbs = verbsOf(layout);

  it("the commit has all steps", () => {
    // Vector, 3 reads, 2 journals, 3 locks and 2 entries, 4 writes of old versions, 3 installs, publish.
    expect(verbs).toBe(1 + 3 + 2 + 5 + 4 + 3 + 1);
  });

  it("killed at every verb: settled by another, whole or not at all", () => {
    const seen = new Set<string>();
    for (let at = 0; at <= verbs; at++) {
      const scene = makeScene(layout);
      stopAfter(scene, at);
      scene.cluster.fabric.crash(scene.compute[0].id);
      const [{ settlement }] = scene.settle(0);
      const rows = scene.read([1, 2, 3], 1);
      const isWhole = settlement === "forward" || (settlement === "published" && at >= verbs);
      expect([at, settlement, rows]).toEqual([at, settlement, isWhole ? AFTER : BEFORE]);
      expect(scene.locked()).toBe(0);
      expect(scene.write({ 1: 21, 2: 22, 3: 23 }, 1).kind).toBe("committed");
      expect(scene.read([1, 2, 3], 1)).toEqual([21, 22, 23]);
      seen.add(settlement);
    }
    expect(seen).toEqual(new Set(["published", "back", "forward"]));
  });

  it("the settler is killed at some of its own verbs, too: a third one finishes", () => {
    for (let at = 8; at <= verbs; at += 4) {
      for (let step = 0; step < 24; step += 3) {
        const scene = new NamScene({ timestamps: { layout }, computeServers: 3 });
        scene.write({ 1: 1, 2: 2 });
        stopAfter(scene, at);
        const { fabric } = scene.cluster;
        fabric.crash(scene.compute[0].id);
        const served = scene.served;
        const settling = scene.settling(0);
        scene.compute[1].driver.run(settling, 50, ignore, ignore);
        while (scene.served - served < step && fabric.step());
        fabric.crash(scene.compute[1].id);
        scene.settle(0, 2);
        const rows = scene.read([1, 2, 3], 2);
        expect([BEFORE, AFTER]).toContainEqual(rows);
        expect(scene.locked()).toBe(0);
        expect(scene.write({ 1: 21, 2: 22, 3: 23 }, 2).kind).toBe("committed");
      }
    }
  });

  it("paused at every verb, given up, and back: its late verbs are refused, and it learns what became of it", () => {
    for (let at = 0; at <= verbs; at++) {
      const scene = makeScene(layout);
      const { fabric } = scene.cluster;
      const commit = stopAfter(scene, at);
      fabric.stop(scene.compute[0].id);
      const [{ settlement }] = scene.settle(0);
      const settled = scene.read([1, 2, 3], 1);
      // Others go on with the same records before it is back.
      expect(scene.write({ 1: 31 }, 1).kind).toBe("committed");
      const before = [31, settled[1], settled[2]];
      fabric.resume(scene.compute[0].id);
      while (commit.outcome() === "running" && fabric.step());
      fabric.run(fabric.nowUs + 1_000);
      expect(scene.read([1, 2, 3], 1)).toEqual(before);
      expect(scene.locked()).toBe(0);
      if (commit.outcome() === "committed") expect(settled).toEqual(AFTER);
      else expect(commit.outcome()).toBe("SITU_STALE_CONFIGURATION");
      if (settlement === "back") expect(settled).toEqual(BEFORE);
      scene.run(scene.cluster.open(scene.compute[0]));
      expect(scene.write({ 1: 41, 2: 42, 3: 43 }).kind).toBe("committed");
      expect(scene.read([1, 2, 3], 1)).toEqual([41, 42, 43]);
    }
  });
});

function ignore(): void {}
