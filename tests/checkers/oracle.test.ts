/**
 * The checker against the definitions. Small histories are executed serially and then damaged a
 * little, so that about as many are explainable as are not.
 */

import { describe, expect, it } from "vitest";
import type { Isolation } from "../../simulation/checkers/cycle-anomalies.ts";
import type { Operation, Outcome, Transaction } from "../../simulation/checkers/history.ts";
import { checkListAppend } from "../../simulation/checkers/list-append.ts";
import { planTransaction, Random, type Recording } from "./interleaving.ts";
import { isExplainable } from "./oracle.ts";

const HISTORIES = 4000;
const KEY_COUNT = 2;

function damagedHistory(seed: number): Recording {
  const random = new Random(seed);
  const state: number[][] = Array.from({ length: KEY_COUNT }, () => []);
  const transactions: Transaction[] = [];
  let lastValue = 0;
  const count = 2 + random.below(3);
  for (let time = 10; time <= count * 10; time += 10) {
    const outcome: Outcome = random.chance(0.8) ? "ok" : random.chance(0.3) ? "failed" : "unknown";
    const isApplied = outcome === "ok" || (outcome === "unknown" && random.chance(0.5));
    const view = state.map((list) => [...list]);
    const operations = planTransaction(random, KEY_COUNT).map(({ kind, key }): Operation => {
      if (kind === "read") return { kind, key, list: [...view[key]] };
      const value = ++lastValue;
      view[key].push(value);
      if (isApplied) state[key].push(value);
      return { kind, key, value };
    });
    const start = time - random.below(25);
    const end = time + random.below(25);
    transactions.push({ process: time, start, end, operations, outcome });
  }

  const damage = (list: readonly number[], key: number): readonly number[] => {
    const full = state[key];
    switch (random.below(8)) {
      case 0:
        return full.slice(0, random.below(full.length + 1));
      case 1:
        return full.slice(0, Math.max(0, list.length - 1));
      case 2:
        return full.slice(0, list.length + 1);
      case 3:
        return random.chance(0.3) ? [...list].reverse() : list;
      case 4:
        return random.chance(0.3) ? [...list, 1 + random.below(lastValue + 1)] : list;
      default:
        return list;
    }
  };
  const damageRate = random.next() * 0.7;
  const history = transactions.map((transaction) => ({
    ...transaction,
    operations: transaction.operations.map((operation) =>
      operation.kind === "read" && random.chance(damageRate)
        ? { ...operation, list: damage(operation.list, operation.key as number) }
        : operation,
    ),
  }));
  const finalReads = new Map(
    state.map((list, key) => [key, random.chance(0.05) ? damage(list, key) : list]),
  );
  return { history, finalReads };
}

/** Returns how many were accepted; throws with the history where the two disagree. */
function compare(isolation: Isolation, withFinalReads: boolean): number {
  let accepted = 0;
  for (let seed = 1; seed <= HISTORIES; seed++) {
    const { history, finalReads } = damagedHistory(seed);
    const expected = isExplainable(history, isolation, withFinalReads ? finalReads : undefined);
    const result = checkListAppend(history, {
      isolation,
      ...(withFinalReads ? { finalReads } : {}),
    });
    // Without final reads snapshot isolation may accept too much, never too little.
    const isInexact = isolation === "snapshot" && !withFinalReads && result.ok;
    if (!isInexact && result.ok !== expected) {
      const reasons = result.anomalies.map(({ kind, explanation }) => `${kind}: ${explanation}`);
      const text = JSON.stringify({ seed, history, finalReads: [...finalReads] }, null, 1);
      throw new Error(`expected ${expected}\n${reasons.join("\n")}\n${text}`);
    }
    if (expected) accepted++;
  }
  return accepted;
}

describe.each(["strict-serializable", "serializable", "snapshot"] as const)("%s", (isolation) => {
  it.each([true, false])("agrees with brute force, final reads: %s", (withFinalReads) => {
    const accepted = compare(isolation, withFinalReads);
    expect(accepted).toBeGreaterThan(HISTORIES * 0.15);
    expect(accepted).toBeLessThan(HISTORIES * 0.85);
  });
});
