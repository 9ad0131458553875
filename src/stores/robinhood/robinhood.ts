/**
 * Xenic's Robin Hood table behind a table: the parts of a sharded store (../shards/sharded-store.ts) in the layout of
 * Robin Hood hashing (layout.ts tells its shape). Against hopscotch: more rows in the same memory at the same cost
 * of a lookup, for the pairs of a cluster share their bad luck, and one object less to read by those who know how far
 * from their homes the pairs of a segment are (Xenic's NIC does). But an insertion or a removal moves neighbours, and
 * so conflicts with those who write them.
 */

import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import { SPLIT_CHAIN_BLOCKS, SPLIT_OCCUPANCY } from "../../runtime/limits.ts";
import { Directory } from "../shards/directory.ts";
import { seedAt } from "../shards/seed.ts";
import { readStaged, ShardedStore } from "../shards/sharded-store.ts";
import { createShard } from "../shards/split.ts";
import type { RowCodec } from "../store.ts";
import { Geometry } from "./layout.ts";
import { Lookup } from "./lookup.ts";
import { Placement } from "./placement.ts";
import { Search } from "./search.ts";

export class Robinhood<Row, Key> extends ShardedStore<Row, Key> {
  constructor(
    executor: Executor,
    codec: RowCodec<Row, Key>,
    root: Address,
    splitOccupancy: number = SPLIT_OCCUPANCY,
  ) {
    const geometry = new Geometry(codec.fixedWords);
    const seed = seedAt(executor, root);
    const directory = new Directory(executor.memory, root);
    const search = new Search(directory, geometry, codec);
    super(executor, codec, {
      seed,
      geometry,
      directory,
      search,
      slots: new Placement(geometry, search),
      lookup: new Lookup(executor, codec, seed, geometry, directory, (tx, hash) =>
        readStaged(tx, hash, search, codec),
      ),
      splitOccupancy,
      splitChainBlocks: SPLIT_CHAIN_BLOCKS,
    });
  }

  /** Makes an empty table, with a seed for its hash, and returns where it is rooted. */
  static create(tx: Transaction, fixedWords: number, seed = 0): Address {
    return createShard(tx, new Geometry(fixedWords), 0, seed);
  }
}
