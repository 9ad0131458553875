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
import { atStep, Death, type When } from "../helpers/engine-atomics.ts";
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
  const machine = stage(room);
  try {
    const [other] = machine.executors;
    // Nothing else is on its way to the disk.
    machine.round();
    const victim = machine.store.open();
    const cut = machine.work.cuttable(victim);
    const died = dieForGood(k, when, cut.run);
    machine.store.kill(victim);
    // Who has seen it, and waits for the disk, waits for it.
    if (cut.isSeen()) expect(other.durability.isPending).toBe(true);
    NOTICED[by](machine, victim);
    cut.settle();
    // One who uses the slot again, and the others, go on.
    machine.open();
    expectAll(machine);
    return died;
  } finally {
    machine.dispose();
  }
}

test.each(ROOMS)("an error in the middle of a commit, with %i words left in the ring", (room) => {
  for (const when of WHENS) {
    let k = 1;
    for (; failsAt(k, when, room); k++) {
      if (k > MOST_STEPS) throw new Error("there is no end to the steps");
    }
    expect(k).toBeGreaterThan(10);
  }
});

/** One that lives on (its stack was too short, say): it settles its own slot. */
function failsAt(k: number, when: When, room: number): boolean {
  const machine = stage(room);
  try {
    const [one] = machine.executors;
    const cut = machine.work.cuttable(one);
    let isMet = false;
    const point = atStep(k, when, () => {
      isMet = true;
      throw new Death(`${when} step ${k}`);
    });
    try {
      cut.runAlive();
    } catch (error) {
      if (!(error instanceof Death)) throw error;
    } finally {
      point.off();
    }
    cut.settle();
    expectAll(machine);
    return isMet;
  } finally {
    machine.dispose();
  }
}

/** A store whose journals begin so many words before the end of their rings. */
function stage(room: number): Machine {
  const machine = Machine.create(new Random(11 + room), {
    executors: 1,
    journalsAt: RING_WORDS - room,
  });
  machine.commit(5);
  machine.round();
  machine.commit(2);
  return machine;
}

/** All goes on, and the log has what was committed, and nothing else. */
function expectAll(machine: Machine): void {
  machine.commit(5);
  machine.work.transfer(machine.executors[0]);
  expect(machine.round()).toBe("done");
  const { random, model, durableEpoch } = machine;
  expect(durableEpoch).toBeGreaterThanOrEqual(model.lastCommit());
  Machine.recover(random, machine.crash("power"), model, durableEpoch).dispose();
}
