/**
 * Writes the new versions of an update to pages that nothing leads to yet (§4.1.2 of the paper: reserved pages, more
 * on request, unused ones given back). Pages are reserved under the keeper's role, and written without it: nobody
 * else takes or frees them while the update is announced (device-jobs.ts).
 *
 * There are two buffers: while one is filled, the other one is being written (the unloader, §7.1). What was written is
 * synced in the background, so that little is left to wait for in the end. Projections of the table get what is
 * written at once, and need not read it.
 */

import { PAGE_BYTES, PAGE_WORDS, PagePacker } from "../../../device/page.ts";
import { Transaction } from "../../../engine/transaction.ts";
import type { Views } from "../../../memory/views.ts";
import { sleep } from "../../../runtime/clock.ts";
import { SituError } from "../../../runtime/errors.ts";
import {
  DEVICE_PACK_PAGES,
  DEVICE_RESERVE_PAGES,
  DEVICE_SYNC_BYTES,
  DEVICE_WRITE_PAGES,
} from "../../../runtime/limits.ts";
import type { DeviceTable } from "../device-table.ts";
import { whereOf } from "../hidden-tables.ts";
import { asKeeper, NOT_KEEPER } from "../keeper-role.ts";
import { addFreePages, takeFreePages } from "../page-writer.ts";
import type { ChangeMap } from "./change-map.ts";
import type { Projection } from "./projection.ts";

/** How long to wait for one who has the keeper's role. */
const ROLE_MS = 1;
/** How often one who waits for the disk looks whether the update is to end. */
const STOP_LOOK_MS = 5;

/** Pages that are being filled, and of their rows, which version of the change map each replaces. */
class PackedPages {
  readonly packer = new PagePacker(DEVICE_PACK_PAGES);
  numbers = new Uint32Array(1_024);
  pages = new Uint16Array(1_024);
  wheres = new Uint32Array(1_024);
  rows = 0;
  /** The write that is under way. */
  written: Promise<void> = Promise.resolve();

  /** Makes room for a version; the word of the packer's views, or -1. */
  reserve(number: number, words: number): number {
    const { packer } = this;
    const at = packer.reserve(words);
    if (at < 0) return at;
    if (this.rows === this.numbers.length) this.#grow();
    const row = this.rows++;
    this.numbers[row] = number;
    this.pages[row] = packer.pages - 1;
    this.wheres[row] = whereOf(words, packer.slot);
    return at;
  }

  #grow(): void {
    const { numbers, pages, wheres } = this;
    const length = numbers.length * 2;
    this.numbers = new Uint32Array(length);
    this.pages = new Uint16Array(length);
    this.wheres = new Uint32Array(length);
    this.numbers.set(numbers);
    this.pages.set(pages);
    this.wheres.set(wheres);
  }

  clear(): void {
    this.packer.clear();
    this.rows = 0;
  }
}

export class VersionWriter {
  /** Pages that were written. */
  written = 0;
  readonly #table: DeviceTable;
  readonly #map: ChangeMap;
  readonly #check: () => void;
  readonly #projections: readonly Projection[];
  readonly #tx: Transaction;
  #packed = new PackedPages();
  #other = new PackedPages();
  /** Rows that found no room, to be packed after the next write. */
  #waiting: { readonly number: number; readonly row: Int32Array }[] = [];
  /** Numbers of pages that are reserved and not written. */
  #reserved: number[] = [];
  readonly #used: number[] = [];
  #unsynced = 0;
  #syncing: Promise<void> | undefined;
  #failure: unknown;

  /** `check` throws when the update is to end. */
  constructor(
    table: DeviceTable,
    map: ChangeMap,
    check: () => void,
    projections: readonly Projection[],
  ) {
    this.#table = table;
    this.#map = map;
    this.#check = check;
    this.#projections = projections;
    this.#tx = new Transaction(table.executor);
    this.#tx.subject = `the pages of table ${table.table.name}`;
  }

  /**
   * Makes room for the new version of what has this number in the change map, and says where in `views` it is to be
   * written: -1 if there is no room at the moment, see `addLater`.
   */
  reserve(number: number, words: number): number {
    return this.#waiting.length > 0 ? -1 : this.#packed.reserve(number, words);
  }

  get views(): Views {
    return this.#packed.packer.views;
  }

  /** Takes a version for which there was no room; the words are copied. */
  addLater(number: number, row: Int32Array): void {
    this.#waiting.push({ number, row: row.slice() });
  }

  /** Writes what has filled a buffer; undefined if there is nothing to wait for. */
  work(): Promise<void> | undefined {
    if (this.#failure !== undefined) throw this.#failure;
    const isFull = this.#packed.packer.pages >= DEVICE_WRITE_PAGES || this.#waiting.length > 0;
    return isFull ? this.#empty() : undefined;
  }

  async #empty(): Promise<void> {
    do {
      await this.#write();
      const waiting = this.#waiting;
      let taken = 0;
      for (; taken < waiting.length; taken++) {
        const { number, row } = waiting[taken];
        const at = this.#packed.reserve(number, row.length);
        if (at < 0) break;
        this.views.i32.set(row, at);
      }
      this.#waiting = waiting.slice(taken);
    } while (this.#waiting.length > 0);
  }

  /** Returns when all versions are on disk. */
  async finish(): Promise<void> {
    await this.#empty();
    await this.#write();
    await this.#waitFor(this.#other.written);
    if (this.#syncing !== undefined) await this.#waitFor(this.#syncing);
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#unsynced > 0) await this.#waitFor(this.#table.file.syncLater());
    this.#unsynced = 0;
  }

  /** Waits for the disk, unless the update is to end: then nobody waits for the disk but `end`. */
  async #waitFor(disk: Promise<void>): Promise<void> {
    let isDone = false;
    const done = disk.finally(() => {
      isDone = true;
    });
    const quietly = done.catch(() => {});
    while (!isDone) {
      await Promise.race([quietly, sleep(STOP_LOOK_MS)]);
      if (!isDone) this.#check();
    }
    await done;
  }

  /** Begins to write what was packed, and goes on with the other buffer. */
  async #write(): Promise<void> {
    const packed = this.#packed;
    const { packer } = packed;
    if (packer.pages > 0) {
      const numbers = await this.#reserve(packer.pages);
      this.#place(packed, numbers, this.#table.executor.mark());
      packed.written = this.#writePages(packer, numbers).catch((error: unknown) => {
        this.#failure ??= error;
      });
      this.written += numbers.length;
      this.#unsynced += numbers.length * PAGE_BYTES;
    }
    this.#packed = this.#other;
    this.#other = packed;
    await this.#waitFor(this.#packed.written);
    if (this.#failure !== undefined) throw this.#failure;
    this.#packed.clear();
    if (this.#unsynced >= DEVICE_SYNC_BYTES) this.#syncSome();
  }

  /** Completes pages, and notes where the versions on them are. */
  #place(packed: PackedPages, numbers: readonly number[], epoch: number): void {
    const { file } = this.#table;
    const { packer, rows } = packed;
    const generation = epoch | 0;
    for (let page = 0; page < numbers.length; page++) {
      packer.finish(page, numbers[page], epoch, file.id);
      for (const each of this.#projections) {
        each.add(packer.views, page * PAGE_WORDS, numbers[page], generation);
      }
    }
    const { pages, generations, wheres } = this.#map;
    for (let row = 0; row < rows; row++) {
      const number = packed.numbers[row];
      pages[number] = numbers[packed.pages[row]];
      generations[number] = generation;
      wheres[number] = packed.wheres[row];
    }
  }

  async #writePages({ bytes }: PagePacker, numbers: readonly number[]): Promise<void> {
    const { file } = this.#table;
    for (let from = 0; from < numbers.length; ) {
      let to = from + 1;
      while (to < numbers.length && numbers[to] === numbers[to - 1] + 1) to++;
      await file.writeLater(bytes.subarray(from * PAGE_BYTES, to * PAGE_BYTES), numbers[from]);
      from = to;
    }
  }

  #syncSome(): void {
    if (this.#syncing !== undefined) return;
    this.#unsynced = 0;
    this.#syncing = this.#sync()
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => {
        this.#syncing = undefined;
      });
  }

  async #sync(): Promise<void> {
    await this.#other.written;
    await this.#table.file.syncLater();
  }

  /** Numbers of pages that are this update's. */
  async #reserve(count: number): Promise<number[]> {
    if (this.#reserved.length < count) {
      await this.#asKeeper(() => {
        this.#table.file.rebuildIfLost();
        // As many as were used by now: an update that turns out to be small leaves few behind.
        const ahead = Math.min(this.#used.length, DEVICE_RESERVE_PAGES);
        const wanted = Math.max(count, ahead) - this.#reserved.length;
        const more: number[] = [];
        for (let taken = 1; taken > 0 && more.length < wanted; ) {
          const some = takeFreePages(this.#table, this.#tx, (pages) =>
            pages.slice(0, wanted - more.length),
          );
          taken = some.length;
          more.push(...some);
        }
        const missing = wanted - more.length;
        if (missing > 0) {
          const first = this.#table.file.extend(missing);
          for (let i = 0; i < missing; i++) more.push(first + i);
        }
        this.#reserved.push(...more);
      });
    }
    const numbers = this.#reserved.splice(0, count);
    this.#used.push(...numbers);
    return numbers;
  }

  /** Gives back pages that were not written, or if the update has changed nothing for certain, all of them. */
  async end(mayBeApplied: boolean): Promise<void> {
    // Nothing is written to pages that others have by then.
    await Promise.all([this.#packed.written, this.#other.written]);
    await this.#syncing;
    const pages = mayBeApplied ? this.#reserved : [...this.#reserved, ...this.#used];
    this.#reserved = [];
    if (pages.length === 0) return;
    await this.#asKeeper(() => addFreePages(this.#table, this.#tx, pages), false);
  }

  async #asKeeper<T>(work: () => T, mayStop = true): Promise<T> {
    for (;;) {
      const done = asKeeper(this.#table, work);
      if (done !== NOT_KEEPER) return done;
      if (this.#table.isGone()) {
        throw new SituError("SITU_SCHEMA", `table ${this.#table.table.name} was dropped`);
      }
      if (mayStop) this.#check();
      await sleep(ROLE_MS);
    }
  }
}
