/** What a process of the anomaly tests is told to do, and what it tells afterwards. */

import type { Transaction } from "../../simulation/checkers/history.ts";
import type { Isolation } from "../../src/index.ts";

/**
 * How rows are read: in a transaction of either isolation, in a snapshot, or, as a planted bug,
 * one by one, outside of any.
 */
export type Way = Isolation | "read-only" | "planted";

export type Role =
  /** Increments the x cells, or the y cells, and says when. */
  | "increment-side"
  /** Moves amounts between x and y. */
  | "transfer"
  /** Reads x and y of pairs. */
  | "read-pairs"
  /** Increments x cells that all increment. */
  | "increment"
  /** Goes off call if somebody else stays, and comes back. */
  | "doctor"
  /** Books a room if it has fewer bookings than it may have. */
  | "book"
  /** Reads all bookings of a room twice. */
  | "read-rooms"
  /** Appends to lists and reads them. */
  | "append";

/** What each process is started with. */
export interface MemberOrder {
  readonly path: string;
  readonly seed: number;
  readonly dawdles: boolean;
  /** Its number in the meeting of all of them (tests/helpers/meeting.ts). */
  readonly member: number;
  readonly meetingPath: string;
}

export interface AnomalyOrder {
  readonly seed: number;
  readonly role: Role;
  readonly way: Way;
  readonly durationMs: number;
  /** Goes on for longer, if it has not done so much by then. */
  readonly leastTimes: number;
  /** Which of the processes with its role it is, from 0. */
  readonly which: number;
}

/** Which cells, as a text: the kind of table and the pair. */
export type Place = string;

export interface PairRead {
  readonly place: Place;
  readonly x: number;
  readonly y: number;
  readonly start: number;
  readonly end: number;
}

/** A value that was in place at a time, at the latest. */
export interface SideWrite {
  readonly place: Place;
  readonly side: "x" | "y";
  readonly n: number;
  readonly end: number;
}

export interface AnomalyReport {
  /** What was seen and must not be, as sentences; the first few. */
  readonly violations: readonly string[];
  /** How often the process did what it is there for. */
  readonly times: number;
  readonly reads: readonly PairRead[];
  readonly writes: readonly SideWrite[];
  /** Committed increments of each place. */
  readonly increments: Readonly<Record<Place, number>>;
  readonly history: readonly Transaction[];
}
