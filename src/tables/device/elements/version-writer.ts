/**
 * Writes the new versions of an update to pages that nothing leads to yet (§4.1.2 of the paper: reserved pages, more
 * on request, unused ones given back). Pages are reserved under the keeper's role, and written without it: nobody
 * else takes or frees them while the update is announced (device-jobs.ts). What is written is synced in the
 * background, so that little is left to wait for in the end (the unloader, §7.1).
 */

import { PAGE_BYTES, PagePacker } from "../../../device/page.ts";
import { Transaction } from "../../../engine/transaction.ts";
import { sleep } from "../../../runtime/clock.ts";
import { SituError } from "../../../runtime/errors.ts";
import {
  DEVICE_RESERVE_PAGES,
  DEVICE_SYNC_BYTES,
  DEVICE_WRITE_PAGES,
} from "../../../runtime/limits.ts";
import type { DeviceTable } from "../device-table.ts";
import { whereOf } from "../hidden-tables.ts";
import { asKeeper, NOT_KEEPER } from "../keeper-role.ts";
import { addFreePages, takeFreePages } from "../page-writer.ts";
import { CHANGED, type ChangeMap } from "./change-map.ts";
import type { GatheredPlace } from "./page-walk.ts";

/** How long to wait for one who has the keeper's role. */
const ROLE_MS = 1;

interface Packed {
  readonly old: GatheredPlace;
  readonly page: number;
  readonly where: number;
}

export class VersionWriter {
  /** Pages that were written. */
  written = 0;
  readonly #table: DeviceTable;
  readonly #map: ChangeMap;
  readonly #check: () => void;
  readonly #tx: Transaction;
  readonly #packer = new PagePacker(DEVICE_WRITE_PAGES);
  #packed: Packed[] = [];
  /** Rows that found no room, to be packed after the next write. */
  #waiting: { readonly old: GatheredPlace; readonly row: Int32Array }[] = [];
  /** Numbers of pages that are reserved and not written. */
  #reserved: number[] = [];
  readonly #used: number[] = [];
  #unsynced = 0;
  #syncing: Promise<void> | undefined;
  #failure: unknown;

  /** `check` throws when the update is to end. */
  constructor(table: DeviceTable, map: ChangeMap, check: () => void) {
    this.#table = table;
    this.#map = map;
    this.#check = check;
    this.#tx = new Transaction(table.executor);
    this.#tx.subject = `the pages of table ${table.table.name}`;
  }

  /** Takes a new version; the words are copied. */
  add({ page, generation, where }: GatheredPlace, row: Int32Array): void {
    const old = { page, generation, where };
    this.#map.add(old, CHANGED);
    if (this.#waiting.length > 0 || !this.#pack(old, row)) {
      this.#waiting.push({ old, row: row.slice() });
    }
  }

  #pack(old: GatheredPlace, row: Int32Array): boolean {
    const at = this.#packer.add(row);
    if (at === undefined) return false;
    this.#packed.push({ old, page: at.page, where: whereOf(row.length, at.slot) });
    return true;
  }

  /** Writes full batches. */
  async work(): Promise<void> {
    while (this.#waiting.length > 0) {
      await this.#write();
      const waiting = this.#waiting;
      let taken = 0;
      while (taken < waiting.length && this.#pack(waiting[taken].old, waiting[taken].row)) taken++;
      this.#waiting = waiting.slice(taken);
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Returns when all versions are on disk. */
  async finish(): Promise<void> {
    await this.work();
    await this.#write();
    await this.#syncing;
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#unsynced > 0) await this.#table.file.syncLater();
    this.#unsynced = 0;
  }

  async #write(): Promise<void> {
    const packer = this.#packer;
    if (packer.pages === 0) return;
    const numbers = await this.#reserve(packer.pages);
    const { file, executor } = this.#table;
    const epoch = executor.mark();
    for (let from = 0; from < numbers.length; ) {
      let to = from + 1;
      while (to < numbers.length && numbers[to] === numbers[to - 1] + 1) to++;
      for (let page = from; page < to; page++) packer.finish(page, numbers[page], epoch, file.id);
      file.write(packer.bytes.subarray(from * PAGE_BYTES, to * PAGE_BYTES), numbers[from]);
      from = to;
    }
    const map = this.#map;
    for (const { old, page, where } of this.#packed) {
      const at = map.find(old);
      map.pages[at] = numbers[page];
      map.newGenerations[at] = epoch | 0;
      map.wheres[at] = where;
    }
    this.written += numbers.length;
    this.#unsynced += numbers.length * PAGE_BYTES;
    this.#packed = [];
    packer.clear();
    if (this.#unsynced >= DEVICE_SYNC_BYTES) this.#syncSome();
  }

  #syncSome(): void {
    if (this.#syncing !== undefined) return;
    this.#unsynced = 0;
    this.#syncing = this.#table.file
      .syncLater()
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => {
        this.#syncing = undefined;
      });
  }

  /** Numbers of pages that are this update's. */
  async #reserve(count: number): Promise<number[]> {
    if (this.#reserved.length < count) {
      await this.#asKeeper(() => {
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

  /** Gives back pages that were not written, or if the update changes nothing, all of them. */
  async end(isApplied: boolean): Promise<void> {
    await this.#syncing;
    const pages = isApplied ? this.#reserved : [...this.#reserved, ...this.#used];
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
