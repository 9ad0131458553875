// What the three contestants do with ordered rows, and the bare loop that shows what it costs to
// make row objects of memory in order.
import { randomKeys } from "../harness/random.ts";
import type { SyncContestant } from "../harness/rounds.ts";
import { sink } from "../harness/sink.ts";
import { type AccountRow, checkRow, makeRow } from "../memory/rows.ts";

/** Rows of one range. */
export const rangeRows = 100;

export interface OrderedBank {
  readonly get: SyncContestant;
  readonly scan: SyncContestant;
  readonly range: SyncContestant;
  close(): void | Promise<void>;
}

/** Where ranges start: all of them are full. */
export function rangeStarts(rows: number, seed: number): Int32Array {
  return randomKeys(rows - rangeRows + 1, seed, 2);
}

/** Some contestant's rows from `first` on are those that were loaded, in their order. */
export function checkRange(contestant: string, first: number, range: Iterable<AccountRow>): void {
  let id = first;
  for (const row of range) checkRow(contestant, row, id++);
  if (id !== first + rangeRows) throw new Error(`${contestant} found ${id - first} rows`);
}

const wordsPerRow = 8;

/** 64 bytes a row, one after the other: no keys to find, no versions to check, no iterator. */
export function bareScan(rows: number): SyncContestant {
  const memory = new SharedArrayBuffer(rows * wordsPerRow * 8);
  const words = new Int32Array(memory);
  const doubles = new Float64Array(memory);
  const bigints = new BigInt64Array(memory);
  for (let id = 0; id < rows; id++) {
    const at = id * wordsPerRow;
    const row = makeRow(id);
    words[2 * at] = row.id;
    doubles.set([row.a, row.b, row.c, row.d, row.e], at + 2);
    bigints[at + 1] = row.balance;
  }
  const seen = sink;
  return {
    name: "bare-scan into objects",
    unit: rows,
    run(passes) {
      let sum = 0;
      for (let pass = 0; pass < passes; pass++) {
        for (let at = 0; at < doubles.length; at += wordsPerRow) {
          const row: AccountRow = {
            id: words[2 * at],
            balance: bigints[at + 1],
            a: doubles[at + 2],
            b: doubles[at + 3],
            c: doubles[at + 4],
            d: doubles[at + 5],
            e: doubles[at + 6],
          };
          seen.value = row;
          sum += row.id;
        }
      }
      return sum;
    },
  };
}
