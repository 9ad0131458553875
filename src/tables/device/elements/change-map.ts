/**
 * What an update has found out about the rows of a table: by the place of a row's version, what becomes of it. This
 * is the paper's delta VID map (§4.1.4). A place names page, slot and generation, so it stands for one version of
 * one row: whoever finds it in the table's map again knows that the row has not changed, and no key is needed.
 *
 * A hash table in typed arrays with open addressing.
 */

import { SituError } from "../../../runtime/errors.ts";
import { MAX_DEVICE_CHANGE_ROWS } from "../../../runtime/limits.ts";
import { slotIn } from "../hidden-tables.ts";
import type { GatheredPlace } from "./page-walk.ts";

/** The condition is not true for it. */
export const UNMATCHED = 1;
/** It has its new values already. */
export const SAME = 2;
/** It has a new version. */
export const CHANGED = 3;
export const DELETED = 4;

const SLOTS = 2 ** 11;
const EMPTY = -1;
const FIRST_CAPACITY = 1 << 12;

export class ChangeMap {
  count = 0;
  #capacity = FIRST_CAPACITY;
  #places = new Float64Array(FIRST_CAPACITY).fill(EMPTY);
  #generations = new Int32Array(FIRST_CAPACITY);
  states = new Uint8Array(FIRST_CAPACITY);
  /** Where the new version is. */
  pages = new Uint32Array(FIRST_CAPACITY);
  newGenerations = new Int32Array(FIRST_CAPACITY);
  wheres = new Uint32Array(FIRST_CAPACITY);

  /** The index of a version; -1 if nothing is known of it. Good until the next one is added. */
  find({ page, generation, where }: Readonly<GatheredPlace>): number {
    const at = this.#search(page * SLOTS + slotIn(where));
    return this.#places[at] !== EMPTY && this.#generations[at] === generation ? at : -1;
  }

  add({ page, generation, where }: Readonly<GatheredPlace>, state: number): number {
    if (this.count * 2 >= this.#capacity) this.#grow();
    const place = page * SLOTS + slotIn(where);
    const at = this.#search(place);
    if (this.#places[at] === EMPTY) this.count++;
    this.#places[at] = place;
    this.#generations[at] = generation;
    this.states[at] = state;
    return at;
  }

  #search(place: number): number {
    const mask = this.#capacity - 1;
    const high = Math.floor(place / 2 ** 32);
    let at = Math.imul((place ^ Math.imul(high, 0x27d4eb2f)) >>> 0, 0x9e3779b1);
    at = (at ^ (at >>> 15)) & mask;
    while (this.#places[at] !== EMPTY && this.#places[at] !== place) at = (at + 1) & mask;
    return at;
  }

  #grow(): void {
    if (this.count >= MAX_DEVICE_CHANGE_ROWS) {
      throw new SituError(
        "SITU_TOO_LARGE",
        `one update can be about at most ${MAX_DEVICE_CHANGE_ROWS} rows of a device table`,
      );
    }
    const { states, pages, newGenerations, wheres } = this;
    const places = this.#places;
    const generations = this.#generations;
    const capacity = this.#capacity * 2;
    this.#capacity = capacity;
    this.#places = new Float64Array(capacity).fill(EMPTY);
    this.#generations = new Int32Array(capacity);
    this.states = new Uint8Array(capacity);
    this.pages = new Uint32Array(capacity);
    this.newGenerations = new Int32Array(capacity);
    this.wheres = new Uint32Array(capacity);
    for (let from = 0; from < places.length; from++) {
      if (places[from] === EMPTY) continue;
      const at = this.#search(places[from]);
      this.#places[at] = places[from];
      this.#generations[at] = generations[from];
      this.states[at] = states[from];
      this.pages[at] = pages[from];
      this.newGenerations[at] = newGenerations[from];
      this.wheres[at] = wheres[from];
    }
  }
}
