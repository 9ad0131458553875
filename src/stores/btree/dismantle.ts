/**
 * Freeing a tree that nobody uses any more, from its last leaf on. A leaf and its parent's pointer to it
 * go in one transaction, and an inner node goes when it has no children left: what remains is always a
 * tree under the same root, so whoever goes on, after a crash too, begins at the root again.
 */

import type { Transaction } from "../../engine/transaction.ts";
import { type Address, wordOf } from "../../memory/address.ts";
import { freeRow } from "../row-object.ts";
import type { Geometry } from "./geometry.ts";
import { LEVEL, POINTER_WORDS } from "./layout.ts";

/** Leaves, or rows that are objects, that one transaction frees. */
const LEAVES_AT_ONCE = 16;
const ROWS_AT_ONCE = 64;

/** Frees a part; true when the root is gone. */
export function dismantleTree(tx: Transaction, geometry: Geometry, root: Address): boolean {
  const most = geometry.inline ? LEAVES_AT_ONCE : 1;
  for (let leaves = 0; leaves < most; leaves++) {
    if (removeLast(tx, geometry, root)) return true;
  }
  return false;
}

/** Frees the last leaf, or an inner node without children; true if that was the root. */
function removeLast(tx: Transaction, geometry: Geometry, root: Address): boolean {
  const { inner } = geometry;
  let parent = -1;
  let node = openSettled(tx, tx.executor.memory.regionOf(root).id, wordOf(root));
  for (;;) {
    const { i32 } = tx.views;
    const level = i32[tx.at + LEVEL];
    const count = inner.count(i32, tx.at);
    const pointer = tx.at + inner.payloadAt(count - 1);
    const regionId = count === 0 ? -1 : i32[pointer] - 1;
    const word = count === 0 ? 0 : i32[pointer + 1];
    if (!tx.settle(node)) tx.conflict(node);
    if (count === 0) {
      tx.free(node);
      if (parent >= 0) dropLastChild(tx, geometry, parent);
      return parent < 0;
    }
    const child = openSettled(tx, regionId, word);
    if (level === 1) {
      if (emptyLeaf(tx, geometry, child)) {
        tx.free(child);
        dropLastChild(tx, geometry, node);
      }
      return false;
    }
    parent = node;
    node = child;
  }
}

/** Frees the rows of a leaf; false if there are more of them than one transaction frees. */
function emptyLeaf(tx: Transaction, { inline, leaf: nodes }: Geometry, leaf: number): boolean {
  if (inline) return true;
  const count = nodes.count(tx.views.i32, tx.at);
  const from = Math.max(0, count - ROWS_AT_ONCE);
  const pointers: number[] = [];
  for (let index = from; index < count; index++) {
    const at = tx.at + nodes.payloadAt(index);
    for (let word = 0; word < POINTER_WORDS; word++) pointers.push(tx.views.i32[at + word]);
  }
  if (!tx.settle(leaf)) tx.conflict(leaf);
  for (let at = 0; at < pointers.length; at += POINTER_WORDS) {
    freeRow(tx, tx.open(tx.executor.memory.region(pointers[at] - 1), pointers[at + 1]));
  }
  if (from === 0) return true;
  tx.writable(leaf, nodes.words);
  for (let index = count - 1; index >= from; index--) nodes.remove(tx.set, leaf, index);
  return false;
}

function dropLastChild(tx: Transaction, { inner }: Geometry, node: number): void {
  const at = tx.writable(node, inner.words);
  const last = inner.count(tx.set.arena.i32, at) - 1;
  inner.remove(tx.set, node, last);
}

/** Opens an object that the transaction depends on from now on. */
function openSettled(tx: Transaction, regionId: number, word: number): number {
  const entry = tx.open(tx.executor.memory.region(regionId), word);
  tx.depend(entry);
  return entry;
}
