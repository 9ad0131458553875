/**
 * The checker must accept a correct engine under every interleaving, and catch each planted bug.
 */

import { describe, expect, it } from "vitest";
import type { AnomalyKind } from "../../simulation/checkers/anomalies.ts";
import type { Isolation } from "../../simulation/checkers/cycle-anomalies.ts";
import { checkListAppend } from "../../simulation/checkers/list-append.ts";
import type { Recording } from "./interleaving.ts";
import { type Bug, runOptimisticEngine } from "./optimistic-engine.ts";
import { runSnapshotEngine } from "./snapshot-engine.ts";

const SEEDS = Array.from({ length: 20 }, (_, seed) => seed + 1);
/** For windows of a few steps, and to be sure that the correct engine is. */
const MANY_SEEDS = Array.from({ length: 300 }, (_, seed) => seed + 1);

function kindsOf(recording: Recording, isolation: Isolation): readonly AnomalyKind[] {
  const { history, finalReads } = recording;
  return [...checkListAppend(history, { isolation, finalReads }).counts.keys()];
}

type Tally = Partial<Record<AnomalyKind | "none", number>>;

/** How many seeds show each kind. */
function tally(bug: Bug, isolation: Isolation, seeds: readonly number[] = SEEDS): Tally {
  const counts: Tally = {};
  for (const seed of seeds) {
    const kinds = kindsOf(runOptimisticEngine({ seed, bug }), isolation);
    for (const kind of kinds.length === 0 ? (["none"] as const) : kinds) {
      counts[kind] = (counts[kind] ?? 0) + 1;
    }
  }
  return counts;
}

describe("an optimistic engine", () => {
  it("is accepted when it is correct", () => {
    const counts = tally("none", "strict-serializable", MANY_SEEDS);
    expect(counts).toEqual({ none: MANY_SEEDS.length });
    expect(tally("none", "serializable")).toEqual({ none: SEEDS.length });
    expect(tally("none", "snapshot")).toEqual({ none: SEEDS.length });
  });

  it("commits, fails and loses replies in these runs", () => {
    const { history } = runOptimisticEngine({ seed: 1, bug: "none" });
    for (const outcome of ["ok", "failed", "unknown"]) {
      expect(history.filter((transaction) => transaction.outcome === outcome)).not.toHaveLength(0);
    }
  });

  it("is caught when it skips validation", () => {
    const counts = tally("skip-validation", "serializable");
    expect(counts["not-serializable"]).toBe(SEEDS.length);
  });

  it.each(["never-lock-exclusively", "lock-exclusively-after-validation"] as const)(
    "is caught by real time alone when a reader sees half a commit: %s",
    (bug) => {
      const counts = tally(bug, "strict-serializable", MANY_SEEDS);
      expect(counts["not-strictly-serializable"]).toBeGreaterThan(0);
      expect(tally(bug, "serializable", MANY_SEEDS)).toEqual({ none: MANY_SEEDS.length });
    },
  );

  it("is caught when it installs before logging, and the log then refuses", () => {
    const counts = tally("install-before-logging", "strict-serializable");
    expect(counts["aborted-read"]).toBe(SEEDS.length);
  });

  it("is caught when it drops an acknowledged write", () => {
    const counts = tally("drop-acknowledged-write", "strict-serializable");
    expect(counts["lost-write"]).toBe(SEEDS.length);
  });

  it("is caught when it forgot a backup, and that one becomes the primary", () => {
    const counts = tally("forget-backup", "strict-serializable");
    expect(counts["lost-write"]).toBe(SEEDS.length);
  });

  it("is caught when reads are stale, but only by real time", () => {
    const counts = tally("stale-read", "strict-serializable");
    expect(counts).toEqual({ "not-strictly-serializable": SEEDS.length });
    expect(tally("stale-read", "serializable")).toEqual({ none: SEEDS.length });
  });
});

describe("a snapshot-isolated engine", () => {
  it("is accepted under snapshot isolation, and not serializable", () => {
    for (const seed of SEEDS) {
      const recording = runSnapshotEngine({ seed, firstCommitterWins: true });
      expect(kindsOf(recording, "snapshot")).toEqual([]);
      expect(kindsOf(recording, "serializable")).toEqual(["not-serializable"]);
    }
  });

  it("is caught when the first committer does not win", () => {
    for (const seed of SEEDS) {
      const recording = runSnapshotEngine({ seed, firstCommitterWins: false });
      expect(kindsOf(recording, "snapshot")).toContain("not-snapshot-isolated");
    }
  });
});
