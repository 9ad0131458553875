/**
 * A model of snapshot isolation: reads from the state at the start, and the first committer wins.
 * Without that rule, updates overlook each other.
 */

import type { Operation } from "../../simulation/checkers/history.ts";
import {
  type Finished,
  interleave,
  planTransaction,
  Random,
  type Recording,
  type Steps,
} from "./interleaving.ts";

const KEY_COUNT = 4;

export interface SnapshotEngineOptions {
  readonly seed: number;
  readonly firstCommitterWins: boolean;
}

export function runSnapshotEngine(options: SnapshotEngineOptions): Recording {
  const random = new Random(options.seed);
  const committedAt = new Array<number>(KEY_COUNT).fill(0);
  let state: readonly (readonly number[])[] = committedAt.map(() => []);
  let commits = 0;
  let lastValue = 0;

  function* run(): Steps<Finished> {
    yield;
    const snapshot = state;
    const snapshotAt = commits;
    const operations: Operation[] = [];
    const writeSet = new Map<number, number[]>();
    for (const { kind, key } of planTransaction(random, KEY_COUNT)) {
      yield;
      const own = writeSet.get(key) ?? [];
      if (kind === "append") {
        const value = ++lastValue;
        writeSet.set(key, [...own, value]);
        operations.push({ kind, key, value });
      } else {
        operations.push({ kind, key, list: [...snapshot[key], ...own] });
      }
    }
    yield;
    for (const key of writeSet.keys()) {
      if (options.firstCommitterWins && committedAt[key] > snapshotAt) {
        return { outcome: "failed", operations };
      }
    }
    commits++;
    const next = [...state];
    for (const [key, values] of writeSet) {
      next[key] = [...next[key], ...values];
      committedAt[key] = commits;
    }
    state = next;
    yield;
    return { outcome: "ok", operations };
  }

  const history = interleave({ random, processCount: 6, transactionCount: 400, run });
  return { history, finalReads: new Map(state.map((list, key) => [key, list])) };
}
