/**
 * How a graph lies in memory (FaRM §4.4; docs/decisions/0093). An object of the graph is one object of the store: its
 * identity, the heads and counts of its edge lists, and its data. Data words:
 *
 *   0     MARK (8 bits), state (8), number of lists (8), kind (8)
 *   1     words of the data
 *   2–3   id, upper and lower half
 *   4     words that the cell has room for
 *   5     the tag of its graph (tables/graph/definition.ts); 0 in objects that older versions made
 *   6…    a slot of four words for each list that has edges, then the data
 *
 *   slot  type (16 bits) and region id + 1 of the head (16) | word of the head | its incarnation word | edges
 *
 * A list is a tree of _elements_, and most lists are one element. Leaves hold edges, newest first; inner elements
 * say where others are, and how many edges lie below each. Data words of an element:
 *
 *   0     SPREAD (bit 24), level (8 bits from bit 16), entries (16)
 *   1     words that the cell has room for (16 bits), words in use (16)
 *   2–7   in the head of a list of several elements only: root and finder, each as region id + 1, word and level
 *   …     entries
 *
 *   entry data, then its key in four words: entry words (11 bits) and upper half of the first number (21), its
 *         lower half, the second number
 *
 * Entries are laid down from the last to the first: an element is read from its end. So the newest edge, the usual
 * one, is added behind all others, and nothing moves. Keys are two numbers. In the tree of a list they are the edge's
 * time, subtracted from LAST_TIME so that later ones come first, and its target. In the _finder_, the tree that leads from
 * targets to times, they are the target and that time. An inner entry's key is the least of the element it leads to,
 * or less; that of the first one does not count.
 *
 * The first leaf is the _head_. Its cell stays the head's until it is freed: what does not fit goes to other cells. So
 * one who remembers where a list begins, and finds the cell's incarnation unchanged, has found the list's beginning.
 */

import { MAX_EDGE_DATA_BYTES, MAX_ELEMENT_BYTES } from "../../runtime/limits.ts";

export const HALF = 2 ** 32;

export const MARK = 0x67;
/** Where an object says which graph it belongs to. */
export const TAG = 5;
export const OBJECT_SLOTS = 6;
export const SLOT_WORDS = 4;
export const MAX_LISTS = 255;

/** States of an object. A shell has edges and no data; one that is leaving is gone, but for its edges. */
export const PRESENT = 0;
export const SHELL = 1;
export const LEAVING = 2;

export const LAST_TIME = Number.MAX_SAFE_INTEGER;

export const ELEMENT_WORDS = MAX_ELEMENT_BYTES / 4;
export const FIRST_ENTRY = 2;
/** Where entries begin in the head of a list of several elements. */
export const SPREAD_FIRST_ENTRY = 8;
export const SPREAD = 1 << 24;
export const LEVEL_SHIFT = 16;
export const LEVEL_MASK = 0xff;
export const COUNT_MASK = 0xffff;
export const CAPACITY_SHIFT = 16;

/** In a head: where the root and the finder of its list are. */
export const ROOT = 2;
export const FINDER = 5;

export const KEY_WORDS = 4;
export const LENGTH_SHIFT = 21;
export const UPPER_MASK = (1 << LENGTH_SHIFT) - 1;
/** An entry of an inner element: region id + 1, word, edges below, and nothing; then the key. */
export const CHILD_WORDS = 8;
export const MAX_ENTRY_WORDS = KEY_WORDS + MAX_EDGE_DATA_BYTES / 4;

export function headerWord(kind: number, lists: number, state: number): number {
  return (MARK << 24) | (state << 16) | (lists << 8) | kind;
}

/** The number in two words, of which the upper one may have other bits above its 21. */
export function numberAt(i32: Int32Array, at: number): number {
  return (i32[at] & UPPER_MASK) * HALF + (i32[at + 1] >>> 0);
}

export function upperHalf(value: number): number {
  return Math.floor(value / HALF);
}

export function lowerHalf(value: number): number {
  return value | 0;
}
