/** The nodes of a tree, as they follow from the rows and keys of its table. */

import { dataCapacity } from "../../engine/cells.ts";
import { HEADER_BYTES } from "../../memory/object.ts";
import {
  INNER_BYTES,
  LEAF_BYTES,
  MAX_INLINE_ROW_BYTES,
  VARIABLE_NODE_BYTES,
} from "../../runtime/limits.ts";
import { FixedNodes } from "./fixed-nodes.ts";
import { type NodeFormat, POINTER_WORDS } from "./layout.ts";
import { VariableNodes } from "./variable-nodes.ts";

/** What a tree has to know of its table. */
export interface TreeSizes {
  readonly fixedWords: number;
  readonly orderedWords: number;
}

export class Geometry {
  /** Rows lie in their leaves, not in objects of their own. */
  readonly inline: boolean;
  readonly leaf: NodeFormat;
  readonly inner: NodeFormat;
  /** A lower bound of all keys, as the first key of an inner node. */
  readonly least: Int32Array;

  constructor({ fixedWords, orderedWords }: TreeSizes) {
    this.inline = fixedWords > 0 && fixedWords * 4 <= MAX_INLINE_ROW_BYTES;
    const payload = this.inline ? fixedWords : POINTER_WORDS;
    if (orderedWords > 0) {
      this.leaf = new FixedNodes(wordsFor(LEAF_BYTES), orderedWords, payload, true);
      this.inner = new FixedNodes(wordsFor(INNER_BYTES), orderedWords, POINTER_WORDS, false);
    } else {
      this.leaf = new VariableNodes(wordsFor(VARIABLE_NODE_BYTES), payload);
      this.inner = new VariableNodes(wordsFor(VARIABLE_NODE_BYTES), POINTER_WORDS);
    }
    this.least = new Int32Array(orderedWords);
  }
}

/** Data words of the cells that objects of so many bytes get. */
function wordsFor(bytes: number): number {
  return Math.floor(dataCapacity(bytes - HEADER_BYTES) / 8) * 2;
}
