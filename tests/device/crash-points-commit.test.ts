/**
 * An executor of a store with a log dies before and after each atomic step of a commit, wherever its
 * journal's head is in the ring. Whoever notices settles it: another executor, one who takes its slot,
 * or the log's writer itself. What was committed gets to the log, once; what was not does not.
 */

import "../helpers/engine-all-atomics.ts";

import { describe, expect, test, vi } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { Random } from "../../src/runtime/random.ts";
import { LITTLE, Machine } from "../helpers/durable-machine.ts";
import type { When } from "../helpers/engine-atomics.ts";
import { dieForGood } from "../helpers/snapshots.ts";

vi.mock("../../src/runtime/limits.ts", async (original) => ({
  ...(await original<object>()),
  SEGMENT_BYTES: 16 * 1024,
  DURABLE_SPIN_MS: 0,
  // A dead committer is noticed at once.
  SUSPECT_MS: 0,
}));

const WHENS: readonly When[] = ["before", "after"];
const MOST_STEPS = 100;
const RING_WORDS = LITTLE.journalBytes / 4;

/** Words from the head of the journals to the end of the ring, when the store is new. */
const ROOMS = [RING_WORDS, 1, 3, 60];

const NOTICED: Readonly<Record<string, (machine: Machine, victim: Executor) => void>> = {
  "another executor": (machine) => {
    expect(machine.executors[0].sweep()).toBe(1);
  },
  "one who takes its slot": (machine, victim) => {
    // The slots of the dead are the last choice.
    while (machine.open().slot !== victim.slot);
    for (const executor of machine.executors.splice(2)) machine.store.close(executor);
  },
  "the log's writer": (machine) => {
    machine.round();
    machine.executors[0].sweep();
  },
};

describe.each(Object.keys(NOTICED))("an executor dies in a commit, and is settled by %s", (by) => {
  test.each(ROOMS)("with %i words left in the ring", (room) => {
    for (const when of WHENS) {
      let k = 1;
      for (; diesAt(k, when, room, by); k++) {
        if (k > MOST_STEPS) throw new Error("there is no end to the steps");
      }
      expect(k).toBeGreaterThan(10);
    }
  });
});

function diesAt(k: number, when: When, room: number, by: string): boolean {
  const random = new Random(11 + room);
  const machine = Machine.create(random, { executors: 1, journalsAt: RING_WORDS - room });
  try {
    machine.work.step(machine.executors[0]);
    machine.commit(4);
    machine.round();
    machine.commit(2);
    const victim = machine.store.open();
    const cut = machine.work.cuttable(victim);
    const died = dieForGood(k, when, cut.run);
    machine.store.kill(victim);
    NOTICED[by](machine, victim);
    cut.settle();
    // One who uses the slot again, and the others, go on.
    machine.open();
    machine.commit(6);
    expect(machine.round()).toBe("done");
    const { model, durableEpoch } = machine;
    expect(durableEpoch).toBeGreaterThanOrEqual(model.lastCommit());
    const next = Machine.recover(random, machine.crash("power"), model, durableEpoch);
    next.dispose();
    return died;
  } finally {
    machine.dispose();
  }
}
