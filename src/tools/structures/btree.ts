/**
 * Checks a tree (layout.ts tells its shape) in any state, sound or not:
 *
 *   nodes     on the level that their parent expects; entries in the order of their keys, and
 *             within the bounds that the way to the node sets
 *   leaves    their fences are these bounds, so that one leaf ends where the next begins, and
 *             every key has one leaf
 *   rows      every row makes sense, and lies under its own key. Row objects are what the pointers
 *             in their leaf were made for.
 *
 * Keys that are in order and within disjoint bounds are all different, so no row is there twice.
 * And a descent takes the same way as the check does: it finds what is there.
 */

import { classFor } from "../../engine/cells.ts";
import { type Address, regionIdOf, wordOf } from "../../memory/address.ts";
import { Views } from "../../memory/views.ts";
import { MAX_TREE_LEVEL } from "../../runtime/limits.ts";
import { Geometry } from "../../stores/btree/geometry.ts";
import { compareKeys } from "../../stores/btree/keys.ts";
import { orderedCodec } from "../../stores/btree/kind.ts";
import {
  COUNT,
  type Fence,
  INFINITE,
  LEVEL,
  MAX_KEY_WORDS,
  NO_KEY,
  type NodeFormat,
} from "../../stores/btree/layout.ts";
import type { OrderedCodec } from "../../stores/store.ts";
import {
  type Check,
  type CheckedRows,
  NO_STAGE,
  type Place,
  type StructureFigures,
  soundRow,
  stagedKey,
} from "./check.ts";
import type { ObjectReader } from "./reader.ts";
import { RowReader } from "./rows.ts";

export interface TreeFigures extends StructureFigures {
  readonly kind: "btree";
  /** Levels, with that of the leaves. */
  readonly levels: number;
  readonly inner: number;
  readonly leaves: number;
  /** How full leaves and inner nodes are, on average. */
  readonly leafFill: number;
  readonly innerFill: number;
}

/** Where the check is: nodes are numbered on each level, from left to right. */
class NodePlace implements Place {
  level = 0;
  number = 0;
  entry = -1;

  at(level: number, number: number, entry = -1): this {
    this.level = level;
    this.number = number;
    this.entry = entry;
    return this;
  }

  toString(): string {
    const node = this.level === 0 ? "leaf" : `node on level ${this.level}, number`;
    return `${node} ${this.number}${this.entry < 0 ? "" : `, entry ${this.entry}`}`;
  }
}

/** The way to a node: what its parent says about it. */
interface Child {
  readonly regionId: number;
  readonly word: number;
  /** Undefined for the root, which nothing points to. */
  readonly incarnation: number | undefined;
  readonly level: number;
  /** Keys below it are not less than `low` and less than `high`. */
  readonly low: Int32Array;
  readonly high: Fence;
}

export class TreeCheck<Row> {
  readonly #reader: ObjectReader;
  readonly #rows: CheckedRows<Row>;
  readonly #codec: OrderedCodec<Row, unknown>;
  readonly #geometry: Geometry;
  readonly #rowReader: RowReader;
  readonly #place = new NodePlace();
  /** Nodes to be looked at, the next one last. */
  readonly #children: Child[] = [];
  readonly #node: Views;
  readonly #root: Address;
  readonly #numbers = new Int32Array(MAX_TREE_LEVEL + 1);
  #found = 0;
  #leafFill = 0;
  #innerFill = 0;
  #inner = 0;
  #levels = 0;

  constructor(reader: ObjectReader, rows: CheckedRows<Row>, root: Address) {
    this.#reader = reader;
    this.#rows = rows;
    this.#codec = orderedCodec(rows.codec);
    this.#geometry = new Geometry(this.#codec);
    this.#rowReader = new RowReader(reader, rows.codec.fixedWords);
    const { inner, leaf } = this.#geometry;
    this.#node = new Views(new ArrayBuffer(Math.max(inner.words, leaf.words) * 4));
    this.#root = root;
  }

  *run(): Check<TreeFigures> {
    this.#visitRoot();
    for (let child = this.#children.pop(); child !== undefined; child = this.#children.pop()) {
      if (this.#visit(child) && child.level === 0) yield* this.#lookAtRows();
      yield;
    }
    const leaves = this.#numbers[0];
    return {
      kind: "btree",
      rows: this.#found,
      rowObjects: this.#rowReader.objects,
      cutRows: this.#rowReader.cut,
      memoryBytes: this.#reader.memoryBytes,
      levels: this.#levels,
      inner: this.#inner,
      leaves,
      leafFill: this.#leafFill / Math.max(1, leaves),
      innerFill: this.#innerFill / Math.max(1, this.#inner),
    };
  }

  /** The root alone says itself how high the tree is. */
  #visitRoot(): void {
    const [regionId, word] = [regionIdOf(this.#root), wordOf(this.#root)];
    const child = {
      regionId,
      word,
      incarnation: undefined,
      level: -1,
      low: NO_KEY,
      high: undefined,
    };
    if (!this.#read(child, this.#geometry.inner)) return;
    const level = this.#node.i32[LEVEL];
    this.#place.at(Math.max(level, 0), 0);
    if (level < 1 || level > MAX_TREE_LEVEL) {
      this.#tell(`it is the root, and says that it is on level ${level}`);
      return;
    }
    this.#levels = level + 1;
    this.#lookAtNode({ ...child, level });
  }

  #visit(child: Child): boolean {
    const { level } = child;
    this.#place.at(level, this.#numbers[level]);
    const nodes = level === 0 ? this.#geometry.leaf : this.#geometry.inner;
    const isRead = this.#read(child, nodes);
    const found = this.#node.i32[LEVEL];
    if (isRead && found !== level) this.#tell(`it says that it is on level ${found}`);
    const isSound = isRead && found === level && this.#lookAtNode(child);
    this.#numbers[level]++;
    return isSound;
  }

  #read({ regionId, word, incarnation }: Child, nodes: NodeFormat): boolean {
    const expected = { sizeClass: classFor(nodes.words * 4), incarnation };
    return this.#reader.readCell(this.#place, regionId, word, expected, nodes.words, this.#node);
  }

  /** Looks at the node that was read, and notes its children. False if it makes no sense. */
  #lookAtNode({ level, low, high }: Child): boolean {
    const { i32 } = this.#node;
    const isLeaf = level === 0;
    const nodes = isLeaf ? this.#geometry.leaf : this.#geometry.inner;
    const fault = nodes.fault(i32, 0, isLeaf);
    if (fault !== undefined) {
      this.#tell(fault);
      return false;
    }
    const fill = nodes.used(i32, 0) / nodes.capacity;
    if (fill > 1) this.#tell("it holds more than fits a node");
    const keys = this.#keysOf(nodes);
    this.#lookAtKeys(keys, isLeaf, low, high);
    if (isLeaf) {
      this.#leafFill += fill;
      this.#lookAtFences(nodes, low, high);
      return true;
    }
    this.#inner++;
    this.#innerFill += fill;
    if (keys.length === 0) this.#tell("it has no children");
    // The last one first: the first one is looked at next.
    for (let index = keys.length - 1; index >= 0; index--) {
      const at = nodes.payloadAt(index);
      this.#children.push({
        regionId: i32[at] - 1,
        word: i32[at + 1],
        incarnation: i32[at + 2],
        level: level - 1,
        // The first key of an inner node is never looked at: what leads to the node is the bound.
        low: index === 0 ? low : keys[index],
        high: index + 1 < keys.length ? keys[index + 1] : high,
      });
    }
    return true;
  }

  #keysOf(nodes: NodeFormat): Int32Array[] {
    const { i32 } = this.#node;
    const keys: Int32Array[] = [];
    for (let index = 0; index < i32[COUNT]; index++) {
      const words = nodes.copyKey(i32, 0, index, buffer);
      keys.push(buffer.slice(0, words));
    }
    return keys;
  }

  #lookAtKeys(keys: readonly Int32Array[], isLeaf: boolean, low: Int32Array, high: Fence): void {
    const { level, number } = this.#place;
    for (let index = 0; index < keys.length; index++) {
      const key = keys[index];
      this.#place.at(level, number, index);
      if (index > 0 && compare(keys[index - 1], key) >= 0) {
        this.#tell("its key is not above that of the entry before it");
      }
      if (!isLeaf && index === 0) continue;
      if (compare(key, low) < 0) this.#tell("its key is below the bound of its node");
      if (high !== undefined && compare(key, high) >= 0) {
        this.#tell("its key is above the bound of its node");
      }
    }
    this.#place.at(level, number);
  }

  /** At the ends of the tree there are no fences, elsewhere they are the bounds. */
  #lookAtFences(nodes: NodeFormat, low: Int32Array, high: Fence): void {
    const { i32 } = this.#node;
    const lowWords = nodes.copyLow(i32, 0, buffer);
    if (compareKeys(buffer, 0, lowWords, low, low.length) !== 0) {
      this.#tell("its low fence is not the bound that its parents set");
    }
    const highWords = nodes.copyHigh(i32, 0, buffer);
    const isSame =
      high === undefined
        ? highWords === INFINITE
        : highWords !== INFINITE && compareKeys(buffer, 0, highWords, high, high.length) === 0;
    if (!isSame) this.#tell("its high fence is not the bound that its parents set");
  }

  *#lookAtRows(): Generator<void, void> {
    const { i32 } = this.#node;
    const { leaf: nodes, inline } = this.#geometry;
    const number = this.#place.number;
    const count = i32[COUNT];
    for (let index = 0; index < count; index++) {
      this.#place.at(0, number, index);
      this.#found++;
      this.#lookAtRow(nodes, index);
      if (!inline) yield;
    }
  }

  #lookAtRow(nodes: NodeFormat, index: number): void {
    const { problems } = this.#reader;
    const place = this.#place;
    let views = this.#node;
    let at = nodes.payloadAt(index);
    let words = nodes.payloadWords;
    if (!this.#geometry.inline) {
      const { i32 } = views;
      const rowReader = this.#rowReader;
      if (!rowReader.read(place, i32[at] - 1, i32[at + 1], i32[at + 2])) return;
      ({ views, at, words } = rowReader);
    }
    const row = soundRow(problems, place, this.#rows, views, at, words);
    if (row === undefined) return;
    const codec = this.#codec;
    const staged = stagedKey(problems, place, () => codec.stageOrderedOf(row));
    if (staged === NO_STAGE) return;
    const keyWords = nodes.copyKey(this.#node.i32, 0, index, buffer);
    if (compareKeys(buffer, 0, keyWords, codec.ordered, staged) === 0) {
      this.#rows.each(row);
      return;
    }
    this.#tell(`its row has the key ${this.#rows.showKey(row)}, which is another than its own`);
  }

  #tell(what: string): void {
    this.#reader.problems.add(this.#place, what);
  }
}

/** A key that is being looked at. */
const buffer = new Int32Array(MAX_KEY_WORDS + 1);

function compare(a: Int32Array, b: Int32Array): number {
  return compareKeys(a, 0, a.length, b, b.length);
}
