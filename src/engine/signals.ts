/**
 * What unwinds a transaction body when it cannot go on: thrown through the caller's code and
 * caught by the retry loop. They never reach the caller, and are made once: a stack trace would
 * cost more than the transaction.
 */

class Signal {
  readonly what: string;

  constructor(what: string) {
    this.what = what;
  }
}

/** Another transaction got in between; try again. */
export const CONFLICT = new Signal("situ: conflict, will be retried; do not catch this");
/** No memory left in this attempt; give back what can be given back, then try again. */
export const EXHAUSTED = new Signal("situ: memory exhausted, will be reclaimed; do not catch this");

/** A page that an operation needs is being read: the operation is repeated, not the transaction. */
export const PAGE_MISS = new Signal("situ: a page is being read; do not catch this");

export function isSignal(error: unknown): boolean {
  return error instanceof Signal;
}
