/**
 * What an update has found out about the rows of a table: by the place of a row's version, what becomes of it. This
 * is the paper's delta VID map (§4.1.4). A place names page, slot and generation, so it stands for one version of
 * one row: whoever finds it in the table's map again knows that the row has not changed, and no key is needed.
 *
 * Rows have numbers by their pages (page-ranges.ts), and what becomes of them is in arrays by these. An update is carried out
 * by one thread, which has one map for all pages.
 */

import { SituError } from "../../../runtime/errors.ts";
import { MAX_DEVICE_CHANGE_ROWS } from "../../../runtime/limits.ts";
import { PageRanges } from "./page-ranges.ts";

/** Nothing is known of it. */
export const UNKNOWN = 0;
/** The condition is not true for it. */
export const UNMATCHED = 1;
/** It has its new values already. */
export const SAME = 2;
/** It has a new version. */
export const CHANGED = 3;
export const DELETED = 4;
/** It matches, and is changed as on the host. */
export const BY_ROW = 5;

const FIRST_CAPACITY = 1 << 12;

export class ChangeMap {
  /** Rows of which something is known. */
  count = 0;
  readonly #ranges = new PageRanges();
  #capacity = FIRST_CAPACITY;
  states = new Uint8Array(FIRST_CAPACITY);
  /** Where the new version is. */
  pages = new Uint32Array(FIRST_CAPACITY);
  generations = new Int32Array(FIRST_CAPACITY);
  wheres = new Uint32Array(FIRST_CAPACITY);
  /** Of rows that change: the key, where keys are numbers. */
  keys = new Float64Array(FIRST_CAPACITY);

  /** What is known of a version. */
  stateOf(page: number, generation: number, slot: number): number {
    const first = this.#ranges.find(page, generation);
    if (first < 0 || slot >= this.#ranges.slotsOf(page)) return UNKNOWN;
    return this.states[first + slot];
  }

  /** The number of a version of which something is known. */
  numberOf(page: number, generation: number, slot: number): number {
    return this.#ranges.find(page, generation) + slot;
  }

  /** Notes what becomes of a version, on a page of so many slots; returns its number. */
  add(page: number, generation: number, slot: number, slots: number, state: number): number {
    let first = this.#ranges.find(page, generation);
    if (first < 0) {
      first = this.#ranges.add(page, generation, slots);
      if (this.#ranges.end > this.#capacity) this.#grow();
    }
    const number = first + slot;
    if (this.states[number] === UNKNOWN) this.count++;
    this.states[number] = state;
    return number;
  }

  #grow(): void {
    if (this.count >= MAX_DEVICE_CHANGE_ROWS) {
      throw new SituError(
        "SITU_TOO_LARGE",
        `one update can be about at most ${MAX_DEVICE_CHANGE_ROWS} rows of a device table`,
      );
    }
    while (this.#capacity < this.#ranges.end) this.#capacity *= 2;
    const { states, pages, generations, wheres, keys } = this;
    this.states = new Uint8Array(this.#capacity);
    this.pages = new Uint32Array(this.#capacity);
    this.generations = new Int32Array(this.#capacity);
    this.wheres = new Uint32Array(this.#capacity);
    this.states.set(states);
    this.pages.set(pages);
    this.generations.set(generations);
    this.wheres.set(wheres);
    this.keys = new Float64Array(this.#capacity);
    this.keys.set(keys);
  }
}
