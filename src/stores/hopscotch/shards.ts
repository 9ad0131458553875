/**
 * What the splitting of shards needs in every layout that has them: an empty shard, and the splits
 * that committed transactions have left for later.
 */

import { ENTRY_WORDS } from "../../engine/access-set.ts";
import type { Executor } from "../../engine/executor.ts";
import { tryRun } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { type Address, addressOf } from "../../memory/address.ts";
import { nowMs } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { DEPTH, HEAD_BUCKETS, HEAD_DEPTH, HEAD_SEED, HEAD_WORDS } from "./layout.ts";

/** A split that keeps meeting others is left to the next one who finds the shard full. */
const SPLIT_ATTEMPTS = 8;
const MAX_PENDING = 64;

/** Makes an empty shard and returns the address of its head. All layouts have the depth first. */
export function createEmptyShard(
  tx: Transaction,
  buckets: number,
  bucketWords: number,
  depth: number,
  seed: number,
): Address {
  const { set } = tx;
  const head = tx.allocate(HEAD_WORDS * 4);
  const near = addressOf(set.regionIdOf(head), set.wordOf(head));
  const first = tx.allocateArray(buckets, bucketWords * 4, near);
  for (let bucket = 0; bucket < buckets; bucket++) {
    set.arena.i32[set.bufferOf(first + bucket * ENTRY_WORDS) + DEPTH] = depth;
  }
  const at = set.bufferOf(head);
  set.arena.i32[at + HEAD_DEPTH] = depth;
  set.arena.i32[at + HEAD_SEED] = seed;
  set.arena.i32[at + HEAD_BUCKETS] = set.regionIdOf(first) + 1;
  set.arena.i32[at + HEAD_BUCKETS + 1] = set.wordOf(first);
  return near;
}

export class PendingSplits {
  /** Hashes whose shard had to chain: a look at its occupancy is due. */
  readonly #hashes = new Set<number>();
  #tx: Transaction | undefined;

  remember(hash: number): void {
    if (this.#hashes.size < MAX_PENDING) this.#hashes.add(hash);
  }

  /**
   * Looks at each of them with `split`, in a transaction of its own. One who is hurried leaves some of
   * them to the next.
   */
  run(executor: Executor, split: (tx: Transaction, hash: number) => void): void {
    if (this.#hashes.size === 0) return;
    const hashes = [...this.#hashes];
    this.#hashes.clear();
    this.#tx ??= new Transaction(executor);
    const untilMs = executor.maintenanceEndMs();
    for (const hash of hashes) {
      if (nowMs() > untilMs) {
        this.#hashes.add(hash);
        continue;
      }
      try {
        tryRun(executor, this.#tx, SPLIT_ATTEMPTS, (tx) => split(tx, hash));
      } catch (error) {
        // No memory, or a stopped process in the way: chains serve until somebody can split.
        if (error instanceof SituError) return;
        throw error;
      }
    }
  }
}
