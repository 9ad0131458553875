/**
 * The definitions of serializability and snapshot isolation, tried by brute force: is there any
 * order of events, and any choice among the unknown transactions, that explains the whole history?
 * Only for a handful of transactions, and therefore free of every idea that the checker rests on.
 */

import type { Isolation } from "../../simulation/checkers/cycle-anomalies.ts";
import type {
  FinalReads,
  History,
  Key,
  Transaction,
  Value,
} from "../../simulation/checkers/history.ts";

type State = ReadonlyMap<Key, readonly Value[]>;

export function isExplainable(
  history: History,
  isolation: Isolation,
  finalReads: FinalReads | undefined,
): boolean {
  const certain = history.filter(({ outcome }) => outcome === "ok");
  const unknown = history.filter(({ outcome }) => outcome === "unknown");
  for (let choice = 0; choice < 2 ** unknown.length; choice++) {
    const committed = [...certain, ...unknown.filter((_, bit) => (choice >> bit) % 2 === 1)];
    const explained =
      isolation === "snapshot"
        ? isSnapshotIsolated(committed, finalReads)
        : isSerial(committed, new Map(), isolation === "strict-serializable", finalReads);
    if (explained) return true;
  }
  return false;
}

function isSerial(
  remaining: History,
  state: State,
  isStrict: boolean,
  finalReads: FinalReads | undefined,
): boolean {
  if (remaining.length === 0) return isFinal(state, finalReads);
  return remaining.some((next) => {
    const others = remaining.filter((transaction) => transaction !== next);
    if (isStrict && others.some((other) => endsBefore(other, next))) return false;
    const after = execute(next, state, state);
    return after !== undefined && isSerial(others, after, isStrict, finalReads);
  });
}

function endsBefore(first: Transaction, second: Transaction): boolean {
  return first.outcome === "ok" && first.end < second.start;
}

/** Tries every interleaving of one start and one commit per transaction. */
function isSnapshotIsolated(committed: History, finalReads: FinalReads | undefined): boolean {
  interface Running {
    readonly transaction: Transaction;
    readonly snapshot: State;
    /** Keys that others committed since the start. */
    readonly overwritten: ReadonlySet<Key>;
  }
  const search = (waiting: History, running: readonly Running[], state: State): boolean => {
    if (waiting.length === 0 && running.length === 0) return isFinal(state, finalReads);
    const canStart = waiting.some((transaction) =>
      search(
        waiting.filter((other) => other !== transaction),
        [...running, { transaction, snapshot: state, overwritten: new Set() }],
        state,
      ),
    );
    if (canStart) return true;
    return running.some((committing) => {
      const written = keysWritten(committing.transaction);
      if (written.some((key) => committing.overwritten.has(key))) return false;
      const after = execute(committing.transaction, committing.snapshot, state);
      if (after === undefined) return false;
      const others = running
        .filter((other) => other !== committing)
        .map((other) => ({ ...other, overwritten: new Set([...other.overwritten, ...written]) }));
      return search(waiting, others, after);
    });
  };
  return search(committed, [], new Map());
}

function keysWritten({ operations }: Transaction): readonly Key[] {
  return operations.filter(({ kind }) => kind === "append").map(({ key }) => key);
}

/** The state after the transaction, or undefined if it would have read something else. */
function execute({ operations }: Transaction, snapshot: State, state: State): State | undefined {
  const own = new Map<Key, readonly Value[]>();
  for (const operation of operations) {
    const { key } = operation;
    if (operation.kind === "append") {
      own.set(key, [...(own.get(key) ?? []), operation.value]);
    } else if (!areEqual(operation.list, [...(snapshot.get(key) ?? []), ...(own.get(key) ?? [])])) {
      return undefined;
    }
  }
  const after = new Map(state);
  for (const [key, values] of own) after.set(key, [...(after.get(key) ?? []), ...values]);
  return after;
}

function isFinal(state: State, finalReads: FinalReads | undefined): boolean {
  if (finalReads === undefined) return true;
  const keys = new Set([...state.keys(), ...finalReads.keys()]);
  return [...keys].every((key) => areEqual(state.get(key) ?? [], finalReads.get(key) ?? []));
}

function areEqual(left: readonly Value[], right: readonly Value[]): boolean {
  return left.length === right.length && left.every((value, at) => value === right[at]);
}
