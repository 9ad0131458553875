/**
 * Lookups in the table of another node by consistent object reads alone (FaRM §3.6, §5): no program
 * of that node takes part. A lookup is a coroutine. It yields the objects that it wants to read,
 * all of one batch at once, and is resumed with what they held; it knows no fabric, no memory and
 * no engine, only the shape of the table, which the node describes, and the codec of its rows.
 *
 * What was found comes with *dependencies*: versions of objects which, as long as all of them are
 * current, prove the row there or absent. They are validated where the transaction commits. Without
 * a transaction, a result that one read has proved (`isProved`) stands as it is; any other one must
 * be confirmed: all dependencies are read again, and if none has changed, all held at the moment
 * between.
 *
 * One who reads memory from afar holds no epoch back, so a cell that was freed may be another
 * object's, of another size, before it is read. Therefore what is behind a pointer is believed
 * only together with the object that holds the pointer: both are dependencies. That is the one
 * difference to the read set of a local lookup.
 */

import type { Address } from "../../memory/address.ts";
import { regionIdOf, wordOf } from "../../memory/address.ts";
import type { StoreMemory } from "../../memory/store-memory.ts";
import { Views } from "../../memory/views.ts";
import type { TableKind } from "../kinds.ts";

/** An object that a lookup wants to read. */
export interface Wanted {
  readonly regionId: number;
  readonly word: number;
  readonly dataWords: number;
}

/** What it held, in one version; the verb `ReadObject` is such an answer. */
export interface Answer {
  /** Somebody is installing a commit: there is no data. */
  readonly isLocked: boolean;
  readonly versionHigh: number;
  readonly versionLow: number;
  readonly incarnation: number;
  /** The data, from word 0 on. */
  readonly data: Views | undefined;
}

export interface Dependency {
  readonly regionId: number;
  readonly word: number;
  readonly versionHigh: number;
  readonly versionLow: number;
}

export type Outcome =
  | "found"
  | "absent"
  /** An object is locked, or kept changing: try again, after a while. */
  | "locked"
  /** The row is too large for verbs: ask the node, by a message. */
  | "ask";

/** Where a row lies that is an object of its own. */
export interface RowPointer {
  readonly regionId: number;
  readonly word: number;
  readonly incarnation: number;
}

export interface Found {
  readonly outcome: Outcome;
  /** The row's own object, if it has one. */
  readonly pointer?: RowPointer | undefined;
  /** Where the row lies, if there is one; the views are the caller's own. */
  readonly views: Views;
  readonly at: number;
  readonly words: number;
  readonly dependencies: readonly Dependency[];
  /** One consistent read has shown it: it was so, whatever became of it. */
  readonly isProved: boolean;
  /** Batches, one after the other; and contiguous reads, as FaRM §3.6 counts them. */
  readonly rounds: number;
  readonly reads: number;
}

/** A coroutine that reads objects from afar. The answers are in the order of what was wanted. */
export type Reading<T> = Generator<readonly Wanted[], T, readonly Answer[]>;

/** What a node tells of a table, so that others can look keys up in it. Goes into any message. */
export interface RemoteTable {
  readonly layout: TableKind;
  /** Words of every row if all have the same size, else 0. */
  readonly fixedWords: number;
  readonly rootRegion: number;
  readonly rootWord: number;
  /** Of the table's hash at this node; each node has another. Where there is none, it is 0. */
  readonly seed?: number;
  /** Words of a region: no object goes beyond its end. */
  readonly regionWords: number;
}

/** A table of another node. */
export interface RemoteStore<Key> {
  /** Objects that were read only to know where rows lie, such as the heads of shards. */
  readonly heads: number;
  /** Finds a key, for a transaction: its dependencies are validated when that commits. */
  lookup(key: Key): Reading<Found>;
}

/** At the node: where the table of a store that hashes is rooted, and how it is shaped. */
export function describeRemote(
  layout: TableKind,
  fixedWords: number,
  root: Address,
  memory: StoreMemory,
  seed = 0,
): RemoteTable {
  return {
    layout,
    fixedWords,
    rootRegion: regionIdOf(root),
    rootWord: wordOf(root),
    seed,
    regionWords: memory.control.geometry.regionBytes / 4,
  };
}

const NOWHERE = new Views(new ArrayBuffer(0));

/** What a lookup has read so far, and what follows from it. */
export class Trail {
  readonly dependencies: Dependency[] = [];
  rounds = 0;
  reads = 0;
  /** Objects that were read below the first bucket, since the last restart. */
  below = 0;

  /** Notes a batch that counts as so many contiguous reads. */
  count(reads: number): void {
    this.rounds++;
    this.reads += reads;
  }

  /** Begins again, but for the figures. */
  restart(): void {
    this.dependencies.length = 0;
    this.below = 0;
  }

  depend({ regionId, word }: Wanted, { versionHigh, versionLow }: Answer): void {
    this.dependencies.push({ regionId, word, versionHigh, versionLow });
  }

  found(views: Views, at: number, words: number, isProved: boolean, pointer?: RowPointer): Found {
    const found = this.#ended("found", views, at, words, isProved);
    return pointer === undefined ? found : { ...found, pointer };
  }

  absent(isProved: boolean): Found {
    return this.#ended("absent", NOWHERE, 0, 0, isProved);
  }

  /** No result: nothing is depended on. */
  without(outcome: "locked" | "ask"): Found {
    this.restart();
    return this.#ended(outcome, NOWHERE, 0, 0, false);
  }

  #ended(outcome: Outcome, views: Views, at: number, words: number, isProved: boolean): Found {
    const { dependencies, rounds, reads } = this;
    return { outcome, views, at, words, dependencies, isProved, rounds, reads };
  }
}

/**
 * Reads the headers of all dependencies again. True if none has changed and none is locked: then
 * there was a moment, before this began, when all of them held.
 */
export function* confirm(dependencies: readonly Dependency[]): Reading<boolean> {
  if (dependencies.length === 0) return true;
  const wanted = dependencies.map(({ regionId, word }) => ({ regionId, word, dataWords: 0 }));
  const answers = yield wanted;
  return dependencies.every(({ versionHigh, versionLow }, i) => {
    const answer = answers[i];
    return (
      !answer.isLocked && answer.versionHigh === versionHigh && answer.versionLow === versionLow
    );
  });
}
