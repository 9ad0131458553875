/** Votes, decisions, and who is concerned (FaRM SOSP'15 §5.3, steps 3, 6 and 7). */

import { describe, expect, test } from "vitest";
import { coordinatorNumber } from "../../src/protocols/names.ts";
import {
  type Changes,
  type Doubtful,
  isRecovering,
  settlerOf,
} from "../../src/protocols/recovery/recovering.ts";
import {
  decide,
  SAW_ABORT,
  SAW_COMMIT,
  SAW_END,
  SAW_LOCK,
  SAW_LOG,
  SAW_NOTHING,
  type Seen,
  strongest,
  type Vote,
  voteOf,
} from "../../src/protocols/recovery/votes.ts";
import { check, fc } from "../helpers/property.ts";

const ALL: readonly Seen[] = [SAW_NOTHING, SAW_END, SAW_LOCK, SAW_LOG, SAW_ABORT, SAW_COMMIT];

describe("votes", () => {
  const voteOfAll = (...seen: readonly Seen[]): Vote => voteOf(seen.reduce(strongest, SAW_NOTHING));

  test.each<[Vote, readonly Seen[]]>([
    ["commit-primary", [SAW_COMMIT, SAW_LOG, SAW_NOTHING]],
    ["commit-backup", [SAW_LOCK, SAW_LOG, SAW_NOTHING]],
    ["lock", [SAW_LOCK, SAW_NOTHING]],
    ["abort", [SAW_LOG, SAW_ABORT, SAW_LOCK]],
    ["truncated", [SAW_END, SAW_NOTHING]],
    ["unknown", [SAW_NOTHING, SAW_NOTHING]],
  ])("%s, of what its replicas saw", (vote, seen) => {
    expect(voteOfAll(...seen)).toBe(vote);
    expect(voteOfAll(...[...seen].reverse())).toBe(vote);
  });

  test("do not change when all replicas take over what any has seen", () => {
    const seen = fc.constantFrom(...ALL);
    check(
      fc.property(fc.array(seen, { minLength: 1, maxLength: 4 }), (replicas) => {
        const all = replicas.reduce(strongest);
        for (const each of replicas) expect(strongest(each, all)).toBe(all);
      }),
    );
  });
});

describe("decisions", () => {
  test.each<[string, readonly Vote[]]>([
    ["commit", ["commit-primary", "unknown"]],
    ["commit", ["commit-backup"]],
    ["commit", ["lock", "commit-backup", "truncated"]],
    ["abort", ["lock", "lock"]],
    ["abort", ["lock", "truncated"]],
    ["abort", ["commit-backup", "unknown"]],
    ["abort", ["commit-backup", "abort"]],
    ["abort", ["unknown"]],
  ])("%s: %j", (outcome, votes) => {
    expect(decide(votes)).toBe(outcome);
    expect(decide([...votes].reverse())).toBe(outcome);
  });
});

describe("a transaction that began in configuration 4", () => {
  const doubtful: Doubtful = {
    configurationId: 4,
    name: { coordinator: coordinatorNumber(1, "nic"), sequence: 77 },
    partitions: [0, 2],
  };
  const since = (
    members: readonly (readonly [number, number])[],
    ...replicas: number[]
  ): Changes => {
    const lives = new Map(members);
    return {
      nodes: [...lives.keys()],
      memberSince: (node) => lives.get(node),
      placement: {
        primaryOf: () => 0,
        primarySince: (partition) => replicas[partition],
        replicasSince: (partition) => replicas[partition],
      },
    };
  };
  const same = [
    [0, 1],
    [1, 1],
    [2, 4],
  ] as const;

  test("goes on if nothing that it needs has changed", () => {
    expect(isRecovering(doubtful, since(same, 4, 5, 1))).toBe(false);
    expect(isRecovering(doubtful, since(same, 4, 5, 1), [0, 2])).toBe(false);
  });

  test("is in doubt if a replica of what it writes has changed, or a primary of what it read", () => {
    expect(isRecovering(doubtful, since(same, 4, 1, 5))).toBe(true);
    expect(isRecovering(doubtful, since(same, 4, 5, 1), [1])).toBe(true);
  });

  test("is in doubt if its coordinator has left, or come back in another life", () => {
    const without = [same[0], same[2]];
    expect(isRecovering(doubtful, since(without, 1, 1, 1))).toBe(true);
    expect(isRecovering(doubtful, since([...without, [1, 6]], 1, 1, 1))).toBe(true);
  });

  test("is in doubt if all copies of what it writes are lost, though nothing else has changed", () => {
    const without = [same[1], same[2]];
    expect(isRecovering(doubtful, since(without, 1, 1, 1))).toBe(true);
  });

  test("is settled by its coordinator, or else by a member of the present configuration", () => {
    expect(settlerOf(doubtful, since(same))).toBe(1);
    expect([0, 2]).toContain(settlerOf(doubtful, since([same[0], same[2]])));
    const returned = since([...same.slice(0, 1), [1, 6], same[2]]);
    expect(returned.nodes).toContain(settlerOf(doubtful, returned));
  });

  test("leaves its work to all members alike", () => {
    const members = since([same[0], same[2], [3, 1], [5, 1]]);
    const counts = new Map<number, number>();
    for (let i = 0; i < 4000; i++) {
      // Of two lives: the upper part of a sequence is the life of its coordinator.
      const sequence = (i % 2) * 2 ** 40 + i;
      const settler = settlerOf({ ...doubtful, name: { ...doubtful.name, sequence } }, members);
      counts.set(settler, (counts.get(settler) ?? 0) + 1);
    }
    expect([...counts.keys()].sort()).toEqual([0, 2, 3, 5]);
    for (const count of counts.values()) expect(count).toBeGreaterThan(800);
  });
});
