/**
 * What an executor knows of one size class: the cells that it has freed, those that rest, and the
 * blocks that it looks for free cells in.
 */

import type { Address } from "./address.ts";
import { Candidates } from "./candidates.ts";

/** What the slabs ask of the engine above: has everybody moved on since then? */
export interface SlabHost {
  /** Whether the event loop of this thread should turn soon. */
  readonly isHurried: boolean;
  /** Announces one who looks at blocks, like a transaction, until `leave` with what this returns. */
  enter(): number;
  leave(entered: number): void;
  /** An epoch such that transactions which start from now on announce a later one. */
  mark(): number;
  /** Whether no transaction that announced `epoch` or an earlier one is still running. */
  isPast(epoch: number): boolean;
  /** Whether a snapshot is open that sees what was there before this version. */
  isSeen(versionHigh: number, versionLow: number): boolean;
  /** Another executor is creating a region: waits a little, and sees to it if that one died. */
  waitForCreator(regionId: number): void;
}

export interface RestingCell {
  readonly cell: Address;
  /** Its incarnation word. */
  readonly word: number;
  readonly since: number;
  /** The version that it was freed with. */
  readonly high: number;
  readonly low: number;
}

const STEPS = [3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41] as const;

/** How far an executor goes from one cell of a block to the next: a prime that leads to all cells. */
export function stepOf(slot: number, cells: number): number {
  for (let i = 0; i < STEPS.length; i++) {
    const step = STEPS[(slot + i) % STEPS.length];
    if (cells % step !== 0) return step;
  }
  return 1;
}

export class Slab {
  readonly candidates = new Candidates();
  readonly freeCells: Address[] = [];
  resting: RestingCell[] = [];
  /** When the table was looked at for blocks of this class: units taken until then, and sharings. */
  takenThen = -1;
  sharingsThen = 0;
  /** Whether there were more than the candidates that were noted. */
  hasMore = false;
  /** Whether the class took a good part of all cells when that was last judged, and the counts of then. */
  isHot = false;
  allThen: number;
  ownThen = 0;
  /** Cells chosen here, now and when the background looked last. */
  chosen = 0;
  chosenLately = 0;
  /** The block that this executor prefers, or -1. */
  preferred = -1;

  /** @param allThen cells that were chosen in all slabs so far */
  constructor(allThen: number) {
    this.allThen = allThen;
  }
}
