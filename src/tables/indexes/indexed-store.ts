/**
 * A store whose rows have indexes: every change goes to the rows and to all of the indexes, in the
 * same transaction; and to the table's successor, if it is being migrated. What can be refused is refused before anything is changed, so that a body may
 * catch the error and go on.
 *
 * A row of the caller's is read once, by `encode`. What the indexes get to see is decoded from the
 * words that the row is stored as, so rows and entries agree whatever the row's getters say. The
 * encoded row stays in the scratch area meanwhile: checks only stage keys and read.
 *
 * Where the entries of all indexes are copies of some fields, an insert copies their words and decodes nothing.
 */

import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import { Views } from "../../memory/views.ts";
import type {
  Cursor,
  KeyRange,
  RowCapture,
  RowCodec,
  RowStore,
  Store,
} from "../../stores/store.ts";
import { layoutOf } from "../codec/layout.ts";
import { ownKey } from "../copied-key.ts";
import { IGNORED, type RowMode } from "../migrations/row-mode.ts";
import type { Successor } from "../migrations/successor.ts";
import type { Table } from "../table.ts";
import { type Index, keyIn, notUnique, sameValue, sameValues } from "./entries.ts";
import type { RowValues, Structure } from "./structure.ts";

export class IndexedStore implements RowStore<RowValues, unknown> {
  readonly #table: Table;
  readonly #codec: RowCodec<RowValues, unknown>;
  readonly #rows: RowStore<RowValues, unknown>;
  readonly #indexes: readonly Index[];
  readonly #successor: Successor | undefined;
  /** The fields that some index is on. */
  readonly #indexed: ReadonlySet<string>;
  /** Decodes these fields and the key, all that indexes need to know; a successor needs the row. */
  readonly #part: RowCodec<RowValues, unknown>;
  /** The rows, of which only that is read. Opened when it is needed: most changes need not look. */
  #opened: Store<RowValues, unknown> | undefined;
  readonly #openParts: () => Store<RowValues, unknown>;
  /** Whether a row may have to be refused before anything is changed. */
  readonly #mayRefuse: boolean;
  /** The fields of a row that is being inserted, while the scratch area is used for entries; if that will do. */
  readonly #fields: Views | undefined;

  constructor(
    executor: Executor,
    structure: Structure<RowValues, unknown>,
    root: Address,
    rows: RowStore<RowValues, unknown>,
    indexes: readonly Index[],
    successor?: Successor,
  ) {
    this.#successor = successor;
    this.#table = structure.table;
    this.#codec = structure.codec;
    this.#rows = rows;
    this.#indexes = indexes;
    this.#indexed = new Set(indexes.flatMap(({ definition }) => definition.on));
    const { key, fields } = this.#table;
    const needed = successor === undefined ? [...key, ...this.#indexed] : Object.keys(fields);
    this.#part = structure.partCodec([...new Set(needed)]);
    this.#mayRefuse = successor !== undefined || indexes.some(({ mayRefuse }) => mayRefuse);
    const isCopied = !this.#mayRefuse && indexes.every((each) => each.addEncoded !== undefined);
    const { fixedBytes } = layoutOf(this.#table);
    this.#fields = isCopied ? new Views(new ArrayBuffer(fixedBytes)) : undefined;
    this.#openParts = () => structure.openWith(executor, root, this.#part);
  }

  get #parts(): Store<RowValues, unknown> {
    this.#opened ??= this.#openParts();
    return this.#opened;
  }

  get(key: unknown): RowValues | undefined {
    return this.#rows.get(key);
  }

  read(tx: Transaction, key: unknown): RowValues | undefined {
    return this.#rows.read(tx, key);
  }

  touch(tx: Transaction, key: unknown): void {
    this.#rows.touch(tx, key);
  }

  has(tx: Transaction, key: unknown): boolean {
    return this.#rows.has(tx, key);
  }

  cursor(range: KeyRange, reverse: boolean): Cursor<RowValues> {
    return this.#rows.cursor(range, reverse);
  }

  insert(tx: Transaction, given: RowValues): boolean {
    return this.insertEncoded(tx, this.#codec.encode(given));
  }

  put(tx: Transaction, given: RowValues): void {
    this.putEncoded(tx, this.#codec.encode(given));
  }

  insertEncoded(tx: Transaction, words: number): boolean {
    if (this.#fields !== undefined) return this.#insertCopied(tx, words, this.#fields);
    const row = this.#part.decode(this.#codec.scratch, 0, words);
    if (this.#mayRefuse) {
      if (this.#rows.has(tx, this.#keyOf(row))) return false;
      this.#check(tx, undefined, row);
    }
    if (!this.#rows.insertEncoded(tx, words)) return false;
    this.#follow(tx, undefined, row);
    return true;
  }

  #insertCopied(tx: Transaction, words: number, fields: Views): boolean {
    const to = fields.i32;
    const from = this.#codec.scratch.i32;
    for (let i = 0; i < to.length; i++) to[i] = from[i];
    if (!this.#rows.insertEncoded(tx, words)) return false;
    const indexes = this.#indexes;
    try {
      for (let i = 0; i < indexes.length; i++) {
        if (indexes[i].state !== "announced") indexes[i].addEncoded!(tx, fields);
      }
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  putEncoded(tx: Transaction, words: number): void {
    const row = this.#part.decode(this.#codec.scratch, 0, words);
    const before = this.#parts.read(tx, this.#keyOf(row));
    this.#check(tx, before, row);
    this.#rows.putEncoded(tx, words);
    this.#follow(tx, before, row);
  }

  update(
    tx: Transaction,
    givenKey: unknown,
    given: Partial<RowValues>,
    capture?: RowCapture,
  ): boolean {
    const changes = this.#codec.takeChanges(given);
    const key = ownKey(givenKey);
    const isPatch = this.#successor === undefined || !this.#successor.needsRow(changes);
    if (isPatch && !this.#concernsIndexes(changes)) {
      const mode = this.#successor === undefined ? IGNORED : this.#successor.modeOf(key);
      const found = this.#rows.update(tx, key, changes, capture);
      if (found && mode !== IGNORED) this.#patch(tx, key, changes, mode);
      return found;
    }
    const before = this.#parts.read(tx, key);
    if (before === undefined) return false;
    const after = { ...before, ...changes };
    this.#check(tx, before, after);
    if (!this.#rows.update(tx, key, changes, capture)) return false;
    this.#follow(tx, before, after, isPatch ? changes : undefined);
    return true;
  }

  remove(tx: Transaction, givenKey: unknown): boolean {
    const key = ownKey(givenKey);
    const before = this.#parts.read(tx, key);
    if (before === undefined || !this.#rows.remove(tx, key)) return false;
    this.#follow(tx, before, undefined);
    return true;
  }

  maintain(): void {
    this.#rows.maintain();
    for (let i = 0; i < this.#indexes.length; i++) this.#indexes[i].maintain();
    this.#successor?.maintain();
  }

  #keyOf(row: RowValues): unknown {
    return keyIn(row, this.#table.key, this.#table.singleKey);
  }

  #concernsIndexes(changes: Partial<RowValues>): boolean {
    for (const name in changes) if (this.#indexed.has(name)) return true;
    return false;
  }

  /** Whether all indexes can take the row. */
  #check(tx: Transaction, before: RowValues | undefined, after: RowValues): void {
    if (!this.#mayRefuse) return;
    for (const index of this.#indexes) {
      if (index.state === "announced" || isSame(index, before, after)) continue;
      index.check(after);
      // Of an index that is being dropped, some maintain no entries any more.
      if (index.state !== "retired") refuseTaken(tx, this.#table, index, after);
    }
    this.#successor?.check(tx, before, after);
  }

  /** Brings the indexes and the successor from one row to the other, or ends the transaction. */
  #follow(
    tx: Transaction,
    before: RowValues | undefined,
    after: RowValues | undefined,
    patch?: Partial<RowValues>,
  ): void {
    try {
      for (const index of this.#indexes) {
        if (isSame(index, before, after)) continue;
        if (before !== undefined) index.remove(tx, before);
        if (after !== undefined && index.state !== "announced") index.add(tx, after);
      }
      if (this.#successor === undefined) return;
      if (patch === undefined) {
        this.#successor.follow(tx, before, after);
        return;
      }
      const key = this.#keyOf(before!);
      const mode = this.#successor.modeOf(key);
      if (mode !== IGNORED) this.#successor.patch(tx, key, patch, mode);
    } catch (error) {
      tx.failHalfWay(error);
    }
  }

  /** The same for changes that concern no index. */
  #patch(tx: Transaction, key: unknown, changes: Partial<RowValues>, mode: RowMode): void {
    try {
      this.#successor!.patch(tx, key, changes, mode);
    } catch (error) {
      tx.failHalfWay(error);
    }
  }
}

function isSame(
  { definition }: Index,
  before: RowValues | undefined,
  after: RowValues | undefined,
) {
  return before !== undefined && after !== undefined && sameValues(before, after, definition.on);
}

/** Fails if another row has the values of this one in a unique index. */
export function refuseTaken(tx: Transaction, table: Table, index: Index, row: RowValues): void {
  const holder = index.holderOf(tx, row);
  if (holder === undefined) return;
  const key = keyIn(row, table.key, table.singleKey);
  const isOwn = table.singleKey
    ? sameValue(holder, key)
    : (holder as unknown[]).every((part, i) => sameValue(part, (key as unknown[])[i]));
  if (!isOwn) throw notUnique(table, index.definition, row, holder);
}
