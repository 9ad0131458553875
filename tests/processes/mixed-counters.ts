/**
 * What the device's threads change in the mixed storm. Rows belong to teams, and all rows of a team have the same count:
 * an update in the device adds one to each of them. Meanwhile transactions write the same rows for other reasons, take rows away
 * and bring them back with the count of their team. So a row that an update has missed, or whose new count somebody has
 * written over, differs from its team in every snapshot; and in the end the count tells how many updates there were.
 */

import { setTimeout as wait } from "node:timers/promises";
import {
  type Database,
  max,
  min,
  SituError,
  type Snapshot,
  str,
  type Table,
  table,
  u32,
} from "../../src/index.ts";
import type { Random } from "../../src/runtime/random.ts";

interface Row {
  id: number;
  team: number;
  count: number;
  /** How often transactions have written it. */
  writes: number;
  pad: string;
}
type Counters = Table<Row, number, Partial<Omit<Row, "id">>>;

const fields = { id: u32(), team: u32(), count: u32(), writes: u32(), pad: str() };
/** Of the first, places are changed only; of the second, rows with entries of an index. */
export const COUNTERS: readonly Counters[] = [
  table("count-by-places", fields, { key: "id", storage: "device" }),
  table("count-by-rows", fields, {
    key: "id",
    ordered: true,
    storage: "device",
    indexes: { byCount: { on: ["count"] } },
  }),
];
const TEAMS = 3;
const ROWS = 120;
/** The first row of each team stays; those from here on come and go. */
const FIRST_GUEST = ROWS / 2;
const LONGEST_PAD = 700;
/** Rows that were written more often may be removed by the device's threads. */
const WORN = 3;

/** A line of the log: an update that begins, and what became of it. */
export type CounterLine =
  | { readonly update: number; readonly table: number; readonly team: number }
  | { readonly update: number; readonly ended: "ok" | "failed" };

/** Errors after which an update may be there nevertheless. */
const NOT_SURE = ["SITU_NOT_DURABLE", "SITU_DISK_FULL", "SITU_UNKNOWN_OUTCOME"];

const teamOf = (id: number): number => id % TEAMS;

export function fillCounters(db: Database): void {
  for (const counters of COUNTERS) {
    db.transactSync((tx) => {
      for (let id = 0; id < ROWS; id++) {
        tx.insert(counters, { id, team: teamOf(id), count: 0, writes: 0, pad: "" });
      }
    });
  }
}

/** One process at work. */
export class CounterWork {
  readonly #db: Database;
  readonly #random: Random;
  readonly #write: (line: CounterLine) => void;
  #updates = 0;

  constructor(db: Database, random: Random, write: (line: CounterLine) => void) {
    this.#db = db;
    this.#random = random;
    this.#write = write;
  }

  /** A transaction on some rows. */
  onHost(): void {
    const random = this.#random;
    const counters = COUNTERS[random.below(COUNTERS.length)];
    const ids = Array.from({ length: 1 + random.below(3) }, () => random.below(ROWS));
    const pad = "p".repeat(random.below(LONGEST_PAD));
    this.#db.transactSync((tx) => {
      for (const id of ids) {
        const row = tx.get(counters, id);
        if (row === undefined) {
          const { team, count } = tx.get(counters, teamOf(id))!;
          tx.insert(counters, { id, team, count, writes: 0, pad });
        } else if (id >= FIRST_GUEST && random.below(2) === 0) tx.delete(counters, id);
        else tx.put(counters, { ...row, writes: row.writes + 1, pad });
      }
    });
  }

  /** An update in the device's threads, which may be called off; now and then a delete or an aggregate. */
  async onDevice(): Promise<void> {
    const random = this.#random;
    const dice = random.below(8);
    const table = random.below(COUNTERS.length);
    const team = random.below(TEAMS);
    if (dice === 0) await this.#remove(table, team);
    else if (dice < 3) await this.#compare(table);
    else await this.#count(table, team, dice === 3);
  }

  async #count(table: number, team: number, isCalledOff: boolean): Promise<void> {
    const controller = new AbortController();
    const { signal } = controller;
    const update = ++this.#updates;
    this.#write({ update, table, team });
    const running = this.#db.updateWhere(
      COUNTERS[table],
      {
        place: "device",
        where: (row) => row.team.eq(team),
        set: (row) => ({ count: row.count.plus(1) }),
      },
      { signal },
    );
    if (isCalledOff) void wait(this.#random.below(12)).then(() => controller.abort());
    try {
      await running;
      this.#write({ update, ended: "ok" });
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      if (!NOT_SURE.includes(error.code)) this.#write({ update, ended: "failed" });
      if (error.code === "SITU_CORRUPT") throw new Error(error.message, { cause: error });
    }
  }

  async #remove(table: number, team: number): Promise<void> {
    await this.#db.deleteWhere(COUNTERS[table], {
      place: "device",
      where: (row) => row.team.eq(team).and(row.id.gte(FIRST_GUEST)).and(row.writes.gt(WORN)),
    });
  }

  async #compare(table: number): Promise<void> {
    const found = await this.#db.aggregate(COUNTERS[table], {
      place: "device",
      groupBy: ["team"],
      values: (row) => ({ least: min(row.count), most: max(row.count) }),
    });
    for (const { team, least, most } of found) {
      if (least !== most) {
        throw new Error(
          `${COUNTERS[table].name}: team ${team} has counts from ${least} to ${most}`,
        );
      }
    }
  }
}

/** The count of each team, in a snapshot in which they all agree. */
function countsIn(snapshot: Snapshot, counters: Counters): number[] {
  const counts: number[] = [];
  for (const { id, team, count } of snapshot.scan(counters)) {
    counts[team] ??= count;
    if (team !== teamOf(id) || counts[team] !== count) {
      throw new Error(`${counters.name}: row ${id} has count ${count}, its team ${counts[team]}`);
    }
  }
  return counts;
}

/** No row differs from its team. */
export function auditCounters(db: Database): void {
  const snapshot = db.snapshot();
  try {
    for (const counters of COUNTERS) countsIn(snapshot, counters);
  } finally {
    snapshot.close();
  }
}

/** How many updates ended well, by table and team, and how many nobody knows of. */
function updatesIn(
  logs: readonly (readonly CounterLine[])[],
): { known: number; unknown: number }[] {
  const updates = Array.from({ length: COUNTERS.length * TEAMS }, () => ({ known: 0, unknown: 0 }));
  for (const lines of logs) {
    const ends = new Map<number, string>();
    for (const line of lines) if ("ended" in line) ends.set(line.update, line.ended);
    for (const line of lines) {
      if ("ended" in line) continue;
      const of = updates[line.table * TEAMS + line.team];
      const ended = ends.get(line.update);
      if (ended === "ok") of.known++;
      else if (ended === undefined) of.unknown++;
    }
  }
  return updates;
}

/** Updates that ended well. */
export function countUpdates(logs: readonly (readonly CounterLine[])[]): number {
  return updatesIn(logs).reduce((sum, { known }) => sum + known, 0);
}

/** What is wrong with the counts in the end: each is that of the updates that there were. */
export function counterProblems(db: Database, logs: readonly (readonly CounterLine[])[]): string[] {
  const problems: string[] = [];
  const updates = updatesIn(logs);
  const snapshot = db.snapshot();
  try {
    for (const [table, counters] of COUNTERS.entries()) {
      for (const [team, count] of countsIn(snapshot, counters).entries()) {
        const { known, unknown } = updates[table * TEAMS + team];
        if (count >= known && count <= known + unknown) continue;
        problems.push(
          `${counters.name}: team ${team} was counted ${count} times, after ${known} updates and ${unknown} unknown ones`,
        );
      }
    }
  } catch (error) {
    problems.push((error as Error).message);
  } finally {
    snapshot.close();
  }
  return problems;
}
