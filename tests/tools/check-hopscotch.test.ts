/**
 * Every rule of a hash table is broken on purpose, right in memory, and the check must tell: a
 * check that cannot fail checks nothing.
 */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ALLOCATED, INSTALLING, lockWord, PREPARED } from "../../src/memory/object.ts";
import { BUCKET_SLOTS, SHARD_BUCKETS } from "../../src/runtime/limits.ts";
import { BUCKET_ROWS, Geometry } from "../../src/stores/hopscotch/layout.ts";
import { CHUNK_WORDS } from "../../src/stores/row-object.ts";
import {
  DEPTH,
  HEAD_BUCKETS,
  HEAD_DEPTH,
  HEAD_SIBLINGS,
  homeOf,
  OVERFLOW,
  TAGS,
} from "../../src/stores/shards/layout.ts";
import { NEXT } from "../../src/stores/shards/overflow-chains.ts";
import { codecOf } from "../../src/tables/codec/codec.ts";
import { json, str, u32 } from "../../src/tables/fields.ts";
import type { RowValues } from "../../src/tables/indexes/structure.ts";
import { table } from "../../src/tables/table.ts";
import {
  CheckedStore,
  expectCorrupt,
  expectFound,
  type Planted,
  type Words,
} from "../helpers/checks.ts";

/** Words of a header, from an object's data on. */
const LOCK = -4;
const VERSION_HIGH = -3;
const VERSION_LOW = -2;
const INCARNATION = -1;

const Inline = table("inline", { id: u32(), name: str(20) }, { key: "id" });
const Objects = table("objects", { id: u32(), text: str() }, { key: "id" });

let store: CheckedStore;
beforeEach(() => {
  store = new CheckedStore();
});
afterEach(() => store.dispose());

/** Keys that all have the same home bucket, so that its chain gets long. */
function keysAtHome(home: number, count: number): number[] {
  const codec = codecOf(Inline);
  const keys: number[] = [];
  for (let id = 0; keys.length < count; id++)
    if (homeOf(codec.stageKey(id)) === home) keys.push(id);
  return keys;
}

class Shard {
  readonly head: Words;
  readonly geometry: Geometry;
  readonly base: Words;

  constructor(head: Words, fixedWords: number) {
    this.head = head;
    this.geometry = new Geometry(fixedWords);
    this.base = store.follow(head, HEAD_BUCKETS);
  }

  bucket(index: number): Words {
    return this.base.moved(store.executor, index * this.geometry.stride);
  }

  /** A slot with a row, or without one, in a bucket that is not the last. */
  slot(isUsed: boolean, isFit: (bucket: Words, index: number) => boolean = () => true) {
    for (let index = 1; index < SHARD_BUCKETS; index++) {
      const bucket = this.bucket(index);
      for (let slot = 0; slot < BUCKET_SLOTS; slot++) {
        if ((bucket.get(TAGS + slot) !== 0) !== isUsed || !isFit(bucket, index)) continue;
        const rowAt = BUCKET_ROWS + slot * this.geometry.slotWords;
        return { bucket, index, tagAt: TAGS + slot, rowAt };
      }
    }
    throw new Error("no such slot");
  }
}

async function inlineShard(rows = 1_000): Promise<Shard> {
  const opened = store.open(Inline);
  store.fill(
    opened,
    Array.from({ length: rows }, (_, id) => ({ id, name: `n${id}` })),
  );
  return firstShard("inline");
}

async function objectShard(): Promise<Shard> {
  const opened = store.open(Objects);
  store.fill(
    opened,
    Array.from({ length: 500 }, (_, id) => ({ id, text: `text ${id}` })),
  );
  return firstShard("objects");
}

async function firstShard(name: string): Promise<Shard> {
  const { rows } = await store.parts(name);
  return new Shard(store.objectAt(rows.root), rows.structure.codec.fixedWords);
}

async function chained(): Promise<{ bucket: Words; blocks: Words[] }> {
  const opened = store.open(Inline);
  // More than the home and its neighbour hold, and what can be moved out of their way.
  const rows = [7, 8, 9].flatMap((home) => keysAtHome(home, home === 7 ? 18 : 8));
  store.fill(
    opened,
    rows.map((id) => ({ id, name: "" })),
    1,
  );
  const shard = await firstShard("inline");
  const bucket = shard.bucket(7);
  const blocks: Words[] = [];
  for (let from = bucket, at = OVERFLOW; from.get(at) !== 0; at = NEXT) {
    from = store.follow(from, at);
    blocks.push(from);
  }
  expect(blocks.length).toBeGreaterThan(1);
  return { bucket, blocks };
}

describe("shards", () => {
  test.each([
    ["depth too small", (at: Words) => [at.place(HEAD_DEPTH).set(-1)], /says depth -1/],
    ["depth too large", (at: Words) => [at.place(HEAD_DEPTH).set(27)], /says depth 27/],
    [
      "depth one more",
      (at: Words) => [at.place(HEAD_DEPTH).set(at.get(HEAD_DEPTH) + 1)],
      /no shard split off at bit/,
    ],
    [
      "depth one less",
      (at: Words) => [at.place(HEAD_DEPTH).set(at.get(HEAD_DEPTH) - 1)],
      /split off at bit \d+, beside its depth/,
    ],
    [
      "a shard that is missing",
      (at: Words) => [at.place(HEAD_SIBLINGS).set(0), at.place(HEAD_SIBLINGS + 1).set(0)],
      /no shard split off at bit 0/,
    ],
    [
      "a shard that leads back to the first",
      (at: Words) => [
        at.place(HEAD_SIBLINGS).set(at.regionId + 1),
        at.place(HEAD_SIBLINGS + 1).set(at.word),
      ],
      /table inline has reached, too/,
    ],
    [
      "a shard in a region that is not there",
      (at: Words) => [at.place(HEAD_SIBLINGS).set(99)],
      /region 98, which the store does not have/,
    ],
    [
      "buckets in a region that is not there",
      (at: Words) => [at.place(HEAD_BUCKETS).set(-5)],
      /region -6, which the store does not have/,
    ],
    [
      "buckets behind the end of their region",
      (at: Words) => [at.place(HEAD_BUCKETS + 1).set(2 ** 30)],
      /of region 0, which has/,
    ],
    [
      "buckets in the middle of a cell",
      (at: Words) => [at.place(HEAD_BUCKETS + 1).set(at.get(HEAD_BUCKETS + 1) + 2)],
      /where no cell begins/,
    ],
    [
      "buckets that are a head",
      (at: Words) => [at.place(HEAD_BUCKETS + 1).set(at.word + 6)],
      /a cell of \d+ bytes, where one of \d+ is expected/,
    ],
    ["a head that was freed", (at: Words) => [at.place(INCARNATION).set(4)], /a cell that is free/],
    ["a head that is an array", (at: Words) => [at.place(INCARNATION).set(3)], /which is an array/],
  ])("%s", async (_, plant, expected) => {
    const { head } = await inlineShard();
    await expectFound(store, expected, plant(head));
  });

  test("an array that says that it has fewer buckets", async () => {
    const { base } = await inlineShard();
    const cell = base.moved(store.executor, -6);
    await expectFound(store, /its array says 64 buckets/, [cell.place(1).set(SHARD_BUCKETS)]);
  });

  test("an array that is none", async () => {
    const { base } = await inlineShard();
    const cell = base.moved(store.executor, -6);
    await expectFound(store, /which should be an array/, [
      cell.place(INCARNATION).set(cell.get(INCARNATION) & ~2),
    ]);
  });
});

describe("buckets", () => {
  test.each([
    ["another depth", (at: Words) => [at.place(DEPTH).set(9)], /bucket 3: it says depth 9/],
    [
      "another incarnation",
      (at: Words) => [at.place(INCARNATION).set(at.get(INCARNATION) + 4)],
      /bucket 3: its incarnation word is \d+, that of its array/,
    ],
    [
      "a lock that nobody releases",
      (at: Words) => [at.place(LOCK).set(lockWord(0, PREPARED))],
      /bucket 3: the object at .* is locked by slot 0, which is at no commit/,
    ],
    [
      "a lock of one who does not exist",
      (at: Words) => [at.place(LOCK).set(lockWord(2, INSTALLING))],
      /bucket 3: the object at .* is locked by slot 2/,
    ],
    [
      "a lock that is none",
      (at: Words) => [at.place(LOCK).set(-1)],
      /bucket 3: the object at .* its lock word is -1/,
    ],
    [
      "no version",
      (at: Words) => [at.place(VERSION_HIGH).set(0), at.place(VERSION_LOW).set(0)],
      /bucket 3: the object at .* has no version/,
    ],
    [
      "a version from the future",
      (at: Words) => [at.place(VERSION_HIGH).set(1_000)],
      /bucket 3: the object at .* has a version of epoch 4096\d{3}/,
    ],
  ])("%s", async (_, plant, expected) => {
    const shard = await inlineShard();
    await expectFound(store, expected, plant(shard.bucket(3)));
  });
});

describe("pairs", () => {
  test("a tag of another home", async () => {
    const { bucket, index, tagAt } = (await inlineShard()).slot(true);
    const tag = bucket.get(tagAt) ^ 0x40000000;
    const found = await expectFound(store, /it holds a row whose home is bucket/, [
      bucket.place(tagAt).set(tag),
    ]);
    expect(found.problems[0]).toContain(`table inline: shard 0, bucket ${index}, slot`);
  });

  test("a tag of another shard", async () => {
    const { bucket, tagAt } = (await inlineShard()).slot(true);
    await expectFound(store, /it holds a row of another shard/, [
      bucket.place(tagAt).set(bucket.get(tagAt) ^ 1),
    ]);
  });

  test("a tag that is not the hash of its row's key", async () => {
    const { bucket, tagAt } = (await inlineShard()).slot(true);
    await expectFound(store, /its tag is .*, the hash of its row's key \d+ is/, [
      bucket.place(tagAt).set(bucket.get(tagAt) ^ 0x10000),
    ]);
  });

  test("a row whose key was changed", async () => {
    const { bucket, rowAt } = (await inlineShard()).slot(true);
    await expectFound(store, /the hash of its row's key 987654 is/, [
      bucket.place(rowAt).set(987_654),
    ]);
  });

  test("a row that is there twice", async () => {
    const shard = await inlineShard(60);
    const hasRoom = (bucket: Words): boolean => {
      const tags = Array.from({ length: BUCKET_SLOTS }, (_, i) => bucket.get(TAGS + i));
      return tags.includes(0) && tags.some((tag) => tag !== 0);
    };
    const { bucket, tagAt, rowAt } = shard.slot(true, hasRoom);
    const free = shard.slot(false, (other) => other.word === bucket.word);
    const planted: Planted[] = [bucket.place(free.tagAt).set(bucket.get(tagAt))];
    for (let word = 0; word < shard.geometry.slotWords; word++) {
      planted.push(bucket.place(free.rowAt + word).set(bucket.get(rowAt + word)));
    }
    const found = await expectFound(store, /it holds a second row with the key \d+/, planted);
    expect(found.tables[0].rows).toBe(61);
  });

  test("two rows with the same hash are not the same row", async () => {
    const Named = table("named", { name: str(12) }, { key: "name" });
    const codec = codecOf(Named);
    const byHash = new Map<number, string>();
    const rows: RowValues[] = [];
    for (let i = 0; rows.length === 0; i++) {
      const hash = codec.stageKey(`k${i}`);
      const other = byHash.get(hash);
      if (other !== undefined) rows.push({ name: other }, { name: `k${i}` });
      byHash.set(hash, `k${i}`);
    }
    store.fill(store.open(Named), rows);
    expect(await store.verify()).toMatchObject({ tables: [{ rows: 2 }], problems: [] });
  });
});

test("the rows of a shard whose depth makes no sense are not read for ever", async () => {
  const { head } = await inlineShard();
  for (const depth of [-1, -1_000, 27]) {
    const planted = head.place(HEAD_DEPTH).set(depth);
    expectCorrupt(store, store.open(Inline), 1_000_000, /says depth -?\d+, at word \d+ of region/);
    planted.undo();
  }
});

describe("chains", () => {
  test("a chain that goes round", async () => {
    const { blocks } = await chained();
    const last = blocks[blocks.length - 1];
    const planted = [
      last.place(NEXT).set(blocks[0].regionId + 1),
      last.place(NEXT + 1).set(blocks[0].word),
      last.place(NEXT + 2).set(blocks[0].get(INCARNATION)),
    ];
    const absent = keysAtHome(7, 100)[99];
    expectCorrupt(store, store.open(Inline), absent, /has no end, at word \d+ of region/);
    await expectFound(store, /overflow block \d+: .*which table inline has reached, too/, planted);
  });

  test("a pointer to a block of another incarnation", async () => {
    const { bucket } = await chained();
    await expectFound(store, /another object is than it was made for/, [
      bucket.place(OVERFLOW + 2).set(bucket.get(OVERFLOW + 2) + 4),
    ]);
  });

  test("a block that is empty", async () => {
    const { blocks } = await chained();
    const at = blocks[0];
    await expectFound(store, /overflow block 0: it is empty/, [
      at.place(TAGS).set(0),
      at.place(TAGS + 1).set(0),
    ]);
  });

  test("room behind the first block", async () => {
    const { blocks } = await chained();
    await expectFound(store, /overflow block 1: it has room behind a first block/, [
      blocks[1].place(TAGS + 1).set(0),
    ]);
  });

  test("a row of another home", async () => {
    const { blocks } = await chained();
    const tag = blocks[0].get(TAGS);
    await expectFound(store, /overflow block 0, slot 0: it holds a row whose home is bucket 6/, [
      // Next to the chain's bucket is not good enough.
      blocks[0].place(TAGS).set((tag & 0x03ffffff) | (6 << 26)),
    ]);
  });

  test("a chain at a bucket that is no home", async () => {
    const { bucket } = await chained();
    const shard = await firstShard("inline");
    const last = shard.bucket(SHARD_BUCKETS);
    const planted = [0, 1, 2].flatMap((word) => [
      last.place(OVERFLOW + word).set(bucket.get(OVERFLOW + word)),
      bucket.place(OVERFLOW + word).set(0),
    ]);
    await expectFound(store, /bucket 64: it is no home, and has a chain/, planted);
  });
});

describe("row objects", () => {
  test.each([
    ["no region", (at: Words, row: number) => [at.place(row).set(1000)], /region 999, which/],
    [
      "the middle of a cell",
      (at: Words, row: number) => [at.place(row + 1).set(at.get(row + 1) + 2)],
      /where no cell begins/,
    ],
    [
      "another incarnation",
      (at: Words, row: number) => [at.place(row + 2).set(at.get(row + 2) + 4)],
      /slot \d: it leads to .* another object is than it was made for/,
    ],
  ])("a pointer to %s", async (_, plant, expected) => {
    const { bucket, rowAt } = (await objectShard()).slot(true);
    await expectFound(store, expected, plant(bucket, rowAt));
  });

  test("two pointers to one row", async () => {
    const shard = await objectShard();
    const one = shard.slot(true);
    const other = shard.slot(true, (_, index) => index > one.index);
    const planted = [0, 1, 2].map((word) =>
      other.bucket.place(other.rowAt + word).set(one.bucket.get(one.rowAt + word)),
    );
    await expectFound(store, /which table objects has reached, too/, planted);
  });

  test.each([
    ["no words", (at: Words) => [at.place(0).set(0)], /its row has 0 words/],
    ["too many words", (at: Words) => [at.place(0).set(2 ** 20)], /words, which none can have/],
    ["an odd number of words", (at: Words) => [at.place(0).set(5)], /its row has 5 words/],
    ["the words of another class", (at: Words) => [at.place(0).set(800)], /cell of another size/],
    ["pieces", (at: Words) => [at.place(1).set(2)], /is in 2 pieces/],
    [
      "been freed",
      (at: Words) => [at.place(INCARNATION).set(at.get(INCARNATION) & ~ALLOCATED)],
      /another object is than it was made for/,
    ],
    [
      "a text that begins elsewhere",
      (at: Words) => [at.place(3).set(at.get(3) + 1)],
      /field text begins at byte/,
    ],
    [
      "a text that is too long",
      (at: Words) => [at.place(4).set(1_000)],
      /field text has 1000 bytes, in a row of/,
    ],
    [
      "a text that ends before the row does",
      (at: Words) => [at.place(4).set(0)],
      /its fields end at/,
    ],
    ["a text that is none", (at: Words) => [at.place(6).set(-1)], /field text is not UTF-8/],
  ])("a row object that has %s", async (_, plant, expected) => {
    const { bucket, rowAt } = (await objectShard()).slot(true);
    await expectFound(store, expected, plant(store.follow(bucket, rowAt)));
  });
});

describe("rows in pieces", () => {
  const Large = table("large", { id: u32(), a: str(), b: json<string>() }, { key: "id" });

  async function largeRow(): Promise<Words> {
    const opened = store.open(Large);
    const text = "ä".repeat(300_000);
    store.fill(opened, [{ id: 1, a: text, b: `${text}"${text.slice(0, 200_000)}` }], 1);
    const { bucket, rowAt } = (await firstShard("large")).slot(true);
    return store.follow(bucket, rowAt);
  }

  test.each([
    [
      "a piece that is another one",
      (at: Words) => [at.place(3).set(at.get(6))],
      /piece [01] of its row/,
    ],
    [
      "a piece of another incarnation",
      (at: Words) => [at.place(7).set(at.get(7) ^ 4)],
      /piece 1 of its row: .*another object/,
    ],
    ["a piece too few", (at: Words) => [at.place(1).set(1)], /is in 1 pieces/],
    [
      "the same piece twice",
      (at: Words) => [2, 3, 4].map((word) => at.place(word + 3).set(at.get(word))),
      /piece 1 of its row: .* has reached, too|piece 1 of its row: .*a cell of/,
    ],
  ])("%s", async (_, plant, expected) => {
    const row = await largeRow();
    expect(row.get(1)).toBeGreaterThan(1);
    await expectFound(store, expected, plant(row));
  });

  test("JSON that is none", async () => {
    const row = await largeRow();
    const pieceBytes = 4 * CHUNK_WORDS;
    // Its second value: behind the first one, which has 600,000 bytes. It begins with a quote.
    const start = store.follow(row, 2).get(2);
    expect(start).toBe(600_024);
    const piece = store.follow(row, 2 + 3 * Math.floor(start / pieceBytes));
    const at = Math.floor((start % pieceBytes) / 4);
    const quote = 0x22 << (8 * (start % 4));
    expect(piece.get(at) & quote).toBe(quote);
    await expectFound(store, /field b is not JSON/, [piece.place(at).set(piece.get(at) ^ quote)]);
  });
});
