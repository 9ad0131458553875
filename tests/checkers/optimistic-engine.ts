/**
 * A model of an optimistic, strictly serializable commit protocol with bugs to plant.
 *
 * Read without locks; then lock the write set in a mode in which others may still read the old
 * value, make all of these locks exclusive, validate the read set, log (the commit point), write
 * and unlock. Each of these can be interrupted by other processes between any two objects. A
 * transaction that read a single object and wrote none commits without validation.
 *
 * Locks become exclusive before validation, not after it. Otherwise (found by the checker):
 *
 *     T   locks y, validates x
 *     W   writes x, commits, is acknowledged         T read the old x:     T before W
 *     R   starts, reads the old y, is done           W ended, R started:   W before R
 *     T   logs, installs y                           R read the old y:     R before T
 */

import type { Operation } from "../../simulation/checkers/history.ts";
import {
  type Finished,
  type Intention,
  interleave,
  planTransaction,
  Random,
  type Recording,
  type Steps,
} from "./interleaving.ts";

export type Bug =
  | "none"
  | "skip-validation"
  | "never-lock-exclusively"
  | "lock-exclusively-after-validation"
  | "install-before-logging"
  | "drop-acknowledged-write"
  | "forget-backup"
  | "stale-read";

export interface EngineOptions {
  readonly seed: number;
  readonly bug: Bug;
  readonly transactionCount?: number;
}

interface Cell {
  list: readonly number[];
  version: number;
  owner: object | undefined;
  isExclusive: boolean;
}

const KEY_COUNT = 4;
const PROCESS_COUNT = 6;
const FAIL_OVER_AT = 1500;

export function runOptimisticEngine(options: EngineOptions): Recording {
  const { seed, bug, transactionCount = 400 } = options;
  const random = new Random(seed);
  const cells: Cell[] = Array.from({ length: KEY_COUNT }, () => ({
    list: [],
    version: 0,
    owner: undefined,
    isExclusive: false,
  }));
  const backup: (readonly number[])[] = cells.map(() => []);
  /** All lists that a key ever had, for stale reads. */
  const installed: (readonly number[])[][] = cells.map(() => [[]]);
  let hasFailedOver = false;
  let lastVersion = 0;
  let lastValue = 0;

  function* run(): Steps<Finished> {
    yield;
    const plan = planTransaction(random, KEY_COUNT);
    if (bug === "stale-read" && plan.length === 1 && plan[0].kind === "read") {
      return yield* readOldList(plan[0]);
    }
    const readSet = new Map<number, { list: readonly number[]; version: number }>();
    const writeSet = new Map<number, number[]>();
    const operations: Operation[] = [];
    for (const { kind, key } of plan) {
      yield;
      if (kind === "append") {
        const value = ++lastValue;
        writeSet.set(key, [...(writeSet.get(key) ?? []), value]);
        operations.push({ kind, key, value });
        continue;
      }
      if (!readSet.has(key)) {
        while (cells[key].isExclusive) yield;
        readSet.set(key, { list: cells[key].list, version: cells[key].version });
      }
      const list = [...readSet.get(key)!.list, ...(writeSet.get(key) ?? [])];
      operations.push({ kind, key, list });
    }

    const owner = {};
    const held: number[] = [];
    const failed = (): Finished => {
      for (const key of held) unlock(key);
      return { outcome: "failed", operations };
    };
    for (const key of [...writeSet.keys()].sort()) {
      yield;
      if (cells[key].owner !== undefined) return failed();
      cells[key].owner = owner;
      held.push(key);
    }
    if (bug !== "lock-exclusively-after-validation") yield* lockExclusively(held);
    const needsValidation = writeSet.size > 0 || readSet.size > 1;
    if (needsValidation && bug !== "skip-validation") {
      for (const [key, { version }] of readSet) {
        yield;
        const { owner: other, version: current } = cells[key];
        if (current !== version || (other !== undefined && other !== owner)) return failed();
      }
    }
    yield;
    if (writeSet.size === 0) return { outcome: "ok", operations };
    if (random.chance(0.03)) return { ...failed(), outcome: "unknown" };

    const newLists = new Map<number, readonly number[]>();
    for (const [key, values] of writeSet) newLists.set(key, [...cells[key].list, ...values]);
    if (bug === "lock-exclusively-after-validation") yield* lockExclusively(held);
    if (bug === "install-before-logging") {
      yield* install(newLists);
      for (let wait = 0; wait < 5; wait++) yield;
      if (random.chance(0.1)) return undo(writeSet, operations);
    } else {
      log(writeSet);
      yield* install(newLists);
    }
    yield;
    return { outcome: random.chance(0.03) ? "unknown" : "ok", operations };
  }

  function* lockExclusively(keys: readonly number[]): Steps<void> {
    if (bug === "never-lock-exclusively") return;
    for (const key of keys) {
      yield;
      cells[key].isExclusive = true;
    }
  }

  function log(writeSet: ReadonlyMap<number, readonly number[]>): void {
    if (bug === "forget-backup" && random.chance(0.1)) return;
    for (const [key, values] of writeSet) backup[key] = [...backup[key], ...values];
  }

  function* install(newLists: ReadonlyMap<number, readonly number[]>): Steps<void> {
    for (const [key, list] of newLists) {
      yield;
      const isDropped = bug === "drop-acknowledged-write" && random.chance(0.05);
      if (!isDropped) replace(key, list);
      unlock(key);
    }
  }

  function replace(key: number, list: readonly number[]): void {
    cells[key].list = list;
    cells[key].version = ++lastVersion;
    installed[key].push(list);
  }

  /**
   * A single old list always fits somewhere into the serial order, but not after its successors.
   */
  function* readOldList({ key }: Intention): Steps<Finished> {
    yield;
    const age = random.below(Math.min(6, installed[key].length));
    const list = installed[key][installed[key].length - 1 - age];
    yield;
    return { outcome: "ok", operations: [{ kind: "read", key, list }] };
  }

  function undo(
    writeSet: ReadonlyMap<number, number[]>,
    operations: readonly Operation[],
  ): Finished {
    for (const [key, values] of writeSet) {
      replace(
        key,
        cells[key].list.filter((value) => !values.includes(value)),
      );
    }
    return { outcome: "failed", operations };
  }

  function unlock(key: number): void {
    cells[key].owner = undefined;
    cells[key].isExclusive = false;
  }

  /** Without a bug the backup has every logged write, so nobody may notice. */
  function failOver(): void {
    if (bug === "install-before-logging" || bug === "drop-acknowledged-write") return;
    for (let key = 0; key < KEY_COUNT; key++) replace(key, backup[key]);
  }

  const history = interleave({
    random,
    processCount: PROCESS_COUNT,
    transactionCount,
    run,
    beforeStep: (time) => {
      if (hasFailedOver || time < FAIL_OVER_AT) return;
      hasFailedOver = true;
      failOver();
    },
  });
  return { history, finalReads: new Map(cells.map(({ list }, key) => [key, list])) };
}
