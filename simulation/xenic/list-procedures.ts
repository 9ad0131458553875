/** Procedures on lists, for list-append: read some lists, append to some of them, and give back what was read. */

import { ABSENT, type RowName, type Value } from "../../src/protocols/xenic/message.ts";
import type { Execution, RowReader, XenicProcedure } from "../../src/protocols/xenic/procedure.ts";

export const LIST_WORDS = 40;

/** One list of a transaction; `value` is what it appends. */
export interface ListAccess {
  readonly key: number;
  readonly value: number | undefined;
}

export const AT_NIC = 0;
export const AT_HOST = 1;
/** Reads its first list before it knows the others. */
export const TWO_SHOTS = 2;

const rowOf = (key: number): RowName => ({ table: 0, key });

export function argsOf(accesses: readonly ListAccess[]): Int32Array {
  return new Int32Array(accesses.flatMap(({ key, value = 0 }) => [key, value]));
}

export function accessesOf(args: Int32Array): ListAccess[] {
  const accesses: ListAccess[] = [];
  for (let i = 0; i < args.length; i += 2) {
    accesses.push({ key: args[i], value: args[i + 1] === 0 ? undefined : args[i + 1] });
  }
  return accesses;
}

/** The rows that a procedure is called with. */
export function wantedBy(procedure: number, accesses: readonly ListAccess[]) {
  const first = procedure === TWO_SHOTS ? accesses.slice(0, 1) : accesses;
  return wanted(first);
}

function wanted(accesses: readonly ListAccess[]) {
  const rows = (isWritten: boolean): RowName[] =>
    accesses
      .filter(({ value }) => (value !== undefined) === isWritten)
      .map(({ key }) => rowOf(key));
  return { reads: rows(false), writes: rows(true) };
}

export function listOf(value: Value): number[] {
  return value === ABSENT ? [] : [...value.subarray(1, 1 + value[0])];
}

/** The lists that a transaction has read, in the order of its accesses. */
export function listsOf(result: Int32Array): number[][] {
  const lists: number[][] = [];
  for (let at = 0; at < result.length; ) {
    const count = result[at];
    lists.push([...result.subarray(at + 1, at + 1 + count)]);
    at += 1 + count;
  }
  return lists;
}

function append(args: Int32Array, read: RowReader): Execution {
  const accesses = accessesOf(args);
  const result: number[] = [];
  const writes = accesses.flatMap(({ key, value }) => {
    const list = listOf(read(rowOf(key)));
    result.push(list.length, ...list);
    if (value === undefined) return [];
    const words = new Int32Array(LIST_WORDS);
    // A full list is left alone: the transaction has only read it.
    if (list.length >= LIST_WORDS - 1) return [];
    words.set([list.length + 1, ...list, value]);
    return [{ ...rowOf(key), value: words }];
  });
  return { kind: "done", writes, result: new Int32Array(result) };
}

function procedure(runs: "host" | "nic"): XenicProcedure {
  return { runs, isOneShot: true, run: append };
}

/** The first list is there; the others are not, at first, and are asked for. */
const twoShots = (): XenicProcedure => {
  return {
    runs: "nic",
    isOneShot: false,
    run(args, read) {
      const rest = accessesOf(args).slice(1);
      const missing = rest.filter(({ key }) => !read.has(rowOf(key)));
      if (missing.length > 0) return { kind: "more", ...wanted(missing) };
      return append(args, read);
    },
  };
};

export const LIST_PROCEDURES: readonly XenicProcedure[] = [
  procedure("nic"),
  procedure("host"),
  twoShots(),
];
