/**
 * Every rule of a tree is broken on purpose, right in memory, and the check must tell: a check that
 * cannot fail checks nothing.
 */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { INSTALLING, lockWord } from "../../src/memory/object.ts";
import type { FixedNodes } from "../../src/stores/btree/fixed-nodes.ts";
import { Geometry } from "../../src/stores/btree/geometry.ts";
import { COUNT, HIGH_WORDS, LEVEL, LOW_WORDS } from "../../src/stores/btree/layout.ts";
import { bool, str, u32 } from "../../src/tables/fields.ts";
import type { RowValues } from "../../src/tables/indexes/structure.ts";
import type { Table } from "../../src/tables/table.ts";
import { table } from "../../src/tables/table.ts";
import {
  CheckedStore,
  expectCorrupt,
  expectFound,
  type Planted,
  type Words,
} from "../helpers/checks.ts";

const LOCK = -4;
const VERSION_HIGH = -3;
const INCARNATION = -1;
const FENCES = 4;
const HEAP = 4;

/** Keys of one word, rows in the leaves. */
const Numbers = table("numbers", { id: u32(), ok: bool() }, { key: "id", ordered: true });
/** Keys of many sizes, rows that are objects. */
const Names = table("names", { name: str(200), text: str() }, { key: "name", ordered: true });

let store: CheckedStore;
beforeEach(() => {
  store = new CheckedStore();
});
afterEach(() => store.dispose());

interface Tree {
  readonly root: Words;
  readonly geometry: Geometry;
  /** A child of an inner node. */
  child(node: Words, index: number): Words;
  /** A leaf in the middle. */
  readonly leaf: Words;
  /** Its parent, and its place there. */
  readonly parent: Words;
  readonly index: number;
}

async function treeOf(declared: Pick<Table, "name">, levels: number): Promise<Tree> {
  const { rows } = await store.parts(declared.name);
  const geometry = new Geometry(rows.structure.ordered!);
  const root = store.objectAt(rows.root);
  const child = (node: Words, index: number): Words =>
    store.follow(node, geometry.inner.payloadAt(index));
  expect(root.get(LEVEL)).toBe(levels - 1);
  let parent = root;
  while (parent.get(LEVEL) > 1) parent = child(parent, 0);
  return { root, geometry, child, parent, leaf: child(parent, 2), index: 2 };
}

async function numbers(count = 3_000): Promise<Tree> {
  const opened = store.open(Numbers);
  store.fill(
    opened,
    Array.from({ length: count }, (_, id) => ({ id: 2 * id + 100, ok: id % 2 === 0 })),
  );
  return await treeOf(Numbers, 2);
}

async function names(): Promise<Tree> {
  const opened = store.open(Names);
  store.fill(
    opened,
    Array.from({ length: 3_000 }, (_, i) => ({
      // Long beginnings that are the same, so that the keys of inner nodes are long, too.
      name: `${String(i % 40).padStart(150, "x")} ${i} ${"y".repeat(i % 7)}`,
      text: `text ${i}`,
    })),
  );
  return await treeOf(Names, 3);
}

const fixed = (tree: Tree): FixedNodes => tree.geometry.leaf as FixedNodes;

type Case = readonly [string, (tree: Tree) => readonly Planted[], RegExp];

const NODES: readonly Case[] = [
  ["a root on level 0", ({ root }) => [root.place(LEVEL).set(0)], /it is the root, and says that/],
  ["a root on level 99", ({ root }) => [root.place(LEVEL).set(99)], /on level 99/],
  [
    "a leaf on another level",
    ({ leaf }) => [leaf.place(LEVEL).set(1)],
    /leaf 2: it says that it is/,
  ],
  ["too many entries", ({ leaf }) => [leaf.place(COUNT).set(5_000)], /leaf 2: it has 5000 entries/],
  ["fewer than no entries", ({ leaf }) => [leaf.place(COUNT).set(-1)], /it has -1 entries/],
  [
    "no children",
    ({ root }) => [root.place(COUNT).set(0)],
    /it has no children|the gaps between its keys have/,
  ],
  [
    "a fence of an inner node",
    ({ root }) => [root.place(LOW_WORDS).set(1)],
    /no leaf, and has fences/,
  ],
  [
    "a low fence of 99 words",
    ({ leaf }) => [leaf.place(LOW_WORDS).set(999)],
    /its low fence has 999/,
  ],
  ["a high fence of 99 words", ({ leaf }) => [leaf.place(HIGH_WORDS).set(-7)], /high fence has -7/],
  [
    "an end of the tree in its middle",
    ({ leaf }) => [leaf.place(HIGH_WORDS).set(-1)],
    /its high fence is not the bound|the gaps between its keys have/,
  ],
  [
    "a child that is its parent",
    ({ parent, root, geometry, index }) => {
      const at = geometry.inner.payloadAt(index);
      return [
        parent.place(at).set(root.regionId + 1),
        parent.place(at + 1).set(root.word),
        parent.place(at + 2).set(root.get(INCARNATION)),
      ];
    },
    /has reached, too|a cell of \d+ bytes, where one of/,
  ],
  [
    "a child of another incarnation",
    ({ parent, geometry, index }) => {
      const at = geometry.inner.payloadAt(index) + 2;
      return [parent.place(at).set(parent.get(at) + 4)];
    },
    /leaf 2: it leads to .* another object is than it was made for/,
  ],
  [
    "a child in no region",
    ({ parent, geometry, index }) => [parent.place(geometry.inner.payloadAt(index)).set(0)],
    /leaf 2: it leads to region -1/,
  ],
  [
    "a child behind the end",
    ({ parent, geometry, index }) => [
      parent.place(geometry.inner.payloadAt(index) + 1).set(0x7ffffff0),
    ],
    /leaf 2: it leads to word 2147483632/,
  ],
  [
    "a leaf that nobody unlocks",
    ({ leaf }) => [leaf.place(LOCK).set(lockWord(1, INSTALLING))],
    /leaf 2: the object at .* is locked by slot 1, which is at no commit/,
  ],
  [
    "a leaf from the future",
    ({ leaf }) => [leaf.place(VERSION_HIGH).set(77)],
    /leaf 2: the object at .* has a version of epoch 31\d{4}/,
  ],
];

describe("nodes with keys of one size", () => {
  test.each([
    ...NODES,
    [
      "keys out of order",
      (tree) => {
        const at = fixed(tree).keysAt;
        return [tree.leaf.place(at + 3).set(tree.leaf.get(at + 2))];
      },
      /leaf 2, entry 3: its key is not above that of the entry before it/,
    ],
    [
      "a key below its leaf",
      (tree) => [tree.leaf.place(fixed(tree).keysAt).set(1)],
      /leaf 2, entry 0: its key is below the bound/,
    ],
    [
      "a key above its leaf",
      (tree) => {
        const at = fixed(tree).keysAt + tree.leaf.get(COUNT) - 1;
        return [tree.leaf.place(at).set(-1)];
      },
      /leaf 2, entry \d+: its key is above the bound/,
    ],
    [
      "another low fence",
      ({ leaf }) => [leaf.place(FENCES).set(leaf.get(FENCES) + 1)],
      /leaf 2: its low fence is not the bound that its parents set/,
    ],
    [
      "another high fence",
      ({ leaf }) => [leaf.place(FENCES + 1).set(leaf.get(FENCES + 1) + 1)],
      /leaf 2: its high fence is not the bound that its parents set/,
    ],
    [
      "no low fence in the middle",
      ({ leaf }) => [leaf.place(LOW_WORDS).set(0)],
      /leaf 2: its low fence is not the bound/,
    ],
    [
      "another bound in the parent",
      ({ parent, geometry }) => {
        const at = (geometry.inner as FixedNodes).keysAt + 2;
        return [parent.place(at).set(parent.get(at) + 1)];
      },
      /leaf 1: its high fence is not the bound/,
    ],
    [
      "a row under the key of another",
      (tree) => {
        const at = tree.geometry.leaf.payloadAt(4);
        return [tree.leaf.place(at).set(999_999)];
      },
      /leaf 2, entry 4: its row has the key 999999, which is another than its own/,
    ],
    [
      "a boolean of 7",
      (tree) => [tree.leaf.place(tree.geometry.leaf.payloadAt(4) + 1).set(7)],
      /leaf 2, entry 4: field ok is a boolean of 7/,
    ],
    [
      "padding",
      (tree) => [tree.leaf.place(tree.geometry.leaf.payloadAt(4) + 1).set(0x10001)],
      /leaf 2, entry 4: its padding is not zero/,
    ],
  ] as readonly Case[])("%s", async (_, plant, expected) => {
    const tree = await numbers();
    await expectFound(store, expected, plant(tree));
  });

  test("a leaf that two entries lead to", async () => {
    const { parent, geometry, index } = await numbers();
    const from = geometry.inner.payloadAt(index);
    const to = geometry.inner.payloadAt(index + 1);
    const planted = [0, 1, 2].map((word) => parent.place(to + word).set(parent.get(from + word)));
    await expectFound(
      store,
      /leaf 3: it leads to .* which table numbers has reached, too/,
      planted,
    );
  });
});

describe("nodes with keys of many sizes", () => {
  const placeAt = ({ geometry }: Tree, index: number): number => geometry.leaf.payloadAt(index) + 3;

  test.each([
    ...NODES,
    [
      "a heap that begins elsewhere",
      ({ leaf }) => [leaf.place(HEAP).set(leaf.get(HEAP) - 1)],
      /leaf 2: the gaps between its keys have 1 words, it says 0/,
    ],
    [
      "a heap behind the end",
      ({ leaf }) => [leaf.place(HEAP).set(10_000)],
      /leaf 2: its keys begin at word 10000/,
    ],
    [
      "a heap in the entries",
      ({ leaf }) => [leaf.place(HEAP).set(8)],
      /leaf 2: its keys begin at word 8, its \d+ entries end at/,
    ],
    [
      "a key that is shorter",
      (tree) => {
        const at = placeAt(tree, 1);
        return [tree.leaf.place(at).set(tree.leaf.get(at) - (1 << 16))];
      },
      /leaf 2: the gaps between its keys have 1 words, it says 0/,
    ],
    [
      "two keys at one place",
      (tree) => [tree.leaf.place(placeAt(tree, 1)).set(tree.leaf.get(placeAt(tree, 0)))],
      /leaf 2: a key lies at word/,
    ],
    [
      "two keys that changed places",
      (tree) => {
        const [one, other] = [placeAt(tree, 1), placeAt(tree, 2)];
        const [a, b] = [tree.leaf.get(one), tree.leaf.get(other)];
        return [tree.leaf.place(one).set(b), tree.leaf.place(other).set(a)];
      },
      /leaf 2, entry 2: its key is not above/,
    ],
    [
      "a row of another leaf",
      (tree) => {
        const other = tree.child(tree.parent, 3);
        const at = tree.geometry.leaf.payloadAt(0);
        return [0, 1, 2].map((word) => tree.leaf.place(at + word).set(other.get(at + word)));
      },
      /leaf 2, entry 0: its row has the key .* which is another than its own/,
    ],
    [
      "a row that was freed",
      (tree) => {
        const row = store.follow(tree.leaf, tree.geometry.leaf.payloadAt(0));
        return [row.place(INCARNATION).set(row.get(INCARNATION) + 3)];
      },
      /leaf 2, entry 0: .* another object is than it was made for/,
    ],
  ] as readonly Case[])("%s", async (_, plant, expected) => {
    const tree = await names();
    await expectFound(store, expected, plant(tree));
  });
});

describe("reading a damaged tree ends", () => {
  test.each([0, -1, 31])("a root on level %i", async (level) => {
    const { root } = await numbers();
    root.place(LEVEL).set(level);
    expectCorrupt(store, store.open(Numbers), 1, /root of a tree says level -?\d+, at word \d+/);
  });

  test("keys of a leaf that are out of order", async () => {
    const { leaf, geometry } = await numbers();
    const { keysAt } = geometry.leaf as FixedNodes;
    const from = Int32Array.of(leaf.get(keysAt));
    /** Two rows at a time, from the first one of the leaf on; says how it ended. */
    const walk = (): string => {
      const cursor = store.open(Numbers).store.cursor({ from, to: undefined }, false);
      try {
        store.run((tx) => {
          const rows: RowValues[] = [];
          for (let calls = 0; cursor.next(tx, rows, 2); calls++) expect(calls).toBeLessThan(3_000);
        });
        return "read";
      } catch (error) {
        return (error as Error).message;
      }
    };
    const ends = new Set<string>();
    // The last row of a call is the one that the next call goes on from.
    for (let index = 1; index < 20; index += 2) {
      const planted = leaf.place(keysAt + index).set(0);
      ends.add(walk().replace(/\d+/g, "n"));
      planted.undo();
    }
    ends.delete("read");
    expect([...ends]).toEqual([
      "the keys of a leaf are out of order, at word n of region n: run verify",
    ]);
    expect(walk()).toBe("read");
  });
});
