/**
 * The order of records that write the same rows. Whoever locks a row at its primary after T has been unlocked
 * there sends its record after T's was acknowledged by all backups: so at each of them the records of one row
 * arrive in the order of the primary, and must be applied in it. Records of different rows may be applied in
 * any order: one that nobody decides about holds up nobody but those that write its own rows.
 */

/** A record in the order. */
export class Ordered {
  /** Numbers of the rows that it writes; two rows that share one are taken for the same. */
  rows: readonly number[];
  /** Earlier ones, not done yet, that write one of its rows. */
  waits = 0;
  followers: Ordered[] | undefined;

  constructor(rows: readonly number[]) {
    this.rows = rows;
  }
}

const NOBODY: readonly never[] = [];

export class RowOrder<T extends Ordered> {
  /** For each row, the last one that writes it and is not done. */
  readonly #last = new Map<number, T>();

  /** Puts one behind all that came before it. */
  add(record: T): void {
    this.#queue(record, record.rows);
  }

  /** One that is in the order writes more rows than it was known to. */
  addRows(record: T, rows: readonly number[]): void {
    record.rows = [...record.rows, ...rows];
    this.#queue(record, rows);
  }

  #queue(record: T, rows: readonly number[]): void {
    for (const row of rows) {
      const before = this.#last.get(row);
      this.#last.set(row, record);
      if (before === undefined || before === record) continue;
      before.followers ??= [];
      before.followers.push(record);
      record.waits++;
    }
  }

  /** One that waits for nobody is done. Those that now wait for nobody either. */
  done(record: T): readonly T[] {
    for (const row of record.rows) if (this.#last.get(row) === record) this.#last.delete(row);
    const followers = record.followers as T[] | undefined;
    record.followers = undefined;
    if (followers === undefined) return NOBODY;
    return followers.filter((next) => --next.waits === 0);
  }
}
