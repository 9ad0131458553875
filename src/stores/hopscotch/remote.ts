/**
 * Finding a key in another node's hash table (../remote/remote.ts). The home bucket and the next one
 * lie side by side and are asked for together, as FaRM reads them (§3.6): two objects in one batch,
 * each consistent in itself. FaRM's joint versions, which tell whether a pair was moved between the
 * two, are not needed: a row that is found is proved by its own bucket, and absence is proved by
 * the versions of both, which are validated or confirmed.
 */

import {
  BUCKET_SLOTS,
  MAX_CHAIN_READS,
  OVERFLOW_SLOTS,
  REMOTE_LOOKUP_ATTEMPTS,
} from "../../runtime/limits.ts";
import { RemoteDirectory, type RemoteShard } from "../remote/directory.ts";
import {
  type Answer,
  type Found,
  type Reading,
  type RemoteTable,
  Trail,
  type Wanted,
} from "../remote/remote.ts";
import { RemoteRows } from "../remote/rows.ts";
import { ROW_DATA } from "../row-object.ts";
import type { RowCodec } from "../store.ts";
import {
  BLOCK_ROWS,
  BLOCK_TAGS,
  BUCKET_ROWS,
  BUCKET_TAGS,
  DEPTH,
  Geometry,
  homeOf,
  NEXT,
  OVERFLOW,
} from "./layout.ts";

/** What a kind of object that holds pairs looks like. */
interface Holder {
  readonly tagsAt: number;
  readonly rowsAt: number;
  readonly slots: number;
}

const BUCKET: Holder = { tagsAt: BUCKET_TAGS, rowsAt: BUCKET_ROWS, slots: BUCKET_SLOTS };
const BLOCK: Holder = { tagsAt: BLOCK_TAGS, rowsAt: BLOCK_ROWS, slots: OVERFLOW_SLOTS };

export class RemoteHopscotch<Row, Key> {
  readonly #codec: RowCodec<Row, Key>;
  readonly #seed: number;
  readonly #geometry: Geometry;
  readonly #rows: RemoteRows;
  readonly directory: RemoteDirectory;

  constructor(table: RemoteTable, codec: RowCodec<Row, Key>) {
    this.#codec = codec;
    this.#seed = table.seed ?? 0;
    this.#geometry = new Geometry(table.fixedWords);
    this.#rows = new RemoteRows(table);
    this.directory = new RemoteDirectory(table);
  }

  *lookup(key: Key): Reading<Found> {
    const trail = new Trail();
    const hash = this.#codec.stageKey(key, this.#seed);
    for (let attempt = 0; attempt < REMOTE_LOOKUP_ATTEMPTS; attempt++) {
      trail.restart();
      const known = this.directory.recall(hash);
      const shard = known ?? (yield* this.directory.locate(hash, trail));
      if (shard === undefined) break;
      const found = yield* this.#lookIn(shard, key, hash, trail);
      if (found !== undefined) return found;
    }
    return trail.without("locked");
  }

  /** Undefined if what was known is no longer true: then again. */
  *#lookIn(shard: RemoteShard, key: Key, hash: number, trail: Trail): Reading<Found | undefined> {
    const { stride, bucketWords } = this.#geometry;
    const { depth, regionId, base } = shard;
    const word = base + homeOf(hash) * stride;
    const home: Wanted = { regionId, word, dataWords: bucketWords };
    const next: Wanted = { regionId, word: word + stride, dataWords: bucketWords };
    trail.count(1);
    const [atHome, atNext] = yield [home, next];
    for (const [wanted, answer] of [
      [home, atHome],
      [next, atNext],
    ] as const) {
      if (answer.data === undefined) continue;
      if (answer.data.i32[DEPTH] !== depth) {
        this.directory.forget(shard, depth);
        return undefined;
      }
      const found = yield* this.#lookAt(wanted, answer, BUCKET, key, hash, trail);
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
  ): Reading<Found | undefined> {
    const dataWords = this.#geometry.blockWords;
    trail.depend(home, atHome);
    let { i32 } = atHome.data!;
    let at = OVERFLOW;
    while (i32[at] !== 0) {
      const block: Wanted = { regionId: i32[at] - 1, word: i32[at + 1], dataWords };
      trail.count(1);
      const [answer] = yield [block];
      if (answer.data === undefined) return trail.without("locked");
      if (answer.incarnation !== i32[at + 2]) return undefined;
      const found = yield* this.#lookAt(block, answer, BLOCK, key, hash, trail);
      if (found !== "absent") return found;
      trail.depend(block, answer);
      if (trail.dependencies.length > MAX_CHAIN_READS) return trail.without("ask");
      ({ i32 } = answer.data);
      at = NEXT;
    }
    trail.depend(next, atNext);
    return trail.absent(false);
  }

  /** Looks at the slots of a bucket or block; depends on it, and on the row, if it is there. */
  *#lookAt(
    wanted: Wanted,
    answer: Answer,
    { tagsAt, rowsAt, slots }: Holder,
    key: Key,
    hash: number,
    trail: Trail,
  ): Reading<Found | "absent" | undefined> {
    const { inline, slotWords } = this.#geometry;
    const views = answer.data!;
    const { i32 } = views;
    // Others have staged their keys while this one waited.
    this.#codec.stageKey(key);
    for (let slot = 0; slot < slots; slot++) {
      if (i32[tagsAt + slot] !== hash) continue;
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
      if (outcome === "moved") return undefined;
      if (outcome !== "row") return trail.without(outcome);
      this.#codec.stageKey(key);
      if (this.#codec.matches(place.views, ROW_DATA)) {
        return trail.found(place.views, ROW_DATA, place.words, false);
      }
      trail.dependencies.length = length;
    }
    return "absent";
  }
}
