/**
 * Transactions that read some objects and write some, as FaSST's object store O(r, w) (§6.1 there)
 * and Retwis (Xenic §5.4) do. An object counts how often it was read and written by one
 * transaction, so lost updates show in the sum.
 */

import { type InferRow, str, table, u32 } from "situ";
import type { Result } from "../workload.ts";

/** Values of 40 bytes, as FaSST's: count, stamp, and a text with its length. */
export const OBJECT_TEXT_BYTES = 31;
export const Objects = table(
  "objects",
  { key: u32(), count: u32(), stamp: u32(), text: str(OBJECT_TEXT_BYTES) },
  { key: "key" },
);
/** Values of 64 bytes, as Xenic's Retwis. */
export const RETWIS_TEXT_BYTES = 55;
export const RetwisObjects = table(
  "retwis",
  { key: u32(), count: u32(), stamp: u32(), text: str(RETWIS_TEXT_BYTES) },
  { key: "key" },
);
export type ObjectRow = InferRow<typeof Objects>;
export type ObjectTable = typeof Objects | typeof RetwisObjects;

export interface ObjectStore {
  /**
   * One transaction. Reads the whole rows of the first `reads` keys. Then writes `stamp` and
   * `text` to the first `writes` keys; those that were read also get `count` + 1. All keys are
   * different and exist. Returns the sum of `count` and of the length of `text` over what it read.
   */
  access(
    keys: readonly number[],
    reads: number,
    writes: number,
    stamp: number,
    text: string,
  ): Result<number>;
}
