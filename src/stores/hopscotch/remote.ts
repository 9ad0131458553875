/**
 * Finding a key in another node's hash table (../remote/remote.ts). The home bucket and the next one
 * lie side by side and are asked for together, as FaRM reads them (§3.6): two objects in one batch,
 * each consistent in itself. FaRM's joint versions, which tell whether a pair was moved between the
 * two, are not needed: a row that is found is proved by its own bucket, and absence is proved by
 * the versions of both, which are validated or confirmed.
 */

import { MAX_CHAIN_READS } from "../../runtime/limits.ts";
import type { Answer, Found, Reading, RemoteTable, Trail, Wanted } from "../remote/remote.ts";
import { RemoteRows } from "../remote/rows.ts";
import { ROW_DATA } from "../row-object.ts";
import { DEPTH, type HolderShape, TAGS } from "../shards/layout.ts";
import type { Again, RemoteBuckets } from "../shards/remote.ts";
import type { RemoteShard } from "../shards/remote-directory.ts";
import type { RowCodec } from "../store.ts";
import { Geometry } from "./layout.ts";

export class RemoteHopscotch<Row, Key> implements RemoteBuckets<Key> {
  readonly #codec: RowCodec<Row, Key>;
  readonly #geometry: Geometry;
  readonly #rows: RemoteRows;
  readonly stride: number;

  constructor(table: RemoteTable, codec: RowCodec<Row, Key>) {
    this.#codec = codec;
    this.#geometry = new Geometry(table.fixedWords);
    this.#rows = new RemoteRows(table);
    this.stride = this.#geometry.stride;
  }

  *lookIn(
    { depth, regionId }: RemoteShard,
    word: number,
    key: Key,
    hash: number,
    trail: Trail,
  ): Reading<Found | Again> {
    const { stride, bucketWords, bucket } = this.#geometry;
    const home: Wanted = { regionId, word, dataWords: bucketWords };
    const next: Wanted = { regionId, word: word + stride, dataWords: bucketWords };
    trail.count(1);
    const [atHome, atNext] = yield [home, next];
    for (const [wanted, answer] of [
      [home, atHome],
      [next, atNext],
    ] as const) {
      if (answer.data === undefined) continue;
      if (answer.data.i32[DEPTH] !== depth) return "split";
      const found = yield* this.#lookAt(wanted, answer, bucket, key, hash, trail);
      if (found !== "absent") return found;
    }
    if (atHome.data === undefined || atNext.data === undefined) return trail.without("locked");
    return yield* this.#lookInChain(home, atHome, next, atNext, key, hash, trail);
  }

  *#lookInChain(
    home: Wanted,
    atHome: Answer,
    next: Wanted,
    atNext: Answer,
    key: Key,
    hash: number,
    trail: Trail,
  ): Reading<Found | Again> {
    const { block: shape, bucket } = this.#geometry;
    trail.depend(home, atHome);
    let { i32 } = atHome.data!;
    let at = bucket.nextAt;
    while (i32[at] !== 0) {
      const block: Wanted = { regionId: i32[at] - 1, word: i32[at + 1], dataWords: shape.words };
      trail.count(1);
      const [answer] = yield [block];
      if (answer.data === undefined) return trail.without("locked");
      if (answer.incarnation !== i32[at + 2]) return "moved";
      const found = yield* this.#lookAt(block, answer, shape, key, hash, trail);
      if (found !== "absent") return found;
      trail.depend(block, answer);
      if (trail.dependencies.length > MAX_CHAIN_READS) return trail.without("ask");
      ({ i32 } = answer.data);
      at = shape.nextAt;
    }
    trail.depend(next, atNext);
    return trail.absent(false);
  }

  /** Looks at the slots of a bucket or block; depends on it, and on the row, if it is there. */
  *#lookAt(
    wanted: Wanted,
    answer: Answer,
    { rowsAt, slots }: HolderShape,
    key: Key,
    hash: number,
    trail: Trail,
  ): Reading<Found | "absent" | Again> {
    const { inline, slotWords } = this.#geometry;
    const views = answer.data!;
    const { i32 } = views;
    // Others have staged their keys while this one waited.
    this.#codec.stageKey(key);
    for (let slot = 0; slot < slots; slot++) {
      if (i32[TAGS + slot] !== hash) continue;
      const at = rowsAt + slot * slotWords;
      if (inline) {
        if (!this.#codec.matches(views, at)) continue;
        const isFirst = trail.dependencies.length === 0;
        trail.depend(wanted, answer);
        return trail.found(views, at, slotWords, isFirst);
      }
      const place = { views, words: 0 };
      const { length } = trail.dependencies;
      trail.depend(wanted, answer);
      const outcome = yield* this.#rows.read(i32, at, 0, trail, place, true);
      if (outcome === "moved") return outcome;
      if (outcome !== "row") return trail.without(outcome);
      this.#codec.stageKey(key);
      if (this.#codec.matches(place.views, ROW_DATA)) {
        const pointer = { regionId: i32[at] - 1, word: i32[at + 1], incarnation: i32[at + 2] };
        return trail.found(place.views, ROW_DATA, place.words, false, pointer);
      }
      trail.dependencies.length = length;
    }
    return "absent";
  }
}
