/** The priority of a starved transaction: who takes it, who yields, and when it ends (engine/priority.ts). */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { readObject } from "../../src/engine/objects.ts";
import { priorityWord } from "../../src/engine/priority.ts";
import { runReadOnly, tryRun } from "../../src/engine/run.ts";
import { counterSum, IDLE, STATUS, TICKET } from "../../src/engine/slot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { PRIORITY, PRIORITY_RESTS } from "../../src/memory/control.ts";
import type { Pointer } from "../../src/memory/pointer.ts";
import { machineMs, nowMs, sleepSync } from "../../src/runtime/clock.ts";
import {
  MAX_PRIORITY_MS,
  PRIORITY_MS,
  PRIORITY_REST,
  STARVED_CONFLICTS,
  STARVED_MS,
} from "../../src/runtime/limits.ts";
import {
  addTo,
  balanceOf,
  createAccounts,
  lockOf,
  readAccount,
  sumOf,
  transact,
} from "../helpers/engine-accounts.ts";
import { EngineStore } from "../helpers/engine-store.ts";

/** Long enough that no share of it passes in a test, however slow the machine. */
const PATIENT_MS = 3_600_000;

let store: EngineStore;
let large: Executor;
let writer: Executor;
let third: Executor;
let accounts: readonly Pointer[];

beforeEach(() => {
  store = new EngineStore();
  large = store.open();
  writer = store.open();
  third = store.open();
  accounts = createAccounts(writer, 4, 0);
});
afterEach(() => store.dispose());

const priorityTaken = (): number => Atomics.load(store.memory.control.i32, PRIORITY);
const ticketOf = ({ slot }: Executor): number =>
  Atomics.load(store.memory.control.i32, store.memory.control.slotAt(slot) + TICKET);
const timesTaken = (): number => counterSum(store.memory.control, "starved");

function setRest(untilMs: number): void {
  store.memory.control.f64[PRIORITY_RESTS / 2] = untilMs;
}

/** As if another process had taken priority: nobody of this thread has. */
function plant({ slot }: Executor, leftMs: number): number {
  const word = priorityWord(slot, machineMs() + leftMs);
  Atomics.store(store.memory.control.i32, PRIORITY, word);
  return word;
}

/** One attempt, without retries: whether it committed, or yielded. */
function tryToAdd(executor: Executor, account: Pointer): "committed" | "yielded" | "conflict" {
  const tx = new Transaction(executor);
  const entered = executor.enter();
  try {
    addTo(tx, account, 1);
    if (executor.commit(tx)) return "committed";
    return tx.yielded ? "yielded" : "conflict";
  } finally {
    tx.clear();
    executor.leave(entered);
  }
}

/** A transaction that has met others for long enough. */
function starved(executor: Executor): Transaction {
  const tx = new Transaction(executor);
  tx.conflicts = STARVED_CONFLICTS;
  tx.conflictsSinceMs = nowMs();
  tx.timeoutMs = PATIENT_MS;
  tx.isStarved = true;
  return tx;
}

describe("taking priority", () => {
  test("a transaction that always meets a writer gets through", () => {
    const outcomes: string[] = [];
    transact(
      large,
      (tx) => {
        addTo(tx, accounts[0], 100);
        sleepSync(STARVED_MS);
        outcomes.push(tryToAdd(writer, accounts[0]));
      },
      PATIENT_MS,
    );
    // The conflicts that it takes to be starved, then an attempt with priority; more than one if the
    // machine is so slow that the first is over before the body.
    expect(outcomes.slice(0, STARVED_CONFLICTS)).not.toContain("yielded");
    expect(outcomes.at(-1)).toBe("yielded");
    expect([priorityTaken(), ticketOf(large)]).toEqual([0, 0]);
    expect(timesTaken()).toBeGreaterThan(0);
    expect(tryToAdd(writer, accounts[0])).toBe("committed");
    const committed = outcomes.filter((outcome) => outcome === "committed").length;
    expect(sumOf(large, accounts)).toBe(100 + committed + 1);
  });

  test("a reader of many objects does, too", () => {
    let attempts = 0;
    const reader = new Transaction(large);
    large.timeoutMs = PATIENT_MS;
    const sum = runReadOnly(
      large,
      reader,
      (tx) => {
        attempts++;
        const first = readAccount(tx, accounts[0]);
        sleepSync(STARVED_MS);
        tryToAdd(writer, accounts[0]);
        return first + readAccount(tx, accounts[1]);
      },
      undefined,
    );
    expect(attempts).toBeGreaterThan(STARVED_CONFLICTS);
    expect(sum).toBe(attempts - 1);
    expect([priorityTaken(), ticketOf(large)]).toEqual([0, 0]);
    expect(timesTaken()).toBeGreaterThan(0);
  });

  test("earlier if a part of its time is over", () => {
    const outcomes: string[] = [];
    transact(
      large,
      (tx) => {
        addTo(tx, accounts[0], 100);
        sleepSync(60);
        outcomes.push(tryToAdd(writer, accounts[0]));
      },
      250,
    );
    expect(outcomes.slice(0, 2)).toEqual(["committed", "committed"]);
    expect(outcomes.at(-1)).toBe("yielded");
  });

  test("not after few conflicts", () => {
    let attempts = 0;
    transact(
      large,
      (tx) => {
        addTo(tx, accounts[0], 100);
        if (++attempts < STARVED_CONFLICTS) tryToAdd(writer, accounts[0]);
      },
      PATIENT_MS,
    );
    expect([attempts, timesTaken()]).toEqual([STARVED_CONFLICTS, 0]);
  });

  test("not because of a lock that does not go away", () => {
    const holder = new Transaction(third);
    const entered = third.enter();
    addTo(holder, accounts[0], 1);
    expect(third.committer.prepare(holder)).toBe(true);
    large.isPatient = false;
    expect(() => transact(large, (tx) => addTo(tx, accounts[0], 1), 60)).toThrow("holds a lock");
    expect(timesTaken()).toBe(0);
    third.committer.release(holder);
    holder.clear();
    third.leave(entered);
  });

  test("what the body throws gives priority back", () => {
    let attempts = 0;
    const run = (): void =>
      transact(
        large,
        (tx) => {
          addTo(tx, accounts[0], 100);
          sleepSync(STARVED_MS);
          if (++attempts > STARVED_CONFLICTS) throw new RangeError("enough");
          tryToAdd(writer, accounts[0]);
        },
        PATIENT_MS,
      );
    expect(run).toThrow(new RangeError("enough"));
    expect([priorityTaken(), ticketOf(large), timesTaken()]).toEqual([0, 0, 1]);
  });
});

describe("yielding", () => {
  test("before anything is locked; readers go on", () => {
    plant(third, MAX_PRIORITY_MS);
    expect(tryToAdd(writer, accounts[0])).toBe("yielded");
    expect(lockOf(store.memory, accounts[0])).toBe(0);
    const { control } = store.memory;
    expect(Atomics.load(control.i32, control.slotAt(writer.slot) + STATUS)).toBe(IDLE);
    expect(sumOf(writer, accounts)).toBe(0);
  });

  test("a retry waits until it is over", () => {
    const leftMs = 60;
    plant(third, leftMs);
    const endsMs = machineMs() + leftMs;
    transact(writer, (tx) => addTo(tx, accounts[0], 1), PATIENT_MS);
    expect(machineMs()).toBeGreaterThanOrEqual(endsMs);
    expect([priorityTaken(), timesTaken()]).toEqual([0, 0]);
    expect(balanceOf(readObject(large, accounts[0]))).toBe(1);
  });

  test("for half of its time-out; it does not fail because of it", () => {
    const word = plant(third, MAX_PRIORITY_MS);
    transact(writer, (tx) => addTo(tx, accounts[0], 1), 20);
    // Unless the machine was so slow that it was over by then.
    expect([word, 0]).toContain(priorityTaken());
    expect(balanceOf(readObject(large, accounts[0]))).toBe(1);
  });

  test("not where it would keep the holder from moving: in its own thread", () => {
    const tx = starved(large);
    while (large.priority.look(tx) > 0);
    expect(large.priority.isHolder(tx)).toBe(true);
    const before = priorityTaken();
    transact(writer, (each) => addTo(each, accounts[0], 1), PATIENT_MS);
    transact(large, (each) => addTo(each, accounts[0], 1), PATIENT_MS);
    expect([before, 0]).toContain(priorityTaken());
    large.priority.end(tx);
    expect(sumOf(third, accounts)).toBe(2);
  });

  test("an asynchronous transaction of the holder's executor does", () => {
    const tx = starved(large);
    while (large.priority.look(tx) > 0);
    const asynchronous = new Transaction(large);
    asynchronous.isAsync = true;
    expect(large.priority.mustYield(asynchronous)).toBe(true);
    expect(large.priority.mustYield(new Transaction(large))).toBe(false);
    expect(large.priority.mustYield(tx)).toBe(false);
    large.priority.end(tx);
    expect(large.priority.mustYield(asynchronous)).toBe(false);
  });

  test("work that may be left undone is", () => {
    plant(third, MAX_PRIORITY_MS);
    let runs = 0;
    const done = tryRun(writer, new Transaction(writer), 5, (tx) => {
      runs++;
      addTo(tx, accounts[0], 1);
    });
    expect([done, runs]).toEqual([false, 1]);
  });

  test("a thread that must not wait ignores it", () => {
    writer.isPatient = false;
    const word = plant(third, MAX_PRIORITY_MS);
    transact(writer, (tx) => addTo(tx, accounts[0], 1), PATIENT_MS);
    expect([word, 0]).toContain(priorityTaken());
  });

  test("and takes none", () => {
    large.isPatient = false;
    let attempts = 0;
    transact(
      large,
      (tx) => {
        addTo(tx, accounts[0], 100);
        sleepSync(STARVED_MS);
        if (++attempts <= 2 * STARVED_CONFLICTS) tryToAdd(writer, accounts[0]);
      },
      PATIENT_MS,
    );
    expect([attempts, timesTaken()]).toEqual([2 * STARVED_CONFLICTS + 1, 0]);
  });
});

describe("prepared transactions", () => {
  test("are refused while another has priority; those that hold locks go on", () => {
    const held = new Transaction(writer);
    writer.isPatient = false;
    const first = writer.enter();
    addTo(held, accounts[0], 1);
    expect(writer.committer.prepare(held)).toBe(true);

    plant(third, MAX_PRIORITY_MS);
    const refused = new Transaction(writer);
    const second = writer.enter();
    addTo(refused, accounts[1], 1);
    expect(writer.committer.prepare(refused)).toBe(false);
    expect(lockOf(store.memory, accounts[1])).toBe(0);
    refused.clear();
    writer.leave(second);

    expect(writer.committer.commitPrepared(held)).toBe(true);
    held.clear();
    writer.leave(first);
    expect(balanceOf(readObject(large, accounts[0]))).toBe(1);
  });
});

describe("the end of priority", () => {
  test("whoever finds it expired ends it, and the store rests", () => {
    plant(third, -1);
    const before = machineMs();
    expect(tryToAdd(writer, accounts[0])).toBe("committed");
    expect(priorityTaken()).toBe(0);
    const rests = store.memory.control.f64[PRIORITY_RESTS / 2];
    expect(rests).toBeGreaterThanOrEqual(before + PRIORITY_REST * PRIORITY_MS);
  });

  test("a word that ends later than any can is nobody's", () => {
    for (const leftMs of [10 * MAX_PRIORITY_MS, 2 ** 23, -(2 ** 22)]) {
      plant(third, leftMs);
      expect(tryToAdd(writer, accounts[0])).toBe("committed");
      expect(priorityTaken()).toBe(0);
    }
  });

  test("the store rests for longer than it took", () => {
    const tx = starved(large);
    while (large.priority.look(tx) > 0);
    sleepSync(30);
    const before = machineMs();
    large.priority.end(tx);
    const rests = store.memory.control.f64[PRIORITY_RESTS / 2];
    expect(rests).toBeGreaterThanOrEqual(before + PRIORITY_REST * 29);
    expect(rests).toBeLessThanOrEqual(machineMs() + PRIORITY_REST * MAX_PRIORITY_MS);
  });

  test("nobody takes priority while the store rests, nor does it rest for longer than anybody has it", () => {
    const tx = starved(large);
    setRest(machineMs() + MAX_PRIORITY_MS - 1);
    expect(large.priority.look(tx)).toBeGreaterThan(0);
    expect(large.priority.isHolder(tx)).toBe(false);
    // The time of another machine, or damage.
    setRest(machineMs() + 10 * MAX_PRIORITY_MS);
    while (large.priority.look(tx) > 0);
    expect(large.priority.isHolder(tx)).toBe(true);
    large.priority.end(tx);
  });

  test("a holder that did not get through takes a longer one after the rest", () => {
    const tx = starved(large);
    while (large.priority.look(tx) > 0);
    plant(large, -1);
    const ms = large.priority.look(tx);
    expect([large.priority.isHolder(tx), priorityTaken(), tx.priorityMs]).toEqual([
      false,
      0,
      2 * PRIORITY_MS,
    ]);
    expect(ms).toBeGreaterThan(0);
    for (let i = 0; i < 5; i++) {
      setRest(0);
      while (large.priority.look(tx) > 0);
      plant(large, -1);
      large.priority.look(tx);
    }
    expect(tx.priorityMs).toBe(MAX_PRIORITY_MS);
    large.priority.end(tx);
    expect(tx.priorityMs).toBe(PRIORITY_MS);
  });
});

describe("the line", () => {
  test("the first waits for the end of the rest, the others go on trying", () => {
    const [first, second] = [starved(large), starved(writer)];
    setRest(machineMs() + MAX_PRIORITY_MS - 1);
    expect(large.priority.look(first)).toBeGreaterThan(0);
    expect(writer.priority.look(second)).toBe(0);
    expect(ticketOf(writer)).toBeGreaterThan(ticketOf(large));
    // Its transaction ended without it: the next one is first.
    large.priority.end(first);
    expect(ticketOf(large)).toBe(0);
    expect(writer.priority.look(second)).toBeGreaterThan(0);
    writer.priority.end(second);
  });

  test("one who does not come for it is passed over", () => {
    const [first, second] = [starved(large), starved(writer)];
    setRest(machineMs() + MAX_PRIORITY_MS - 1);
    large.priority.look(first);
    writer.priority.look(second);
    setRest(machineMs() - 1_000);
    while (writer.priority.look(second) > 0);
    expect(writer.priority.isHolder(second)).toBe(true);
    writer.priority.end(second);
    large.priority.end(first);
  });

  test("transactions of one executor have one ticket, in their order", () => {
    const [first, second] = [starved(large), starved(large)];
    for (const tx of [first, second]) tx.isAsync = true;
    setRest(machineMs() + MAX_PRIORITY_MS - 1);
    expect(large.priority.look(first)).toBeGreaterThan(0);
    expect(large.priority.look(second)).toBe(0);
    large.priority.end(first);
    expect(large.priority.look(second)).toBeGreaterThan(0);
    large.priority.end(second);
    expect(ticketOf(large)).toBe(0);
  });
});

describe("a dead holder", () => {
  test("loses priority and its place with its slot", () => {
    const tx = starved(large);
    while (large.priority.look(tx) > 0);
    store.kill(large);
    expect(priorityTaken()).not.toBe(0);
    writer.sweep();
    expect([priorityTaken(), ticketOf(large)]).toEqual([0, 0]);
  });

  test("is recovered by one who waits for it", () => {
    plant(large, MAX_PRIORITY_MS);
    store.kill(large);
    transact(writer, (tx) => addTo(tx, accounts[0], 1), PATIENT_MS);
    expect(priorityTaken()).toBe(0);
    // Unless the machine was so slow that it was over by then.
    writer.sweep();
    expect(counterSum(store.memory.control, "recoveries")).toBe(1);
  });

  test("one who closes gives priority back", () => {
    const tx = starved(large);
    while (large.priority.look(tx) > 0);
    store.close(large);
    expect([priorityTaken(), ticketOf(large)]).toEqual([0, 0]);
  });
});
