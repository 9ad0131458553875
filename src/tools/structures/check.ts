/**
 * What the checks of all structures have in common. A check is a generator that walks over a
 * structure by an `ObjectReader`, tells what is wrong, counts, and yields often, so that whoever
 * runs it can let others work. It never throws for what it finds: a part that cannot be read is
 * told and passed over. It ends on any input: every object is entered once.
 */

import type { Views } from "../../memory/views.ts";
import type { AnyCodec } from "../../stores/kind.ts";

export type Check<Figures> = Generator<void, Figures>;

/** What those above know about the rows of a structure. */
export interface CheckedRows<Row> {
  readonly codec: AnyCodec<Row, unknown>;
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

/** Where a check looks just now, told only if something is wrong there. */
export interface Place {
  toString(): string;
}

/**
 * What checks have found wrong: plain sentences, each with the structure, the place in it and what
 * is wrong there. A store that is damaged all over gives millions of them, so only the first ones
 * are kept, and all are counted.
 */
export class Problems {
  readonly list: string[] = [];
  count = 0;
  readonly #most: number;
  /** What is being checked: every sentence begins with it. */
  readonly #subject: string;
  readonly #parent: Problems | undefined;

  constructor(most: number, subject: string, parent?: Problems) {
    this.#most = most;
    this.#subject = subject;
    this.#parent = parent;
  }

  /** Those of a part, which count for the whole, too. */
  of(subject: string): Problems {
    return new Problems(this.#most, subject, this);
  }

  add(place: Place | undefined, what: string): void {
    const where = place === undefined ? this.#subject : `${this.#subject}: ${place}`;
    this.#keep(() => `${where}: ${what}`);
  }

  /** Adds all that another one has. */
  takeOver(other: Problems): void {
    this.count += other.count - other.list.length;
    for (const sentence of other.list) this.#keep(() => sentence);
  }

  #keep(sentence: () => string): void {
    this.count++;
    if (this.list.length < this.#most) this.list.push(sentence());
    if (this.#parent !== undefined) this.#parent.#keep(sentence);
  }
}
