/** Transactions as their keys, for scripts.ts: FaSST's object store (§6.1), and a mix like TATP's. */

import type { Random } from "../../src/runtime/random.ts";
import type { Transaction } from "./scripts.ts";

export interface Mix {
  readonly name: string;
  next(random: Random): Transaction;
}

/** O(r, w): r keys are read, w of them are written. */
function objects(r: number, w: number): Mix {
  const transaction: Transaction = { steps: [{ reads: r - w, writes: w }] };
  return { name: `O(${r},${w})`, next: () => transaction };
}

const READ_ONE: Transaction = { steps: [{ reads: 1, writes: 0 }] };
/** Get new destination: a facility, and then up to three forwardings of it. */
const READ_UP_TO_FOUR: readonly Transaction[] = [0, 1, 2, 3].map((further) => ({
  steps: [{ reads: 1, writes: 0 }, ...(further > 0 ? [{ reads: further, writes: 0 }] : [])],
}));
/** A subscriber is found by number first, in a table that leads from numbers to subscribers. */
const UPDATE_LOCATION: Transaction = {
  steps: [
    { reads: 1, writes: 0 },
    { reads: 0, writes: 1 },
  ],
};
const UPDATE_SUBSCRIBER: Transaction = { steps: [{ reads: 0, writes: 2 }] };
const INSERT_FORWARDING: Transaction = {
  steps: [
    { reads: 1, writes: 0 },
    { reads: 1, writes: 1 },
  ],
};
const DELETE_FORWARDING: Transaction = {
  steps: [
    { reads: 1, writes: 0 },
    { reads: 0, writes: 1 },
  ],
};

/** The standard mix in percent: 70 % read one key, 10 % up to four, 20 % write (FaSST §6). */
const TATP: Mix = {
  name: "TATP",
  next(random) {
    const percent = random.below(100);
    if (percent < 70) return READ_ONE;
    if (percent < 80) return READ_UP_TO_FOUR[random.below(4)];
    if (percent < 94) return UPDATE_LOCATION;
    if (percent < 96) return UPDATE_SUBSCRIBER;
    return percent < 98 ? INSERT_FORWARDING : DELETE_FORWARDING;
  },
};

export const MIXES: readonly Mix[] = [objects(1, 0), objects(4, 0), objects(4, 2), TATP];
