/**
 * Which blocks there were at some moment, and in which of their lives. Three words for each unit, of
 * a block's first unit: its class + 1, its format epoch, its first incarnation.
 */

import { type BlockTable, SPAN, UnitLook } from "../../memory/blocks.ts";
import {
  CLASS_MASK,
  ENTRY_FIRST_INCARNATION,
  ENTRY_FORMAT_EPOCH,
  ENTRY_SHAPE,
  ENTRY_UNIT,
  ENTRY_WORDS,
} from "./format.ts";
import type { Checkpoint } from "./reader.ts";

const WORDS = 3;
const CLASS = 0;
const FORMAT_EPOCH = 1;
const FIRST_INCARNATION = 2;

export class Lives {
  readonly #words: Int32Array;

  private constructor(units: number) {
    this.#words = new Int32Array(units * WORDS);
  }

  /** The blocks as they are now. One that is just being made or given back may be left out. */
  static now(blocks: BlockTable): Lives {
    const units = blocks.count;
    const lives = new Lives(units);
    const look = new UnitLook();
    for (let unit = 0; unit < units; ) {
      blocks.look(unit, look);
      if (look.sizeClass >= 0) lives.#set(unit, look);
      unit += look.sizeClass >= 0 ? SPAN[look.sizeClass] : 1;
    }
    return lives;
  }

  /** The blocks of a checkpoint. */
  static of(checkpoint: Checkpoint, blocks: BlockTable): Lives {
    const { words, entries } = checkpoint;
    let units = blocks.count;
    // It may have been taken when the store was larger.
    for (let entry = 0; entry < entries; entry++) {
      units = Math.max(units, words[entry * ENTRY_WORDS + ENTRY_UNIT] + 1);
    }
    const lives = new Lives(units);
    const look = new UnitLook();
    for (let entry = 0; entry < entries; entry++) {
      const at = entry * ENTRY_WORDS;
      look.sizeClass = (words[at + ENTRY_SHAPE] & CLASS_MASK) - 1;
      look.formatEpoch = words[at + ENTRY_FORMAT_EPOCH];
      look.firstIncarnation = words[at + ENTRY_FIRST_INCARNATION];
      if (look.sizeClass >= 0) lives.#set(words[at + ENTRY_UNIT], look);
    }
    return lives;
  }

  /** Whether a block is in the life that it was in. */
  isSameBlock(unit: number, look: UnitLook): boolean {
    const at = unit * WORDS;
    return (
      at < this.#words.length &&
      this.#words[at + CLASS] === look.sizeClass + 1 &&
      this.#words[at + FORMAT_EPOCH] === look.formatEpoch
    );
  }

  /** The same, and nobody has begun to give it back. */
  isSame(unit: number, look: UnitLook): boolean {
    const at = unit * WORDS;
    return (
      this.isSameBlock(unit, look) && this.#words[at + FIRST_INCARNATION] === look.firstIncarnation
    );
  }

  #set(unit: number, look: UnitLook): void {
    const at = unit * WORDS;
    this.#words[at + CLASS] = look.sizeClass + 1;
    this.#words[at + FORMAT_EPOCH] = look.formatEpoch;
    this.#words[at + FIRST_INCARNATION] = look.firstIncarnation;
  }
}
