/**
 * The rules of recovery (src/protocols/recovery/votes.ts) hold in every interleaving of a commit with
 * deaths, new configurations and recovery; and each of them is needed: without it, the model finds a way
 * to lose or to double a commit.
 */

import { describe, expect, test } from "vitest";
import {
  SAW_COMMIT,
  SAW_END,
  SAW_LOCK,
  SAW_LOG,
  strongest,
  voteOf,
} from "../../src/protocols/recovery/votes.ts";
import { SOAK } from "../helpers/seed.ts";
import { explore, RULES, type Rules, type Shape } from "./model.ts";

const soaks = SOAK > 1 ? [{ partitions: 2, backups: 2, configurations: 2, refills: false }] : [];
const SHAPES: readonly Omit<Shape, "isPrimary">[] = [
  { partitions: 1, backups: 1, configurations: 3, refills: true },
  { partitions: 1, backups: 2, configurations: 3, refills: true },
  { partitions: 2, backups: 1, configurations: 2, refills: false },
  { partitions: 2, backups: 1, configurations: 2, refills: false, locksEarly: true },
  { partitions: 2, backups: 2, configurations: 1, refills: false },
  // Half a minute.
  ...soaks,
];

describe.each([
  ["the primary of a written partition", true],
  ["the primary of nothing that is written", false],
])("the coordinator is %s", (_, isPrimary) => {
  test.each(SHAPES)(
    "$partitions partitions, $backups backups, $configurations new configurations, locked early: $locksEarly",
    (shape) => {
      const { states, violation } = explore({ ...shape, isPrimary });
      expect(violation).toBeUndefined();
      // All shapes have at least: nothing happens, each phase is reached, somebody dies in it.
      expect(states).toBeGreaterThan(500);
    },
  );
});

describe("the model finds", () => {
  const planted: readonly [string, Partial<Rules>, Partial<Shape>?][] = [
    [
      "a coordinator that tells after LOG and is the primary of nothing",
      { tellsAfterLog: true },
      { isPrimary: false },
    ],
    ["one that tells after LOG, and lives when all who have logged die", { tellsAfterLog: true }],
    [
      "a record that is applied because its coordinator is in a later life",
      { laterLife: (seen) => (seen === SAW_LOG ? SAW_COMMIT : seen) },
      { partitions: 2 },
    ],
    [
      "an outcome that is forgotten because its coordinator is in a later life",
      { laterLife: (seen) => (seen === SAW_COMMIT ? SAW_END : seen) },
      { partitions: 2 },
    ],
    [
      "a lock that votes for commit",
      { vote: (seen) => (seen === SAW_LOCK ? "commit-backup" : voteOf(seen)) },
    ],
    [
      "votes of partitions that know nothing, passed over",
      { decide: (votes) => (votes.includes("commit-backup") ? "commit" : RULES.decide(votes)) },
      { partitions: 2 },
    ],
    [
      "records that are replicated as mere locks",
      { replicate: (own) => strongest(own, SAW_LOCK) },
      { backups: 2 },
    ],
    ["votes before all replicas have the record", { votesWhenReplicated: false }, { backups: 2 }],
    ["an abort that reaches a primary before the backups", { abortsBackupsFirst: false }],
    [
      "a partition that is served before all replicas were asked",
      { asksAll: false },
      { backups: 2 },
    ],
  ];

  test.each(planted)("%s", (_, rules, shape) => {
    const small = { partitions: 1, backups: 1, isPrimary: true, configurations: 2, refills: false };
    const { violation } = explore({ ...small, ...shape }, { ...RULES, ...rules });
    expect(violation?.length).toBeGreaterThan(0);
  });
});
