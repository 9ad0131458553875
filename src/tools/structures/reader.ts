/**
 * Reads the objects of a store that may be damaged, one by one, as a snapshot sees them. Nothing is
 * believed before it was looked at: an address must lead to the beginning of a cell of the size
 * that such an object has, by the allocator's tables; only then its header is read, and only if
 * that makes sense its data, into a private copy. So whoever walks over a structure by this reads
 * nothing that changes, waits for nobody who does not exist, and never runs off the end.
 *
 * Every read is a step of its own through the snapshot, and can be repeated by whoever runs it.
 */

import { BUFFER, DATA_WORDS, VERSION_HIGH, VERSION_LOW } from "../../engine/access-set.ts";
import { mayLieIn } from "../../engine/cells.ts";
import type { Executor } from "../../engine/executor.ts";
import { copyWords } from "../../engine/journal.ts";
import { epochOf } from "../../engine/tid.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { type Address, addressOf, regionIdOf, wordOf } from "../../memory/address.ts";
import type { BlockTable } from "../../memory/blocks.ts";
import {
  ALLOCATED,
  ARRAY,
  HEADER_BYTES,
  VERSION_HIGH as HEADER_VERSION_HIGH,
  VERSION_LOW as HEADER_VERSION_LOW,
  HEADER_WORDS,
} from "../../memory/object.ts";
import { CELL_BYTES } from "../../memory/size-classes.ts";
import type { Region } from "../../memory/store-memory.ts";
import type { Views } from "../../memory/views.ts";
import type { Place, Problems } from "./check.ts";
import { isUnreadable, lockFault } from "./locks.ts";
import type { SeenCells } from "./seen-cells.ts";

/** Runs one step of reading through a snapshot; again if it was disturbed. */
export type Run = <A, T>(step: (tx: Transaction, argument: A) => T, argument: A) => T;

/** What a pointer says about a cell. */
export interface Expected {
  /** The size class of such objects; -1 if they have several. */
  readonly sizeClass: number;
  /** The incarnation word in the pointer; undefined if it has none. */
  readonly incarnation: number | undefined;
  readonly isArray?: boolean;
}

export class ObjectReader {
  readonly problems: Problems;
  /** Bytes of all cells that were reached. */
  memoryBytes = 0;
  /** Of the object that was read last: the incarnation word, the class of its cell, the version. */
  incarnation = 0;
  sizeClass = -1;
  versionHigh = 0;
  versionLow = 0;
  readonly #executor: Executor;
  readonly #blocks: BlockTable;
  readonly #run: Run;
  readonly #seen: SeenCells;
  readonly #owner: number;
  /** What the step that runs is to read, and where to. */
  #region!: Region;
  #word = 0;
  #words = 0;
  #into!: Views;

  constructor(executor: Executor, run: Run, seen: SeenCells, owner: number, problems: Problems) {
    this.#executor = executor;
    this.#blocks = executor.slabs.blocks;
    this.#run = run;
    this.#seen = seen;
    this.#owner = owner;
    this.problems = problems;
  }

  /**
   * Copies the first words of an object that is a cell of its own; all that the cell holds if
   * `words` is -1. False if there is no such object, and then the problem has been told.
   */
  readCell(
    place: Place,
    regionId: number,
    word: number,
    expected: Expected,
    words: number,
    into: Views,
  ): boolean {
    const fault = this.#cellFault(regionId, word, expected.sizeClass);
    if (fault !== undefined) return this.#tell(place, fault);
    this.sizeClass = this.#blocks.classOf(this.#blocks.blockOf(addressOf(regionId, word)));
    const capacity = (CELL_BYTES[this.sizeClass] - HEADER_BYTES) / 4;
    if (!this.#read(place, regionId, word, words < 0 ? capacity : words, into)) return false;
    const what = this.#incarnationFault(expected);
    if (what !== undefined) return this.#tell(place, what);
    const cell = addressOf(regionId, word);
    const other = this.#seen.reach(cell, this.incarnation, this.#owner);
    if (other !== undefined) {
      return this.#tell(place, `it leads to ${shownPlace(cell)}, which ${other} has reached, too`);
    }
    this.memoryBytes += CELL_BYTES[this.sizeClass];
    return true;
  }

  /** The same for an element of an array whose cell was read before and has this incarnation. */
  readElement(
    place: Place,
    regionId: number,
    word: number,
    arrayIncarnation: number,
    words: number,
    into: Views,
  ): boolean {
    if (!this.#read(place, regionId, word, words, into)) return false;
    if (this.incarnation === (arrayIncarnation & ~ARRAY)) return true;
    return this.#tell(
      place,
      `its incarnation word is ${this.incarnation}, that of its array ${arrayIncarnation}`,
    );
  }

  #tell(place: Place, what: string): false {
    // Once a snapshot was released, what it saw may have been freed, and its memory used for something
    // else. Then this throws, and the work begins again with another snapshot.
    this.#run(ObjectReader.#nothing, undefined);
    this.problems.add(place, what);
    return false;
  }

  static #nothing(): void {}

  /** Whether the allocator's tables know a cell that begins there. */
  #cellFault(regionId: number, word: number, sizeClass: number): string | undefined {
    const { memory } = this.#executor;
    if (regionId < 0 || regionId >= memory.control.geometry.regions || !memory.isReady(regionId)) {
      return `it leads to region ${regionId}, which the store does not have`;
    }
    const region = memory.region(regionId);
    const address = addressOf(regionId, word);
    const where = shownPlace(address);
    if (word < 0 || word + HEADER_WORDS > region.i32.length) {
      return `it leads to word ${word} of region ${regionId}, which has ${region.i32.length}`;
    }
    const cell = this.#blocks.cellOf(address);
    if (cell !== address) return `it leads to ${where}, where no cell begins`;
    const found = this.#blocks.classOf(this.#blocks.blockOf(address));
    if (sizeClass < 0 || mayLieIn(sizeClass, found)) return undefined;
    const [is, expected] = [CELL_BYTES[found], CELL_BYTES[sizeClass]];
    return `it leads to ${where}, a cell of ${is} bytes, where one of ${expected} is expected`;
  }

  #incarnationFault({ incarnation, isArray = false }: Expected): string | undefined {
    const word = this.incarnation;
    const where = shownPlace(addressOf(this.#region.id, this.#word));
    if (incarnation !== undefined && word !== incarnation) {
      return (
        `it leads to ${where}, where another object is than it was made for: ` +
        `the incarnation word is ${word}, the pointer has ${incarnation}`
      );
    }
    if ((word & ALLOCATED) === 0) return `it leads to ${where}, a cell that is free`;
    if (((word & ARRAY) !== 0) === isArray) return undefined;
    return `it leads to ${where}, which ${isArray ? "should be" : "is"} an array`;
  }

  #read(place: Place, regionId: number, word: number, words: number, into: Views): boolean {
    const region = this.#executor.memory.region(regionId);
    this.#region = region;
    this.#word = word;
    this.#words = words;
    this.#into = into;
    const where = (): string => shownPlace(addressOf(regionId, word));
    const lock = lockFault(this.#executor, region, word);
    if (lock !== undefined) {
      this.#tell(place, `the object at ${where()}: ${lock}`);
      // Whoever waits until it may be read waits for ever.
      if (isUnreadable(region, word)) return false;
    }
    if (!this.#run(ObjectReader.#step, this)) {
      const epoch = epochOf(this.versionHigh, this.versionLow);
      return this.#tell(
        place,
        `the object at ${where()} has a version of epoch ${epoch}, and an earlier one that ` +
          `belongs to what points to it is not kept`,
      );
    }
    if (this.versionHigh === 0 && this.versionLow === 0) {
      return this.#tell(place, `the object at ${where()} has no version: it was never written`);
    }
    return true;
  }

  // One function for all, and no closure: it runs for every object of the store.
  static #step(tx: Transaction, reader: ObjectReader): boolean {
    const region = reader.#region;
    const words = reader.#words;
    const target = reader.#into.i32;
    for (;;) {
      const entry = tx.openIfThere(region, reader.#word);
      if (entry < 0) {
        const { i32 } = region;
        reader.versionHigh = i32[reader.#word + HEADER_VERSION_HIGH];
        reader.versionLow = i32[reader.#word + HEADER_VERSION_LOW];
        return false;
      }
      const found = tx.set.words;
      // The copy of an old version has the words that its object was written with.
      const isCopy = found[entry + BUFFER] >= 0;
      const there = isCopy ? Math.min(words, found[entry + DATA_WORDS]) : words;
      copyWords(tx.views.i32, tx.at, target, 0, there);
      if (there < words) target.fill(0, there, words);
      if (!tx.settle(entry)) continue;
      reader.incarnation = tx.incarnationOf(entry);
      reader.versionHigh = found[entry + VERSION_HIGH];
      reader.versionLow = found[entry + VERSION_LOW];
      return true;
    }
  }
}

export function shownPlace(address: Address): string {
  return `word ${wordOf(address)} of region ${regionIdOf(address)}`;
}
