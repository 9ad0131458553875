/**
 * Finding keys in another node's table of shards (../remote/remote.ts), in whatever layout: the
 * shard by its head, then the buckets as the layout reads them.
 */

import { REMOTE_LOOKUP_ATTEMPTS } from "../../runtime/limits.ts";
import {
  type Found,
  type Reading,
  type RemoteStore,
  type RemoteTable,
  Trail,
} from "../remote/remote.ts";
import type { RowCodec } from "../store.ts";
import { homeOf } from "./layout.ts";
import { RemoteDirectory, type RemoteShard } from "./remote-directory.ts";

/** Why a lookup begins again: the shard has been split, or what was read has changed meanwhile. */
export type Again = "split" | "moved";

export interface RemoteBuckets<Key> {
  /** Words from one bucket's header to the next one's. */
  readonly stride: number;
  /** Looks for a key whose home bucket is at `word`. */
  lookIn(
    shard: RemoteShard,
    word: number,
    key: Key,
    hash: number,
    trail: Trail,
  ): Reading<Found | Again>;
}

export class RemoteShards<Row, Key> implements RemoteStore<Key> {
  readonly #codec: RowCodec<Row, Key>;
  readonly #seed: number;
  readonly #buckets: RemoteBuckets<Key>;
  readonly #directory: RemoteDirectory;

  constructor(table: RemoteTable, codec: RowCodec<Row, Key>, buckets: RemoteBuckets<Key>) {
    this.#codec = codec;
    this.#seed = table.seed ?? 0;
    this.#buckets = buckets;
    this.#directory = new RemoteDirectory(table);
  }

  get heads(): number {
    return this.#directory.heads;
  }

  *lookup(key: Key): Reading<Found> {
    const trail = new Trail();
    const hash = this.#codec.stageKey(key, this.#seed);
    for (let attempt = 0; attempt < REMOTE_LOOKUP_ATTEMPTS; attempt++) {
      trail.restart();
      const known = this.#directory.recall(hash);
      const shard = known ?? (yield* this.#directory.locate(hash, trail));
      if (shard === undefined) break;
      const { depth } = shard;
      const word = shard.base + homeOf(hash) * this.#buckets.stride;
      const found = yield* this.#buckets.lookIn(shard, word, key, hash, trail);
      if (found === "split") this.#directory.forget(shard, depth);
      else if (found !== "moved") return found;
    }
    return trail.without("locked");
  }
}
