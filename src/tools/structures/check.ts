/**
 * What the checks of all structures have in common. A check is a generator that walks over a
 * structure by an `ObjectReader`, tells what is wrong, counts, and yields often, so that whoever
 * runs it can let others work. It never throws for what it finds: a part that cannot be read is
 * told and passed over. It ends on any input: every object is entered once.
 */

import type { Views } from "../../memory/views.ts";
import type { RowCodec } from "../../stores/store.ts";
import type { Place, Problems } from "./problems.ts";

export type Check<Figures> = Generator<void, Figures>;

/** What those above know about the rows of a structure. */
export interface CheckedRows<Row> {
  readonly codec: RowCodec<Row, unknown>;
  /** What is wrong with the fields of the row at a place, or undefined. */
  fault(views: Views, at: number, words: number): string | undefined;
  /** The key of a row: for messages, and to tell whether two rows have the same. */
  showKey(row: Row): string;
  /** Called for every row that makes sense and lies under its own key. */
  each(row: Row): void;
}

/** Figures that all structures have. */
export interface StructureFigures {
  readonly rows: number;
  /** Rows that lie in objects of their own, and how many of them are cut into pieces. */
  readonly rowObjects: number;
  readonly cutRows: number;
  /** The cells of the structure and its rows. */
  readonly memoryBytes: number;
}

/** The row at a place; undefined if its fields make no sense, and then that has been told. */
export function soundRow<Row>(
  problems: Problems,
  place: Place,
  rows: CheckedRows<Row>,
  views: Views,
  at: number,
  words: number,
): Row | undefined {
  const fault = rows.fault(views, at, words);
  if (fault === undefined) return rows.codec.decode(views, at, words);
  problems.add(place, fault);
  return undefined;
}

/** Stages the key of a row, which may be damaged in a way that only this finds. */
export function stagedKey(problems: Problems, place: Place, stage: () => number): number {
  try {
    return stage();
  } catch (error) {
    problems.add(place, `its key cannot be one: ${error instanceof Error ? error.message : error}`);
    return NO_STAGE;
  }
}

/** What `stagedKey` returns for a key that is none: no hash, and no number of words. */
export const NO_STAGE = 0;
