/**
 * A store whose changes are recorded (engine/changes.ts), each in the transaction that makes it. It wraps
 * the store of a table that is watched; the others have no such wrapper, and pay nothing.
 *
 * Each operation that changes a row is one change, in the order of the operations: a transaction that
 * updates a row twice has two. An operation that changes nothing (an insert of a key that is there, a delete
 * of one that is not) has none, also if the caller goes on after its error: the change is added
 * when all else has succeeded. A failure half-way ends the transaction, and its changes with it.
 */

import {
  CHANGE_DELETE,
  CHANGE_INSERT,
  CHANGE_UPDATE,
  type ChangeList,
} from "../../engine/changes.ts";
import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import type { Views } from "../../memory/views.ts";
import type { Cursor, KeyRange, RowCodec, RowStore, Store } from "../../stores/store.ts";
import { ownKey } from "../copied-key.ts";
import { keyIn } from "../indexes/entries.ts";
import type { RowValues, Structure } from "../indexes/structure.ts";
import { schemaOf } from "../schema.ts";
import { rawCodec } from "../served/raw-codec.ts";
import type { Table } from "../table.ts";
import { formatId } from "./format.ts";

/** Where the row goes that is read before it is deleted. */
class TakenRow {
  changes: ChangeList | undefined;

  /** A row that is read again, for it changed meanwhile, takes the place of its first copy. */
  take(views: Views, at: number, words: number): true {
    this.changes!.take(views, at, words);
    return true;
  }
}

export class RecordingStore implements Store<RowValues, unknown> {
  readonly #table: Table;
  readonly #position: number;
  readonly #format: number;
  readonly #codec: RowCodec<RowValues, unknown>;
  readonly #inner: RowStore<RowValues, unknown>;
  readonly #taken = new TakenRow();
  /** The rows, of which only the words are read. */
  readonly #raw: Store<true, unknown>;
  /** Decodes the fields of the key. */
  readonly #keyPart: RowCodec<RowValues, unknown>;

  constructor(
    executor: Executor,
    structure: Structure<RowValues, unknown>,
    root: Address,
    position: number,
    inner: RowStore<RowValues, unknown>,
  ) {
    this.#table = structure.table;
    this.#position = position;
    this.#format = formatId(schemaOf(structure.table));
    this.#codec = structure.codec;
    this.#inner = inner;
    const raw = rawCodec<unknown, true>(structure.codec as never, this.#taken);
    this.#raw = structure.openWith(executor, root, raw);
    this.#keyPart = structure.partCodec(structure.table.key);
  }

  get(key: unknown): RowValues | undefined {
    return this.#inner.get(key);
  }

  read(tx: Transaction, key: unknown): RowValues | undefined {
    return this.#inner.read(tx, key);
  }

  touch(tx: Transaction, key: unknown): void {
    this.#inner.touch(tx, key);
  }

  has(tx: Transaction, key: unknown): boolean {
    return this.#inner.has(tx, key);
  }

  cursor(range: KeyRange, reverse: boolean): Cursor<RowValues> {
    return this.#inner.cursor(range, reverse);
  }

  insert(tx: Transaction, given: RowValues): boolean {
    const words = this.#codec.encode(given);
    this.#take(tx, words);
    if (!this.#inner.insertEncoded(tx, words)) return false;
    tx.set.changes.add(this.#position, CHANGE_INSERT, this.#format);
    return true;
  }

  put(tx: Transaction, given: RowValues): void {
    const words = this.#codec.encode(given);
    this.#take(tx, words);
    const { key, singleKey } = this.#table;
    const row = this.#keyPart.decode(this.#codec.scratch, 0, words);
    const isThere = this.#inner.has(tx, keyIn(row, key, singleKey));
    this.#inner.putEncoded(tx, words);
    tx.set.changes.add(this.#position, isThere ? CHANGE_UPDATE : CHANGE_INSERT, this.#format);
  }

  update(tx: Transaction, key: unknown, changes: Partial<RowValues>): boolean {
    const recorded = tx.set.changes;
    if (!this.#inner.update(tx, key, changes, recorded)) return false;
    recorded.add(this.#position, CHANGE_UPDATE, this.#format);
    return true;
  }

  remove(tx: Transaction, givenKey: unknown): boolean {
    const key = ownKey(givenKey);
    const { changes } = tx.set;
    this.#taken.changes = changes;
    if (this.#raw.read(tx, key) === undefined || !this.#inner.remove(tx, key)) return false;
    changes.add(this.#position, CHANGE_DELETE, this.#format);
    return true;
  }

  maintain(): void {
    this.#inner.maintain();
  }

  /** Takes the encoded row before indexes are followed, whose entries are encoded in its place. */
  #take(tx: Transaction, words: number): void {
    tx.set.changes.take(this.#codec.scratch, 0, words);
  }
}
