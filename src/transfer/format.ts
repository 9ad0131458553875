/** What a format of dumped rows is: text in lines, which may be broken up for CSV only within quotes. */

import type { FieldText } from "./value-text.ts";

export interface Format {
  /** Of the files in a dumped folder. */
  readonly extension: string;
  writer(fields: readonly FieldText[]): RowWriter;
  reader(fields: readonly FieldText[]): RowReader;
}

export interface RowWriter {
  /** What comes before the first row. */
  readonly head: string;
  line(row: object): string;
}

/** Reads rows from pieces of a text. */
export interface RowReader {
  /** Reads what comes before the first row; returns where that begins, or -1 if there is not enough text. */
  readHead(text: string, isLast: boolean): number;
  /** Where the row that begins at `from` ends; -1 if that is in the next piece. */
  next(text: string, from: number, isLast: boolean): number;
  /** The row there; undefined for an empty line. Throws what is wrong with it. */
  row(text: string, from: number, end: number): object | undefined;
}
