/**
 * What a transaction computes, as a function of rows: at the host, at the coordinator's NIC (function shipping, §4.2.2), or at a
 * remote primary's (§4.2.3). It is given what was read so far, and wants more rows, or is done. It writes only rows that
 * were asked for as written, since those are locked.
 */

import type { TwoWords } from "./caching-index.ts";
import { ABSENT, type Item, type RowName, rowId, type Value } from "./message.ts";
import type { NicRoutine } from "./routine.ts";

export interface Wanted {
  readonly reads: readonly RowName[];
  readonly writes: readonly RowName[];
}

export interface Write extends RowName {
  readonly value: Value;
}

export type Execution =
  | ({ readonly kind: "more" } & Wanted)
  | { readonly kind: "done"; readonly writes: readonly Write[]; readonly result: Int32Array }
  /** What it relies on is not so any more. */
  | { readonly kind: "conflict" }
  | { readonly kind: "refused" };

/** The values of rows that were asked for. */
export interface RowReader {
  (row: RowName): Value;
  /** Whether it was asked for. */
  has(row: RowName): boolean;
  /** Its version. */
  versionOf(row: RowName): TwoWords | undefined;
}

export interface XenicProcedure {
  /** Where it may run: what takes long or has much state of its own belongs to the host (§4.3.3). */
  readonly runs: "host" | "nic";
  /** Whether it never wants more than it was called with, which a multi-hop commit needs. */
  readonly isOneShot: boolean;
  run(args: Int32Array, read: RowReader): Execution;
  /** In place of `run`, for one that must not hold up the NIC: elsewhere, and `done` is called once, at any time. */
  readonly runElsewhere?: (
    args: Int32Array,
    items: readonly Item[],
    done: (execution: Execution) => void,
  ) => void;
}

/** Runs a procedure where it may run: here, or elsewhere. */
export function* perform(
  procedure: XenicProcedure,
  args: Int32Array,
  items: readonly Item[],
): NicRoutine<Execution> {
  const { runElsewhere } = procedure;
  if (runElsewhere === undefined) return execute(procedure, args, items);
  let execution: Execution | undefined;
  yield (resume) =>
    runElsewhere(args, items, (ended) => {
      execution = ended;
      resume();
    });
  return soundOf(execution as Execution, items);
}

/** Runs a procedure on rows with their values. One that throws, or writes what it has not locked, is refused. */
export function execute(
  procedure: XenicProcedure,
  args: Int32Array,
  items: readonly Item[],
): Execution {
  const rows = new Map(items.map((item) => [rowId(item), item]));
  const read = (row: RowName): Value => rows.get(rowId(row))?.value ?? ABSENT;
  const reader = Object.assign(read, {
    has: (row: RowName) => rows.has(rowId(row)),
    versionOf: (row: RowName) => rows.get(rowId(row))?.version,
  });
  let execution: Execution;
  try {
    execution = procedure.run(args, reader);
  } catch {
    return { kind: "refused" };
  }
  return soundOf(execution, items);
}

/** Only what was locked may be written. */
function soundOf(execution: Execution, items: readonly Item[]): Execution {
  if (execution.kind !== "done") return execution;
  const locked = new Set(items.filter(({ isWritten }) => isWritten).map(rowId));
  return execution.writes.every((row) => locked.has(rowId(row))) ? execution : { kind: "refused" };
}
