/** A B+-tree without the database above it, and a look at the shape of its memory. */

import type { Executor } from "../../src/engine/executor.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { type Address, regionIdOf, wordOf } from "../../src/memory/address.ts";
import { HEADER_WORDS, INCARNATION, LOCK } from "../../src/memory/object.ts";
import { BTree } from "../../src/stores/btree/btree.ts";
import { Geometry } from "../../src/stores/btree/geometry.ts";
import { INFINITE, LEVEL, MAX_KEY_WORDS } from "../../src/stores/btree/layout.ts";
import type { Cursor, KeyRange, OrderedCodec } from "../../src/stores/store.ts";
import { orderedCodecOf } from "../../src/tables/codec/ordered.ts";
import type { Table } from "../../src/tables/table.ts";
import { run } from "./store-engine.ts";

export interface EngineTree<Row, Key> {
  readonly executor: Executor;
  readonly tx: Transaction;
  readonly store: BTree<Row, Key>;
  readonly root: Address;
  readonly codec: OrderedCodec<Row, Key>;
}

export function createTree<Row, Key>(
  executor: Executor,
  table: Table<Row, Key>,
): EngineTree<Row, Key> {
  const tx = new Transaction(executor);
  const root = run(executor, tx, () => BTree.create(tx, orderedCodecOf(table)));
  return openTree(executor, table, root);
}

/** Another executor's view of a tree. */
export function openTree<Row, Key>(
  executor: Executor,
  table: Table<Row, Key>,
  root: Address,
): EngineTree<Row, Key> {
  const codec = orderedCodecOf(table);
  const tx = new Transaction(executor);
  return { executor, tx, store: new BTree(executor, codec, root), root, codec };
}

export interface TreeShape {
  readonly levels: number;
  readonly leaves: number;
  readonly inner: number;
  readonly rows: number;
  /** Entries per leaf that would fit, for keys of one size. */
  readonly leafCapacity: number;
  readonly broken: readonly string[];
}

type Key = Int32Array;

export function compareKeys(a: Key, b: Key): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    if (a[i] !== b[i]) return a[i] >>> 0 < b[i] >>> 0 ? -1 : 1;
  }
  return a.length - b.length;
}

/** Walks over a tree that nobody is writing to, and tells its shape and every rule it breaks. */
export function shapeOfTree<Row, K>({ executor, root, codec }: EngineTree<Row, K>): TreeShape {
  const geometry = new Geometry(codec);
  const broken: string[] = [];
  const buffer = new Int32Array(MAX_KEY_WORDS);
  const seen = new Set<string>();
  let leaves = 0;
  let inner = 0;
  let rows = 0;
  /** The high fence of the leaf before. */
  let fence: Key | undefined = new Int32Array(0);

  const visit = (
    regionId: number,
    word: number,
    level: number,
    low: Key,
    high: Key | undefined,
    isFirst: boolean,
  ): void => {
    const where = `level ${level} at ${regionId}:${word}`;
    if (seen.has(`${regionId}:${word}`)) broken.push(`${where}: reached twice`);
    seen.add(`${regionId}:${word}`);
    const { i32 } = executor.memory.region(regionId);
    if (i32[word + LOCK] !== 0) broken.push(`${where}: locked`);
    const at = word + HEADER_WORDS;
    if (i32[at + LEVEL] !== level) broken.push(`${where}: says level ${i32[at + LEVEL]}`);
    const nodes = level === 0 ? geometry.leaf : geometry.inner;
    const count = nodes.count(i32, at);
    if (nodes.used(i32, at) > nodes.capacity) broken.push(`${where}: too full`);
    const keys = Array.from({ length: count }, (_, index) =>
      buffer.slice(0, nodes.copyKey(i32, at, index, buffer)),
    );
    keys.forEach((key, index) => {
      if (index > 0 && compareKeys(keys[index - 1], key) >= 0) {
        broken.push(`${where}: entries ${index - 1} and ${index} are not in order`);
      }
      if (level > 0 && index === 0) return;
      if (compareKeys(key, low) < 0) broken.push(`${where}: entry ${index} is below the node`);
      if (high !== undefined && compareKeys(key, high) >= 0) {
        broken.push(`${where}: entry ${index} is above the node`);
      }
    });
    const pointers = keys.map((_, index) => {
      const payload = at + nodes.payloadAt(index);
      return [i32[payload] - 1, i32[payload + 1], i32[payload + 2]] as const;
    });
    if (level > 0 || !geometry.inline) {
      for (const [region, target, incarnation] of pointers) {
        if (executor.memory.region(region).i32[target + INCARNATION] !== incarnation) {
          broken.push(`${where}: a pointer leads to a freed object`);
        }
      }
    }
    if (level === 0) {
      leaves++;
      rows += count;
      const lowFence = buffer.slice(0, nodes.copyLow(i32, at, buffer));
      const highWords = nodes.copyHigh(i32, at, buffer);
      const highFence = highWords === INFINITE ? undefined : buffer.slice(0, highWords);
      if (fence === undefined || compareKeys(lowFence, fence) !== 0) {
        broken.push(`${where}: the low fence is not the high fence of the leaf before`);
      }
      fence = highFence;
      // The parent's bounds are the fences, but for the ends of the tree.
      if (!isFirst && compareKeys(lowFence, low) !== 0) broken.push(`${where}: another low fence`);
      if ((high === undefined) !== (highFence === undefined)) {
        broken.push(`${where}: an end of the tree in its middle`);
      } else if (high !== undefined && compareKeys(highFence!, high) !== 0) {
        broken.push(`${where}: another high fence`);
      }
      return;
    }
    inner++;
    if (count === 0) broken.push(`${where}: no children`);
    pointers.forEach(([region, target], index) => {
      const childLow = index === 0 ? low : keys[index];
      const childHigh = index + 1 < count ? keys[index + 1] : high;
      visit(region, target, level - 1, childLow, childHigh, isFirst && index === 0);
    });
  };

  const rootRegion = executor.memory.regionOf(root);
  const levels = rootRegion.i32[wordOf(root) + HEADER_WORDS + LEVEL];
  if (levels < 1) broken.push(`the root is on level ${levels}`);
  else visit(regionIdOf(root), wordOf(root), levels, new Int32Array(0), undefined, true);
  return { levels, leaves, inner, rows, leafCapacity: geometry.leaf.capacity, broken };
}

/** All rows of a range in one go, in batches of `most`. */
export function rowsOf<Row, K>(
  { store, tx }: EngineTree<Row, K>,
  range: KeyRange = { from: undefined, to: undefined },
  reverse = false,
  most = Number.MAX_SAFE_INTEGER,
): Row[] {
  return drain(tx, store.cursor(range, reverse), most);
}

export function drain<Row>(tx: Transaction, cursor: Cursor<Row>, most: number): Row[] {
  const all: Row[] = [];
  const batch: Row[] = [];
  while (cursor.next(tx, batch, most)) {
    if (batch.length === 0) throw new Error("a batch without rows");
    if (batch.length > most) throw new Error(`${batch.length} rows where ${most} were asked for`);
    all.push(...batch);
  }
  if (batch.length !== 0) throw new Error("rows after the end");
  if (cursor.next(tx, batch, most)) throw new Error("rows after the end");
  return all;
}
