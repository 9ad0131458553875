/**
 * A table on the device as a store: rows are found through the map, in the delta or on a page of the file
 * (hidden-tables.ts). All writes go to the delta.
 *
 * Pages do not change while a place can lead to them, so reading one needs no validation: the transaction depends
 * on the map's row, or a snapshot sees the map as it was and keeps the page from being used again.
 */

import { MAX_PAGE_ROW_WORDS, rowIn } from "../../device/page.ts";
import { runReadOnly } from "../../engine/run.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { Transaction as EngineTransaction } from "../../engine/transaction.ts";
import type { Views } from "../../memory/views.ts";
import { DEVICE_DELTA_FACTOR } from "../../runtime/limits.ts";
import type { AnyCodec } from "../../stores/kind.ts";
import type { Cursor, KeyRange, RowCapture, RowStore } from "../../stores/store.ts";
import { ownKey } from "../copied-key.ts";
import { DeviceCursor } from "./device-cursor.ts";
import type { DeviceTable } from "./device-table.ts";
import { DELTA_KIND, type DevicePlace, IN_DELTA, slotIn, wordsIn } from "./hidden-tables.ts";

export class DeviceStore<Row, Key> implements RowStore<Row, Key> {
  readonly #shared: DeviceTable;
  readonly #codec: AnyCodec<Row, Key>;
  readonly #delta: RowStore<Row, Key>;
  readonly #inDelta: Record<string, number>;
  #reader: EngineTransaction | undefined;

  constructor(shared: DeviceTable, codec: AnyCodec<Row, Key>) {
    this.#shared = shared;
    this.#codec = codec;
    this.#delta = DELTA_KIND.open(shared.executor, codec, shared.root.delta);
    const { page, generation, where } = IN_DELTA;
    this.#inDelta = shared.placeRow(page, generation, where);
  }

  /**
   * The place first, then what it leads to. A page of the place's generation holds the row that was the newest
   * one when the place was read, whatever has happened since. For all else there is a transaction.
   */
  get(key: Key): Row | undefined {
    const place = this.#shared.map.get(key);
    if (place === undefined) return undefined;
    if (place.where !== 0) {
      const { file } = this.#shared;
      const { page, generation, where } = place;
      if (wordsIn(where) <= MAX_PAGE_ROW_WORDS && file.isHere(page, generation)) {
        return this.#decode(undefined, page, generation, where);
      }
    } else {
      const row = this.#delta.get(key);
      if (row !== undefined) return row;
    }
    this.#reader ??= new EngineTransaction(this.#shared.executor);
    const own = ownKey(key) as Key;
    return runReadOnly(this.#shared.executor, this.#reader, (tx) => this.read(tx, own), undefined);
  }

  read(tx: Transaction, key: Key): Row | undefined {
    const place = this.#shared.map.read(tx, key);
    if (place === undefined) return undefined;
    if (place.where === 0) return this.#delta.read(tx, key) ?? tx.conflict(-1);
    return this.#decode(tx, place.page, place.generation, place.where);
  }

  /** For cursors: the row that an entry of the map leads to; undefined if the transaction has removed it. */
  rowOf(tx: Transaction, key: Key, { page, generation, where }: DevicePlace): Row | undefined {
    if (where === 0) return this.#delta.read(tx, key) ?? this.read(tx, key);
    return this.#decode(tx, page, generation, where);
  }

  touch(tx: Transaction, key: Key): void {
    const { device, map, file } = this.#shared;
    if (!device.isCuttable(tx)) {
      map.touch(tx, key);
      return;
    }
    // All pages of several keys are read at the same time.
    const place = map.read(tx, key);
    if (place === undefined || place.where === 0) return;
    if (wordsIn(place.where) > MAX_PAGE_ROW_WORDS) return;
    device.want(tx, file, place.page, place.generation);
  }

  has(tx: Transaction, key: Key): boolean {
    return this.#shared.map.has(tx, key);
  }

  insert(tx: Transaction, row: Row): boolean {
    return this.insertEncoded(tx, this.#codec.encode(row));
  }

  put(tx: Transaction, row: Row): void {
    this.putEncoded(tx, this.#codec.encode(row));
  }

  insertEncoded(tx: Transaction, words: number): boolean {
    const fields = this.#shared.keyFieldsAt(this.#codec.scratch, 0, words);
    if (this.#shared.map.has(tx, this.#shared.keyIn(fields))) return false;
    this.#add(tx, fields, words);
    return true;
  }

  putEncoded(tx: Transaction, words: number): void {
    const shared = this.#shared;
    const fields = shared.keyFieldsAt(this.#codec.scratch, 0, words);
    const key = shared.keyIn(fields);
    const place = shared.map.read(tx, key);
    if (place === undefined) this.#add(tx, fields, words);
    else this.#replace(tx, key, place.where, words);
  }

  update(tx: Transaction, given: Key, changes: Partial<Row>, capture?: RowCapture): boolean {
    const taken = this.#codec.takeChanges(changes);
    const key = ownKey(given) as Key;
    const place = this.#shared.map.read(tx, key);
    if (place === undefined) return false;
    const { page, generation, where } = place;
    if (where === 0) {
      if (!this.#delta.update(tx, key, taken, capture)) tx.conflict(-1);
      return true;
    }
    const at = this.#locate(tx, page, generation, where);
    const before = this.#codec.decodeToMerge(this.#views, at, wordsIn(where));
    const words = this.#codec.encode(this.#codec.merge(before, taken));
    capture?.take(this.#codec.scratch, 0, words);
    this.#replace(tx, key, where, words);
    return true;
  }

  remove(tx: Transaction, given: Key): boolean {
    const shared = this.#shared;
    const key = ownKey(given) as Key;
    const place = shared.map.read(tx, key);
    if (place === undefined) return false;
    try {
      if (place.where === 0 && !this.#delta.remove(tx, key)) tx.conflict(-1);
      shared.map.remove(tx, key);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  cursor(range: KeyRange, reverse: boolean): Cursor<Row> {
    return new DeviceCursor(this.#shared, this, range, reverse);
  }

  maintain(): void {
    const shared = this.#shared;
    shared.map.maintain();
    this.#delta.maintain();
    const { deltaBytes } = shared.device;
    if (shared.writtenBytes < deltaBytes) return;
    // Whoever writes faster than the background moves does some of that himself.
    if (shared.writtenBytes >= DEVICE_DELTA_FACTOR * deltaBytes) shared.relieve();
    else shared.device.onPressure();
  }

  /** A new row, encoded, to the delta; then its place, as that is encoded where the row was. */
  #add(tx: Transaction, fields: Record<string, unknown>, words: number): void {
    try {
      this.#delta.putEncoded(tx, words);
      this.#shared.entries.insert(tx, { ...fields, ...this.#inDelta });
    } catch (error) {
      tx.failHalfWay(error);
    }
    this.#shared.writtenBytes += words * 4;
  }

  #replace(tx: Transaction, key: unknown, where: number, words: number): void {
    try {
      this.#delta.putEncoded(tx, words);
      if (where !== 0) this.#shared.entries.update(tx, key, this.#inDelta);
    } catch (error) {
      tx.failHalfWay(error);
    }
    this.#shared.writtenBytes += words * 4;
  }

  #decode(tx: Transaction | undefined, page: number, generation: number, where: number): Row {
    const at = this.#locate(tx, page, generation, where);
    return this.#codec.decode(this.#views, at, wordsIn(where));
  }

  /** Where the row that `#locate` has found lies. */
  #views!: Views;

  #locate(tx: Transaction | undefined, page: number, generation: number, where: number): number {
    const { device, file } = this.#shared;
    const words = wordsIn(where);
    if (words > MAX_PAGE_ROW_WORDS) {
      device.readRun(tx, file, page, generation, words);
      this.#views = device.views;
      return device.at;
    }
    const frame = device.frameOf(tx, file, page, generation);
    const views = device.buffer.viewsOf(frame);
    const at = rowIn(views, device.buffer.atOf(frame), slotIn(where), words);
    if (at < 0)
      throw file.damaged(page, `it has no row of ${words} words in slot ${slotIn(where)}`);
    this.#views = views;
    return at;
  }
}
