/**
 * The pages of a device file: 8 KiB each, found by their number, written once and not changed until
 * their space is used again. Then they have another *generation*, which the place of a row names too,
 * so that a place from before never leads to what came after it. In words of 32 bits:
 *
 *   0   "SDP1"
 *   1   CRC-32 of all that follows
 *   2   the number of the page
 *   3   its generation: the lower 32 bits of the epoch in which it was written
 *   4   the lower 32 bits of the file's id
 *   5   kind (1: rows, 2: a part of a long row) in the upper half; number of slots in the lower half
 *   6   of a part: which one it is
 *   7   of a part: the words of the whole row
 *   8   the upper bits of the epoch; 9 is not used
 *   10… rows one after the other, or the part
 *
 * A page of rows ends with its slots, the first one last: where the row begins (16 bits) and how many
 * words it has (16 bits). A row that does not fit a page lies in a run of pages of its own.
 */

import { Views } from "../memory/views.ts";
import { crc32 } from "../runtime/checksum.ts";
import { DEVICE_PAGE_BYTES } from "../runtime/limits.ts";

export const PAGE_BYTES = DEVICE_PAGE_BYTES;
export const PAGE_WORDS = PAGE_BYTES / 4;

const MAGIC = 0x31504453;
const CHECKSUM = 1;
const NUMBER = 2;
export const GENERATION = 3;
const FILE = 4;
const KIND = 5;
const PART = 6;
const ROW_WORDS = 7;
const EPOCH_HIGH = 8;
export const HEADER_WORDS = 10;
const ROWS = 1;
const RUN = 2;
const CHECKED_FROM = 8;

/** The longest row that shares a page with others: a slot for it, and rows are whole double words. */
export const MAX_PAGE_ROW_WORDS = (PAGE_WORDS - HEADER_WORDS - 1) & ~1;
/** What a page of a run holds. */
export const RUN_WORDS = PAGE_WORDS - HEADER_WORDS;

/** Pages of a row of so many words that has a run of its own. */
export function runPages(rowWords: number): number {
  return Math.ceil(rowWords / RUN_WORDS);
}

/** Fills pages in a buffer of their own, before they are written. */
export class PagePacker {
  readonly bytes: Buffer;
  readonly views: Views;
  readonly #most: number;
  /** Pages that were begun. */
  pages = 0;
  /** The slot of the row that `reserve` has made room for, on the last page. */
  slot = 0;
  #slots = 0;
  #end = HEADER_WORDS;

  constructor(pages: number) {
    this.views = new Views(new ArrayBuffer(pages * PAGE_BYTES));
    this.bytes = this.views.bytes;
    this.#most = pages;
  }

  clear(): void {
    this.views.i32.fill(0, 0, this.pages * PAGE_WORDS);
    this.pages = 0;
  }

  /** Adds a row to the last page or a new one. Its page and slot, or undefined if there is no room. */
  add(row: Int32Array): { readonly page: number; readonly slot: number } | undefined {
    if (row.length > MAX_PAGE_ROW_WORDS) return this.#addRun(row);
    const at = this.reserve(row.length);
    if (at < 0) return undefined;
    this.views.i32.set(row, at);
    return { page: this.pages - 1, slot: this.slot };
  }

  /** Makes room for a row that fits a page: the word of `views` where it is to begin, or -1. */
  reserve(words: number): number {
    const isFull = this.#slots < 0 || this.#end + words + this.#slots + 1 > PAGE_WORDS;
    if (this.pages === 0 || isFull) {
      if (this.pages === this.#most) return -1;
      this.pages++;
      this.#slots = 0;
      this.#end = HEADER_WORDS;
    }
    const { i32 } = this.views;
    const start = (this.pages - 1) * PAGE_WORDS;
    const at = start + this.#end;
    this.slot = this.#slots++;
    i32[start + PAGE_WORDS - 1 - this.slot] = this.#end | (words << 16);
    i32[start + KIND] = (ROWS << 16) | this.#slots;
    this.#end += words;
    return at;
  }

  #addRun(row: Int32Array): { readonly page: number; readonly slot: number } | undefined {
    const count = runPages(row.length);
    const first = this.pages;
    if (first + count > this.#most) return undefined;
    for (let part = 0; part < count; part++) {
      const start = (first + part) * PAGE_WORDS;
      const { i32 } = this.views;
      i32[start + KIND] = RUN << 16;
      i32[start + PART] = part;
      i32[start + ROW_WORDS] = row.length;
      i32.set(row.subarray(part * RUN_WORDS, (part + 1) * RUN_WORDS), start + HEADER_WORDS);
    }
    this.pages += count;
    // The next row begins a page of its own.
    this.#slots = -1;
    return { page: first, slot: 0 };
  }

  /** Completes a page, which will be written under this number. */
  finish(page: number, number: number, epoch: number, fileId: number): void {
    const { i32 } = this.views;
    const start = page * PAGE_WORDS;
    i32[start] = MAGIC;
    i32[start + NUMBER] = number;
    i32[start + GENERATION] = epoch | 0;
    i32[start + EPOCH_HIGH] = Math.floor(epoch / 2 ** 32);
    i32[start + FILE] = fileId;
    const from = page * PAGE_BYTES;
    const checked = this.views.u8.subarray(from + CHECKED_FROM, from + PAGE_BYTES);
    i32[start + CHECKSUM] = crc32(checked) | 0;
  }
}

/** The epoch in which a page was written whose head was read; 0 if none was written there. */
export function epochOfPage({ i32 }: Views): number {
  if (i32[0] !== MAGIC) return 0;
  return (i32[EPOCH_HIGH] >>> 0) * 2 ** 32 + (i32[GENERATION] >>> 0);
}

/** What is wrong with a page that was read, as a page of this file with this number; or undefined. */
export function pageFault(
  views: Views,
  at: number,
  number: number,
  fileId: number,
): string | undefined {
  const { i32, u8 } = views;
  if (i32[at] !== MAGIC) return "it is no page of a device file";
  const start = at * 4;
  const found = crc32(u8.subarray(start + CHECKED_FROM, start + PAGE_BYTES)) | 0;
  if (i32[at + CHECKSUM] !== found) return "the checksum of the page is wrong";
  if (i32[at + NUMBER] >>> 0 !== number) return `it is page ${i32[at + NUMBER] >>> 0}`;
  if (i32[at + FILE] !== fileId) return "the page belongs to another file";
  return undefined;
}

/** Where in a page of rows the row of a slot begins, and -1 if there is none of so many words. */
export function rowIn({ i32 }: Views, at: number, slot: number, words: number): number {
  const kind = i32[at + KIND];
  if (kind >>> 16 !== ROWS || slot >= (kind & 0xffff)) return -1;
  const entry = i32[at + PAGE_WORDS - 1 - slot];
  return entry >>> 16 === words ? at + (entry & 0xffff) : -1;
}

/** How many slots a page of rows has; 0 for other pages. */
export function slotsIn({ i32 }: Views, at: number): number {
  const kind = i32[at + KIND];
  return kind >>> 16 === ROWS ? kind & 0xffff : 0;
}

/** Where the row of a slot begins. */
export function slotRow({ i32 }: Views, at: number, slot: number): number {
  return at + (i32[at + PAGE_WORDS - 1 - slot] & 0xffff);
}

/** Whether the page is this part of a long row. */
export function isPart({ i32 }: Views, at: number, part: number, words: number): boolean {
  return i32[at + KIND] >>> 16 === RUN && i32[at + PART] === part && i32[at + ROW_WORDS] === words;
}

/** The rows of a page: for each its slot, where it begins and its words. */
export function* rowsIn(
  { i32 }: Views,
  at: number,
): Generator<{ readonly slot: number; readonly at: number; readonly words: number }> {
  const kind = i32[at + KIND];
  if (kind >>> 16 !== ROWS) return;
  for (let slot = 0; slot < (kind & 0xffff); slot++) {
    const entry = i32[at + PAGE_WORDS - 1 - slot];
    yield { slot, at: at + (entry & 0xffff), words: entry >>> 16 };
  }
}
