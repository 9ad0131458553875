/** Contiguous reads that a lookup takes in Situ's hashed tables, at a given occupancy of their shards. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { attach } from "../../src/attach/attach.ts";
import { destroy } from "../../src/database/open.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import type { Executor } from "../../src/engine/executor.ts";
import { runSync } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { Random } from "../../src/runtime/random.ts";
import { Buckets } from "../../src/stores/buckets/buckets.ts";
import { Geometry as BucketsGeometry } from "../../src/stores/buckets/layout.ts";
import { Hopscotch } from "../../src/stores/hopscotch/hopscotch.ts";
import { Geometry as HopscotchGeometry } from "../../src/stores/hopscotch/layout.ts";
import { Geometry as RobinhoodGeometry } from "../../src/stores/robinhood/layout.ts";
import { Robinhood } from "../../src/stores/robinhood/robinhood.ts";
import type { ShardGeometry } from "../../src/stores/shards/layout.ts";
import { codecOf } from "../../src/tables/codec/codec.ts";
import { u32, u64 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import type { LookupCost } from "./lookup-cost.ts";

const Pair = table("pair", { key: u32(), value: u64() }, { key: "key" });
const NEVER = Number.POSITIVE_INFINITY;

interface Layout {
  readonly store: typeof Hopscotch | typeof Buckets | typeof Robinhood;
  readonly geometry: new (fixedWords: number) => ShardGeometry;
  /** Slots of the first read, in buckets. */
  readonly buckets: number;
}

const LAYOUTS = {
  hopscotch: { store: Hopscotch, geometry: HopscotchGeometry, buckets: 2 },
  buckets: { store: Buckets, geometry: BucketsGeometry, buckets: 1 },
  // Up to the limit, for one who has no hint.
  robinhood: { store: Robinhood, geometry: RobinhoodGeometry, buckets: 3 },
} as const satisfies Record<string, Layout>;

export type LayoutName = keyof typeof LAYOUTS;

/** Average over all keys of so many shards, each filled to this part of its slots with random keys. */
export async function storeCost(
  name: LayoutName,
  occupancy: number,
  shards: number,
  seed: number,
): Promise<LookupCost> {
  const path = mkdtempSync(join(tmpdir(), "situ-reads-"));
  const settings = settingsOf({ path, memoryBytes: 128 * 2 ** 20, durability: "none" });
  try {
    return await attach(settings, ({ executor }) => {
      const cost = countAll(executor, LAYOUTS[name], occupancy, shards, new Random(seed));
      executor.close();
      return cost;
    });
  } finally {
    await destroy(path);
    rmSync(path, { recursive: true, force: true });
  }
}

function countAll(
  executor: Executor,
  { store: Store, geometry: Geometry, buckets }: Layout,
  occupancy: number,
  shards: number,
  random: Random,
): LookupCost {
  const tx = new Transaction(executor);
  const run = <T>(body: () => T): T => runSync(executor, tx, 1_000, body, undefined);
  const codec = codecOf(Pair);
  const geometry = new Geometry(codec.fixedWords);
  const pairs = Math.round(occupancy * geometry.buckets * geometry.bucket.slots);
  let reads = 0;
  for (let shard = 0; shard < shards; shard++) {
    const root = run(() => Store.create(tx, codec.fixedWords));
    const store = new Store(executor, codec, root, NEVER);
    const keys = new Set<number>();
    while (keys.size < pairs) keys.add(random.next());
    for (const key of keys) run(() => store.put(tx, { key, value: 1n }));
    for (const key of keys) reads += store.countReads(key);
  }
  const roundTrips = reads / (shards * pairs);
  const inFirst = buckets * geometry.bucket.slots;
  return { objects: inFirst + (roundTrips - 1) * geometry.block.slots, roundTrips };
}
