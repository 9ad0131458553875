/**
 * The versions of all objects that a transaction has opened, kept for later: whoever finds them unchanged would read the
 * same again, and need not.
 *
 *   - A version is given to one content of an object only, and what was kept is current, never an old version that was
 *     brought back for a snapshot.
 *   - A snapshot sees the current version of an object if that is not later than the snapshot: no commit that it sees is
 *     still under way. So a version that is found, unlocked, after the snapshot was taken is the one that it sees.
 *   - Objects are looked at in the order in which they were opened: first those whose addresses are known, then what
 *     they lead to. One that is still what it was leads to others that are still there, and the first that is not
 *     ends the look: no address is followed that may be something else by now.
 */

import { LOCK, VERSION_HIGH, VERSION_LOW } from "../memory/object.ts";
import { loadAcquire } from "../memory/ordering.ts";
import * as accessed from "./access-set.ts";
import { isLater } from "./tid.ts";
import type { Transaction } from "./transaction.ts";

/** Of each object: region id, word, version. */
const SEEN_WORDS = 4;

export class SeenVersions {
  readonly #objects: Int32Array;
  /** The latest of the versions. */
  readonly #high: number;
  readonly #low: number;

  private constructor(objects: Int32Array, high: number, low: number) {
    this.#objects = objects;
    this.#high = high;
    this.#low = low;
  }

  /** All that a transaction has opened; undefined if its snapshot sees something that is not current. */
  static of({ set, snapshot }: Transaction): SeenVersions | undefined {
    if (snapshot === undefined || snapshot.isOfCluster) return undefined;
    const { words, end } = set;
    const { limitHigh, limitLow } = snapshot;
    const objects = new Int32Array((end / accessed.ENTRY_WORDS) * SEEN_WORDS);
    let high = 0;
    let low = 0;
    for (let entry = 0, at = 0; entry < end; entry += accessed.ENTRY_WORDS, at += SEEN_WORDS) {
      const itsHigh = words[entry + accessed.VERSION_HIGH];
      const itsLow = words[entry + accessed.VERSION_LOW];
      const isOld = (words[entry + accessed.KIND] & accessed.OLD) !== 0;
      if (isOld || isLater(itsHigh, itsLow, limitHigh, limitLow)) return undefined;
      if (isLater(itsHigh, itsLow, high, low)) {
        high = itsHigh;
        low = itsLow;
      }
      objects[at] = words[entry + accessed.REGION_ID];
      objects[at + 1] = words[entry + accessed.WORD];
      objects[at + 2] = itsHigh;
      objects[at + 3] = itsLow;
    }
    return new SeenVersions(objects, high, low);
  }

  get bytes(): number {
    return this.#objects.byteLength;
  }

  /** Whether the snapshot of a transaction sees the same of all of them. */
  areSeenBy({ snapshot, executor: { memory } }: Transaction): boolean {
    if (snapshot === undefined || snapshot.isOfCluster) return false;
    if (isLater(this.#high, this.#low, snapshot.limitHigh, snapshot.limitLow)) return false;
    const objects = this.#objects;
    for (let at = 0; at < objects.length; at += SEEN_WORDS) {
      const { i32 } = memory.region(objects[at]);
      const word = objects[at + 1];
      // The lock after the version: a commit that has changed the version since has locked the object before.
      const isSame =
        loadAcquire(i32, word + VERSION_HIGH) === objects[at + 2] &&
        loadAcquire(i32, word + VERSION_LOW) === objects[at + 3] &&
        loadAcquire(i32, word + LOCK) === 0;
      if (!isSame) return false;
    }
    return true;
  }

  /**
   * Makes all of them part of what a transaction depends on, as if it had read them now; false if one has changed. To
   * be asked before the transaction writes any of them.
   */
  dependIn(tx: Transaction): boolean {
    const { set, executor } = tx;
    const objects = this.#objects;
    for (let at = 0; at < objects.length; at += SEEN_WORDS) {
      const entry = tx.open(executor.memory.region(objects[at]), objects[at + 1]);
      const isSame =
        set.words[entry + accessed.VERSION_HIGH] === objects[at + 2] &&
        set.words[entry + accessed.VERSION_LOW] === objects[at + 3];
      if (!isSame) return false;
      tx.depend(entry);
    }
    return true;
  }
}
