/**
 * The seed of a table's hash: a word in the head of its first shard, written when the table is made
 * and never again. So it is logged, checkpointed, copied and recovered as the rows are; and every
 * structure, also that of an index, has its own. Tables from before there were seeds have 0 there.
 */

import type { Executor } from "../../engine/executor.ts";
import { runReadOnly } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { type Address, wordOf } from "../../memory/address.ts";
import { HEAD_SEED } from "./layout.ts";

/** The seed of the table rooted there, whose making was committed. */
export function seedAt(executor: Executor, root: Address): number {
  // Not without a transaction: the commit that made the table may still be installing its head.
  return runReadOnly(executor, new Transaction(executor), readSeed, root);
}

function readSeed(tx: Transaction, root: Address): number {
  for (;;) {
    const entry = tx.open(tx.executor.memory.regionOf(root), wordOf(root));
    const seed = tx.views.i32[tx.at + HEAD_SEED];
    if (tx.settle(entry)) return seed;
  }
}
