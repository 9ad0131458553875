/** Every rule of a bucket store is broken on purpose, right in memory, and the check must tell. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SHARD_BUCKETS } from "../../src/runtime/limits.ts";
import { CHAIN_BLOCKS, Geometry, NEXT } from "../../src/stores/buckets/layout.ts";
import {
  DEPTH,
  HEAD_BUCKETS,
  HEAD_DEPTH,
  HEAD_SIBLINGS,
  homeOf,
  POINTER_ROW_WORDS,
  TAGS,
} from "../../src/stores/shards/layout.ts";
import { codecOf } from "../../src/tables/codec/codec.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import {
  CheckedStore,
  expectCorrupt,
  expectFound,
  type Planted,
  type Words,
} from "../helpers/checks.ts";

/** Words of a header, from an object's data on. */
const VERSION_HIGH = -3;
const INCARNATION = -1;
/** Of an array's cell, from the data of its first bucket on. */
const ARRAY_ELEMENTS = -5;

const layout = "buckets" as const;
const Inline = table("inline", { id: u32(), name: str(20) }, { key: "id", layout });
const Objects = table("objects", { id: u32(), text: str() }, { key: "id", layout });

let store: CheckedStore;
beforeEach(() => {
  store = new CheckedStore();
});
afterEach(() => store.dispose());

interface Shard {
  readonly head: Words;
  readonly geometry: Geometry;
  bucket(index: number): Words;
}

async function firstShard(name: string): Promise<Shard> {
  const { rows } = await store.parts(name);
  const head = store.objectAt(rows.root);
  const geometry = new Geometry(rows.structure.codec.fixedWords);
  const base = store.follow(head, HEAD_BUCKETS);
  return {
    head,
    geometry,
    bucket: (index) => base.moved(store.executor, index * geometry.stride),
  };
}

async function inlineShard(): Promise<Shard> {
  const rows = Array.from({ length: 3_000 }, (_, id) => ({ id, name: `n${id}` }));
  store.fill(store.open(Inline), rows);
  return await firstShard("inline");
}

/** The first used or empty slot of the shard. */
function slotOf({ bucket, geometry }: Shard, isUsed: boolean) {
  for (let index = 0; index < SHARD_BUCKETS; index++) {
    for (let slot = 0; slot < geometry.slots; slot++) {
      if ((bucket(index).get(TAGS + slot) !== 0) !== isUsed) continue;
      const place = { bucket: bucket(index), index, tagAt: TAGS + slot };
      return { ...place, rowAt: geometry.slotAt(slot) };
    }
  }
  throw new Error("no such slot");
}

/** A bucket with a chain of three blocks, the first of which has room. */
async function chained(): Promise<{ shard: Shard; bucket: Words; blocks: Words[] }> {
  const codec = codecOf(Inline);
  const { slots } = new Geometry(codec.fixedWords);
  const ids: number[] = [];
  for (let id = 0; ids.length < 3 * slots + 2; id++) {
    if (homeOf(codec.stageKey(id)) === 7) ids.push(id);
  }
  store.fill(
    store.open(Inline),
    ids.map((id) => ({ id, name: "" })),
    1,
  );
  const shard = await firstShard("inline");
  const blocks: Words[] = [];
  for (let from = shard.bucket(7); from.get(NEXT) !== 0; ) {
    from = store.follow(from, NEXT);
    blocks.push(from);
  }
  expect(blocks.length).toBe(3);
  return { shard, bucket: shard.bucket(7), blocks };
}

test("a sound store, with figures", async () => {
  await inlineShard();
  store.fill(
    store.open(Objects),
    Array.from({ length: 200 }, (_, id) => ({ id, text: "x".repeat(id) })),
  );
  const { problems, tables } = await store.verify();
  expect(problems).toEqual([]);
  expect(tables.map(({ name, rows }) => [name, rows])).toEqual([
    ["inline", 3_000],
    ["objects", 200],
  ]);
});

describe("shards", () => {
  test.each<[string, (shard: Shard) => Planted[], RegExp]>([
    ["a depth", ({ head }) => [head.place(HEAD_DEPTH).set(27)], /says depth 27/],
    [
      "a depth one more",
      ({ head }) => [head.place(HEAD_DEPTH).set(head.get(HEAD_DEPTH) + 1)],
      /no shard split off at bit/,
    ],
    [
      "a depth one less",
      ({ head }) => [head.place(HEAD_DEPTH).set(head.get(HEAD_DEPTH) - 1)],
      /split off at bit \d+, beside its depth/,
    ],
    [
      "a shard in the place of another",
      ({ head }) => [
        head.place(HEAD_SIBLINGS).set(head.get(HEAD_SIBLINGS + 2)),
        head.place(HEAD_SIBLINGS + 1).set(head.get(HEAD_SIBLINGS + 3)),
      ],
      /it holds a row of another shard/,
    ],
    [
      "where its buckets are",
      ({ head }) => [head.place(HEAD_BUCKETS + 1).set(head.get(HEAD_BUCKETS + 1) + 2)],
      /no cell begins/,
    ],
    [
      "how many buckets there are",
      ({ bucket }) => [bucket(0).place(ARRAY_ELEMENTS).set(65)],
      /says 65 buckets of/,
    ],
    ["the depth of a bucket", ({ bucket }) => [bucket(3).place(DEPTH).set(9)], /it says depth 9/],
    [
      "the incarnation of a bucket",
      ({ bucket }) => [bucket(3).place(INCARNATION).set(0)],
      /its incarnation word is 0/,
    ],
  ])("%s", async (_, plant, expected) => {
    const planted = plant(await inlineShard());
    await expectFound(store, expected, planted);
  });
});

describe("pairs", () => {
  test("a tag that is not the hash of its row", async () => {
    const { bucket, tagAt } = slotOf(await inlineShard(), true);
    const planted = bucket.place(tagAt).set(bucket.get(tagAt) ^ (1 << 20));
    await expectFound(store, /its tag is -?\d+, the hash of its row's key \d+ is/, [planted]);
  });

  test("in the wrong bucket", async () => {
    const { bucket, tagAt } = slotOf(await inlineShard(), true);
    const planted = bucket.place(tagAt).set(bucket.get(tagAt) ^ (1 << 31));
    await expectFound(store, /it holds a row whose home is bucket/, [planted]);
  });

  test("in the wrong shard", async () => {
    const { bucket, tagAt } = slotOf(await inlineShard(), true);
    const planted = bucket.place(tagAt).set(bucket.get(tagAt) ^ 1);
    await expectFound(store, /it holds a row of another shard/, [planted]);
  });

  test("a key that is there twice", async () => {
    const shard = await inlineShard();
    const { bucket, index, tagAt, rowAt } = slotOf(shard, true);
    const { slots, slotWords } = shard.geometry;
    let other = 0;
    while (other < slots && bucket.get(TAGS + other) !== 0) other++;
    expect(other, `bucket ${index} has room`).toBeLessThan(slots);
    const planted = [bucket.place(TAGS + other).set(bucket.get(tagAt))];
    for (let word = 0; word < slotWords; word++) {
      planted.push(bucket.place(shard.geometry.slotAt(other) + word).set(bucket.get(rowAt + word)));
    }
    await expectFound(store, /it holds a second row with the key/, planted);
  });
});

describe("chains", () => {
  test.each<[string, (found: Awaited<ReturnType<typeof chained>>) => Planted[], RegExp]>([
    [
      "a main bucket with room",
      ({ bucket }) => [bucket.place(TAGS + 2).set(0)],
      /it has room, and a chain/,
    ],
    [
      "room behind the first block",
      ({ blocks }) => [blocks[1].place(TAGS + 2).set(0)],
      /overflow block 1: it has room behind a first block/,
    ],
    [
      "an empty block",
      ({ blocks, shard }) =>
        Array.from({ length: shard.geometry.slots }, (_, slot) =>
          blocks[0].place(TAGS + slot).set(0),
        ),
      /it is empty, and should have been freed/,
    ],
    [
      "a chain that goes round",
      ({ blocks }) =>
        [0, 1, 2].map((word) => blocks[2].place(NEXT + word).set(blocks[0].get(NEXT + word))),
      /has reached, too/,
    ],
    [
      "a pointer to what was freed",
      ({ bucket }) => [bucket.place(NEXT + 2).set(bucket.get(NEXT + 2) + 4)],
      /another object is than it was made for/,
    ],
    [
      "how many blocks it has",
      ({ blocks }) => [blocks[0].place(CHAIN_BLOCKS).set(4)],
      /its chain has 3 blocks, and says 4/,
    ],
    [
      "how many blocks follow one",
      ({ blocks }) => [blocks[1].place(CHAIN_BLOCKS).set(7)],
      /it says 7 blocks from it on, the first one 3/,
    ],
    [
      "a block that has changed without its main bucket",
      // All commits of the test are of one epoch: a later one in the block, an earlier in the bucket.
      ({ blocks, bucket }) => [
        bucket.place(VERSION_HIGH).set(0),
        bucket.place(VERSION_HIGH + 1).set(1 << 8),
        blocks[1].place(VERSION_HIGH).set(0),
        blocks[1].place(VERSION_HIGH + 1).set(2 << 8),
      ],
      /later version than the main bucket that stands for it/,
    ],
  ])("%s", async (_, plant, expected) => {
    const planted = plant(await chained());
    await expectFound(store, expected, planted);
  });

  test("a chain that goes round is not followed for ever", async () => {
    const { blocks } = await chained();
    for (let word = 0; word < 3; word++) {
      blocks[2].place(NEXT + word).set(blocks[0].get(NEXT + word));
    }
    const codec = codecOf(Inline);
    let absent = 1_000_000;
    while (homeOf(codec.stageKey(absent)) !== 7) absent++;
    expectCorrupt(store, store.open(Inline), absent, /has no end, at word \d+ of region/);
  });
});

describe("row objects", () => {
  async function oneRow(): Promise<ReturnType<typeof slotOf>> {
    const rows = Array.from({ length: 300 }, (_, id) => ({ id, text: `text ${id}` }));
    store.fill(store.open(Objects), rows);
    return slotOf(await firstShard("objects"), true);
  }

  test("of another size than the pointer tells", async () => {
    const { bucket, rowAt } = await oneRow();
    const planted = bucket.place(rowAt + POINTER_ROW_WORDS).set(99);
    await expectFound(store, /it says that its row has 99 words, it has \d+/, [planted]);
  });

  test("behind a pointer to something else", async () => {
    const { bucket, rowAt } = await oneRow();
    const planted = bucket.place(rowAt + 2).set(bucket.get(rowAt + 2) + 4);
    await expectFound(store, /another object is than it was made for/, [planted]);
  });

  test("with a later version than the bucket", async () => {
    const { bucket, rowAt } = await oneRow();
    const row = store.follow(bucket, rowAt);
    const planted = [
      bucket.place(VERSION_HIGH + 1).set(1 << 8),
      bucket.place(VERSION_HIGH).set(0),
      row.place(VERSION_HIGH).set(0),
      row.place(VERSION_HIGH + 1).set(2 << 8),
    ];
    await expectFound(store, /its row has a later version than the main bucket/, planted);
  });
});
