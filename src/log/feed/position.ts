/**
 * A place in the log between two changes, as a text that callers keep: `memory:tid:change`.
 *
 *   memory   the id of the memory that wrote this part of the log (../segments/memories.ts)
 *   tid      16 hexadecimal digits: all of earlier TIDs has been told
 *   change   of the record with this TID, the changes up to this one have been told, too
 *
 * The end of an epoch is its greatest TID, which no commit has. TIDs grow along the log, across
 * memories too; but a store that was restored to an earlier time gives the same ones again, to other
 * commits. Hence the memory: the TID counts only in the part of the log that it wrote.
 */

import { epochOf, isLater, limitHigh, limitLow } from "../../engine/tid.ts";
import { SituError } from "../../runtime/errors.ts";
import { show } from "../../runtime/show.ts";

export interface Position {
  readonly memoryId: string;
  readonly high: number;
  readonly low: number;
  readonly change: number;
}

const TEXT = /^([0-9a-f]{24}|-):([0-9a-f]{8})([0-9a-f]{8}):(\d{1,9})$/;

/** Segments of early versions do not name their memory. */
export const UNNAMED = "-";

export function endOfEpoch(memoryId: string, epoch: number): Position {
  return { memoryId, high: limitHigh(epoch), low: limitLow(epoch), change: 0 };
}

export function epochIn({ high, low }: Position): number {
  return epochOf(high, low);
}

/** Whether a change comes after a position. */
export function isAfter(position: Position, high: number, low: number, change: number): boolean {
  if (high === position.high && low === position.low) return change > position.change;
  return isLater(high, low, position.high, position.low);
}

export function positionText(memoryId: string, high: number, low: number, change: number): string {
  return `${memoryId}:${hex(high)}${hex(low)}:${change}`;
}

/** The texts of many positions, one after the other: what they have in common is made once. */
export class PositionTexts {
  #memoryId = "";
  #high = 0;
  #low = 0;
  /** Of the memory and the high word, and of the whole TID. */
  #start = "";
  #record = "";

  textOf(memoryId: string, high: number, low: number, change: number): string {
    if (high !== this.#high || memoryId !== this.#memoryId || this.#start === "") {
      this.#memoryId = memoryId;
      this.#high = high;
      this.#start = `${memoryId}:${hex(high)}`;
      this.#record = "";
    }
    if (low !== this.#low || this.#record === "") {
      this.#low = low;
      this.#record = `${this.#start}${hex(low)}:`;
    }
    return this.#record + change;
  }
}

export function parsePosition(text: unknown): Position {
  const found = typeof text === "string" ? TEXT.exec(text) : null;
  if (found === null) {
    throw new SituError(
      "SITU_TYPE",
      `watch: from must be "now", "start" or the position of a change, not ${show(text)}`,
    );
  }
  const [, memoryId, high, low, change] = found;
  return {
    memoryId,
    high: Number.parseInt(high, 16) | 0,
    low: Number.parseInt(low, 16) | 0,
    change: Number(change),
  };
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, "0");
}
