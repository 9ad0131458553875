/** What `scan` returns: rows one after the other, in the order of the key or of an index. */

/**
 * The rows of a scan. Rows are read in batches while you iterate: a row that the transaction changes
 * meanwhile may still be returned as it was, and one that it moves ahead in the order may be returned
 * again. Call `toArray` first if you want to change what was found.
 *
 * `for…of` blocks the event loop until its end; `for await` lets it turn after every few milliseconds
 * of work. Each iteration scans anew.
 */
export interface Scan<Row> extends Iterable<Row>, AsyncIterable<Row> {
  [Symbol.iterator](): IterableIterator<Row>;
  [Symbol.asyncIterator](): AsyncIterableIterator<Row>;
  /** All rows at once. */
  toArray(): Row[];
}

/** The rows of a scan inside `transact` or `begin`, or of a remote database: for `for await`. */
export interface AsyncScan<Row> extends AsyncIterable<Row> {
  [Symbol.asyncIterator](): AsyncIterableIterator<Row>;
  /** All rows at once. */
  toArray(): Promise<Row[]>;
}
