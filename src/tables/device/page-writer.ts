/**
 * Writes rows to pages of a device file, in four steps:
 *
 *   1. pages are taken from the free ones, in a transaction, or are the next ones behind the end of the file
 *   2. the rows are written to them, in a generation that no page had before
 *   3. the file is synced
 *   4. the caller gives the rows their places, in transactions
 *
 * Nothing leads to a page before step 4. Who dies before leaves pages that nothing leads to: they are found
 * when the file is looked through for space (collector.ts). Rows that do not fit a page have runs of pages
 * side by side.
 *
 * `write` holds the thread, and is for one who has the keeper's role. `writeLater` has the role for step 1 only, and
 * is for one who has announced a job (elements/device-jobs.ts): meanwhile nobody takes the pages for free ones.
 */

import { MAX_PAGE_ROW_WORDS, PAGE_BYTES, PagePacker, runPages } from "../../device/page.ts";
import { runSync } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { SituError } from "../../runtime/errors.ts";
import { DEFAULT_TIMEOUT_MS, DEVICE_FLUSH_BYTES, DEVICE_FREE_PAGES } from "../../runtime/limits.ts";
import type { DeviceTable } from "./device-table.ts";
import { noteFile, readDeviceRoot, whereOf } from "./hidden-tables.ts";
import { asKeeperSoon, NOT_KEEPER } from "./keeper-role.ts";

const BATCH_PAGES = DEVICE_FLUSH_BYTES / PAGE_BYTES;
const MAX_PAGES = 2 ** 32;

/** Where a row was written. */
export interface WrittenPlace {
  readonly page: number;
  readonly generation: number;
  readonly where: number;
}

export class PageWriter {
  readonly #table: DeviceTable;
  readonly #tx: Transaction;
  readonly #packer = new PagePacker(BATCH_PAGES);
  /** Of `writeLater`, whose pages are being written while others may call `write`. */
  #laterPacker: PagePacker | undefined;

  /** Whether the root says that there is a file. */
  #isMade = false;

  constructor(table: DeviceTable) {
    this.#table = table;
    this.#tx = new Transaction(table.executor);
    this.#tx.subject = `the pages of table ${table.table.name}`;
  }

  /** Writes as many of the rows as one batch takes, the first ones, and returns their places. */
  write(rows: readonly Int32Array[]): WrittenPlace[] {
    this.#makeFile();
    const batch = pack(rows, this.#packer);
    const numbers = this.#pages(batch.packer.pages, batch.isLong);
    const epoch = this.#finish(batch.packer, numbers);
    const { file } = this.#table;
    for (const { from, to } of runsOf(numbers)) file.write(bytesOf(batch, from, to), numbers[from]);
    // Without a log, too: one may begin later, and what it rests on must be there.
    file.sync();
    return this.#written(batch, rows, numbers, epoch);
  }

  /**
   * The same while the event loop turns; one at a time. Undefined if the table is gone, or `isEnding` says that
   * nobody waits for it any more.
   */
  async writeLater(
    rows: readonly Int32Array[],
    isEnding: () => boolean,
  ): Promise<WrittenPlace[] | undefined> {
    this.#laterPacker ??= new PagePacker(BATCH_PAGES);
    const batch = pack(rows, this.#laterPacker);
    const { pages } = batch.packer;
    const numbers = await asKeeperSoon(this.#table, isEnding, () => {
      this.#makeFile();
      return this.#pages(pages, batch.isLong, true);
    });
    if (numbers === NOT_KEEPER) return undefined;
    const epoch = this.#finish(batch.packer, numbers);
    const { file } = this.#table;
    for (const { from, to } of runsOf(numbers)) {
      await file.writeLater(bytesOf(batch, from, to), numbers[from]);
    }
    await file.syncLater();
    return this.#written(batch, rows, numbers, epoch);
  }

  /** Completes pages; returns the epoch in which they are written. */
  #finish(packer: PagePacker, numbers: readonly number[]): number {
    const { executor, file } = this.#table;
    const epoch = executor.mark();
    for (let page = 0; page < numbers.length; page++) {
      packer.finish(page, numbers[page], epoch, file.id);
    }
    return epoch;
  }

  #written(
    { packed }: Batch,
    rows: readonly Int32Array[],
    numbers: readonly number[],
    epoch: number,
  ): WrittenPlace[] {
    this.#table.writtenPages += numbers.length;
    return packed.map(({ page, slot }, i) => ({
      page: numbers[page],
      generation: epoch | 0,
      where: whereOf(rows[i].length, slot),
    }));
  }

  /** When the file is there for certain, the root says so: from then on, one that is missing is lost. */
  #makeFile(): void {
    const { executor, file, address } = this.#table;
    if (this.#isMade) return;
    const isMade = runSync(
      executor,
      this.#tx,
      DEFAULT_TIMEOUT_MS,
      () => readDeviceRoot(this.#tx, address).isMade,
      undefined,
    );
    if (isMade) file.rebuildIfLost();
    this.#isMade = isMade;
    if (isMade) return;
    file.create();
    runSync(
      executor,
      this.#tx,
      DEFAULT_TIMEOUT_MS,
      () => {
        const { entry, isMade: isNoted } = readDeviceRoot(this.#tx, address);
        if (!isNoted) noteFile(this.#tx, entry);
      },
      undefined,
    );
    this.#isMade = true;
  }

  /** Numbers for so many pages. Those behind the end of the file become part of it now, or when they are written. */
  #pages(count: number, isRun: boolean, reserves = false): number[] {
    const taken = isRun ? this.#takeRun(count) : this.#takeFree(count);
    const end = this.#table.file.pages();
    if (end + count > MAX_PAGES) {
      throw new SituError(
        "SITU_FULL",
        `the device file ${this.#table.file.path} has no more pages`,
      );
    }
    const missing = count - taken.length;
    if (reserves && missing > 0) this.#table.file.extend(missing);
    for (let next = end; taken.length < count; next++) taken.push(next);
    return taken;
  }

  #takeFree(count: number): number[] {
    return this.#take((pages) => pages.slice(0, count));
  }

  /** So many free pages side by side, or none. */
  #takeRun(count: number): number[] {
    return this.#take((pages) => {
      for (let from = 0, to = 1; to <= pages.length; to++) {
        if (to - from === count) return pages.slice(from, to);
        if (pages[to] !== pages[to - 1] + 1) from = to;
      }
      return [];
    });
  }

  #take(choose: ChoosePages): number[] {
    return takeFreePages(this.#table, this.#tx, choose);
  }
}

/** Rows that were packed into pages, the first ones of some. */
interface Batch {
  readonly packer: PagePacker;
  readonly packed: readonly { readonly page: number; readonly slot: number }[];
  readonly isLong: boolean;
}

function pack(rows: readonly Int32Array[], usual: PagePacker): Batch {
  const [first] = rows;
  const isLong = first !== undefined && first.length > MAX_PAGE_ROW_WORDS;
  // A row that is longer than a whole batch is one by itself.
  const needed = isLong ? runPages(first.length) : 0;
  const packer = needed > BATCH_PAGES ? new PagePacker(needed) : usual;
  packer.clear();
  const packed: { readonly page: number; readonly slot: number }[] = [];
  for (const row of rows) {
    // Either short rows, whose pages may lie anywhere, or long ones.
    if (row.length > MAX_PAGE_ROW_WORDS !== isLong) break;
    const at = packer.add(row);
    if (at === undefined) break;
    packed.push(at);
  }
  return { packer, packed, isLong };
}

function bytesOf({ packer }: Batch, from: number, to: number): Uint8Array {
  return packer.bytes.subarray(from * PAGE_BYTES, to * PAGE_BYTES);
}

/** Which pages lie side by side in the file, and are written together. */
function* runsOf(
  numbers: readonly number[],
): Generator<{ readonly from: number; readonly to: number }> {
  for (let from = 0; from < numbers.length; ) {
    let to = from + 1;
    while (to < numbers.length && numbers[to] === numbers[to - 1] + 1) to++;
    yield { from, to };
    from = to;
  }
}

export type ChoosePages = (pages: readonly number[]) => readonly number[];

/** Takes some of the first free pages. For the keeper. */
export function takeFreePages(
  { executor, free }: DeviceTable,
  tx: Transaction,
  choose: ChoosePages,
): number[] {
  return runSync(
    executor,
    tx,
    DEFAULT_TIMEOUT_MS,
    () => {
      const found: { page: number }[] = [];
      free.cursor({ from: undefined, to: undefined }, false).next(tx, found, DEVICE_FREE_PAGES);
      const chosen = choose(found.map(({ page }) => page));
      for (const page of chosen) free.remove(tx, page);
      return [...chosen];
    },
    undefined,
  );
}

/** Adds pages to the free ones; says how many were not. For the keeper. */
export function addFreePages(
  { executor, free }: DeviceTable,
  tx: Transaction,
  pages: readonly number[],
): number {
  let added = 0;
  for (let from = 0; from < pages.length; from += DEVICE_FREE_PAGES) {
    const some = pages.slice(from, from + DEVICE_FREE_PAGES);
    const add = (): number => some.filter((page) => free.insert(tx, { page })).length;
    added += runSync(executor, tx, DEFAULT_TIMEOUT_MS, add, undefined);
    free.maintain();
  }
  return added;
}
