/**
 * What a transaction sees: one predicate over versions, whatever stands behind it (NAM-DB §4.1). A vector has a
 * timestamp for each slot. The naive oracle has one number for all, like the epochs of a store's own snapshots:
 * then the slot does not matter.
 */

import type { VectorSlot } from "./header.ts";

export interface Visibility {
  sees(slot: VectorSlot, timestamp: number): boolean;
}

/** All versions up to one number, whoever made them. */
export class ScalarVisibility implements Visibility {
  readonly #upTo: number;

  constructor(upTo: number) {
    this.#upTo = upTo;
  }

  sees(_slot: VectorSlot, timestamp: number): boolean {
    return timestamp <= this.#upTo;
  }
}

/** What a thread knows of its own slot beside the vector that it has read. */
export interface OwnCommits {
  readonly slot: VectorSlot;
  /** All of the slot's versions up to here are complete. */
  readonly upTo: number;
  /** Later ones of the thread itself; others of the same slot may be half installed. */
  readonly further: readonly number[];
}

export class VectorVisibility implements Visibility {
  readonly #vector: Int32Array;
  readonly #own: OwnCommits | undefined;

  /** `vector` is not changed any more. */
  constructor(vector: Int32Array, own?: OwnCommits) {
    this.#vector = vector;
    this.#own = own;
  }

  sees(slot: VectorSlot, timestamp: number): boolean {
    if (slot < this.#vector.length && timestamp <= this.#vector[slot] >>> 0) return true;
    const own = this.#own;
    if (own === undefined || own.slot !== slot) return false;
    return timestamp <= own.upTo || own.further.includes(timestamp);
  }
}
