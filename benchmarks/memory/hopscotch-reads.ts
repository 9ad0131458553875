// Counts the contiguous reads that one lookup needs; a bucket and its neighbour are one read.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { attach } from "../../src/attach/attach.ts";
import { destroy } from "../../src/database/open.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import type { Executor } from "../../src/engine/executor.ts";
import { runSync } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { BUCKET_SLOTS, SHARD_BUCKETS } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { Hopscotch } from "../../src/stores/hopscotch/hopscotch.ts";
import { codecOf } from "../../src/tables/codec/codec.ts";
import { u32, u64 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";

const Pair = table("pair", { key: u32(), value: u64() }, { key: "key" });
const SHARDS = 256;
const NEVER = Number.POSITIVE_INFINITY;

/** Average over all keys of 256 shards, each filled to this part of its slots with random keys. */
export async function readsPerLookup(occupancy: number, seed = 1): Promise<number> {
  const path = mkdtempSync(join(tmpdir(), "situ-reads-"));
  const settings = settingsOf({ path, memoryBytes: 64 * 2 ** 20, durability: "none" });
  try {
    return await attach(settings, ({ executor }) => {
      const average = countAll(executor, occupancy, new Random(seed));
      executor.close();
      return average;
    });
  } finally {
    await destroy(path);
    rmSync(path, { recursive: true, force: true });
  }
}

function countAll(executor: Executor, occupancy: number, random: Random): number {
  const tx = new Transaction(executor);
  const run = (body: () => void): void => runSync(executor, tx, 1000, body, undefined);
  const pairs = Math.round(occupancy * (SHARD_BUCKETS + 1) * BUCKET_SLOTS);
  let reads = 0;
  for (let shard = 0; shard < SHARDS; shard++) {
    const codec = codecOf(Pair);
    const root = runSync(
      executor,
      tx,
      1000,
      () => Hopscotch.create(tx, codec.fixedWords),
      undefined,
    );
    const store = new Hopscotch(executor, codec, root, NEVER);
    const keys = new Set<number>();
    while (keys.size < pairs) keys.add(random.next());
    for (const key of keys) run(() => store.put(tx, { key, value: 1n }));
    for (const key of keys) reads += store.countReads(key);
  }
  return reads / (SHARDS * pairs);
}
