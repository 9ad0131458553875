/**
 * Finding a key in another node's bucket store (../remote/remote.ts): the main bucket is one read,
 * and proves all that is in it; blocks of a chain and row objects are one read more each. Whatever
 * was read, the main bucket is the only dependency (layout.ts).
 */

import type { Views } from "../../memory/views.ts";
import { MAX_CHAIN_READS } from "../../runtime/limits.ts";
import type { Found, Reading, RemoteTable, Trail, Wanted } from "../remote/remote.ts";
import { RemoteRows } from "../remote/rows.ts";
import { ROW_DATA } from "../row-object.ts";
import { DEPTH, POINTER_ROW_WORDS, TAGS } from "../shards/layout.ts";
import type { Again, RemoteBuckets } from "../shards/remote.ts";
import type { RemoteShard } from "../shards/remote-directory.ts";
import type { RowCodec } from "../store.ts";
import { Geometry, NEXT } from "./layout.ts";

export class RemoteMainBuckets<Row, Key> implements RemoteBuckets<Key> {
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
    const { bucketWords: dataWords } = this.#geometry;
    const main: Wanted = { regionId, word, dataWords };
    trail.count(1);
    const [atMain] = yield [main];
    if (atMain.data === undefined) return trail.without("locked");
    let views = atMain.data;
    if (views.i32[DEPTH] !== depth) return "split";
    trail.depend(main, atMain);
    for (let block = 0; ; block++) {
      const found = yield* this.#lookAt(views, key, hash, trail);
      if (found !== "absent") return found;
      const { i32 } = views;
      if (i32[NEXT] === 0) return trail.absent(trail.below === 0);
      if (block === MAX_CHAIN_READS) return trail.without("ask");
      trail.count(1);
      trail.below++;
      const [answer] = yield [{ regionId: i32[NEXT] - 1, word: i32[NEXT + 1], dataWords }];
      if (answer.data === undefined) return trail.without("locked");
      if (answer.incarnation !== i32[NEXT + 2]) return "moved";
      views = answer.data;
    }
  }

  /** Looks at the slots of a bucket or block. */
  *#lookAt(views: Views, key: Key, hash: number, trail: Trail): Reading<Found | "absent" | Again> {
    const geometry = this.#geometry;
    const { i32 } = views;
    // Others have staged their keys while this one waited.
    this.#codec.stageKey(key);
    for (let slot = 0; slot < geometry.slots; slot++) {
      if (i32[TAGS + slot] !== hash) continue;
      const at = geometry.slotAt(slot);
      if (geometry.inline) {
        if (!this.#codec.matches(views, at)) continue;
        return trail.found(views, at, geometry.slotWords, trail.below === 0);
      }
      const place = { views, words: 0 };
      const told = i32[at + POINTER_ROW_WORDS];
      const outcome = yield* this.#rows.read(i32, at, told, trail, place, false);
      if (outcome === "moved") return outcome;
      if (outcome !== "row") return trail.without(outcome);
      this.#codec.stageKey(key);
      if (!this.#codec.matches(place.views, ROW_DATA)) continue;
      return trail.found(place.views, ROW_DATA, place.words, false);
    }
    return "absent";
  }
}
