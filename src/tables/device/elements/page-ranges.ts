/**
 * Gives the rows of pages numbers side by side: a page in one generation gets a range as long as it has slots, so
 * what is known of a row lies in an array at the number of its page's range plus its slot. No key and no hash is
 * needed, and rows that are neighbours on the device are neighbours here.
 *
 * Page numbers lead through a directory of leaves, which are made when they are needed: a file may be large, and few of
 * its pages looked at.
 */

const LEAF_BITS = 12;
const LEAF_PAGES = 1 << LEAF_BITS;
const LEAF_MASK = LEAF_PAGES - 1;
/** Of a page: the first number plus 1, its generation, its slots. */
const WORDS = 3;

export class PageRanges {
  readonly #leaves: (Int32Array | undefined)[] = [];
  /** Numbers from here on are not given out. */
  end = 0;

  /** The first number of a page's range, or -1. */
  find(page: number, generation: number): number {
    const leaf = this.#leaves[page >>> LEAF_BITS];
    if (leaf === undefined) return -1;
    const at = (page & LEAF_MASK) * WORDS;
    return leaf[at + 1] === generation ? leaf[at] - 1 : -1;
  }

  /** How many slots the range of a page has that `find` has found. */
  slotsOf(page: number): number {
    return this.#leaves[page >>> LEAF_BITS]![(page & LEAF_MASK) * WORDS + 2];
  }

  /** Gives a page a range, in the place of one that it had in another generation. */
  add(page: number, generation: number, slots: number): number {
    const first = this.end;
    const high = page >>> LEAF_BITS;
    let leaf = this.#leaves[high];
    if (leaf === undefined) {
      leaf = new Int32Array(LEAF_PAGES * WORDS);
      this.#leaves[high] = leaf;
    }
    const at = (page & LEAF_MASK) * WORDS;
    leaf[at] = first + 1;
    leaf[at + 1] = generation;
    leaf[at + 2] = slots;
    this.end = first + slots;
    return first;
  }

  clear(): void {
    this.#leaves.length = 0;
    this.end = 0;
  }
}
