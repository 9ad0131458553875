/**
 * Rows that do not fit a slot are objects of their own, found by a fat pointer. Data words:
 *
 *   0   words of the row
 *   1   chunks: 0 if the row follows, else so many fat pointers follow to objects with its parts;
 *       SMALL_CHUNKS tells their size
 *   2…  the row, or the pointers (region id + 1, word, incarnation word)
 *
 * A row of more than 32 KiB is cut into chunks, all but the last of which fill a cell of 32,672 bytes.
 * Large rows of all sizes then share blocks of one class, eight cells in 256 KiB and nothing left
 * over, where a class for each size would keep a block of up to 1 MiB, partly filled, for each
 * (docs/decisions/0023). The last chunk's size is rounded up to one of eight, for the same reason.
 *
 * Earlier versions cut only rows of more than 1 MiB, into the largest objects there are. Such rows, and
 * larger ones in one piece, are still read.
 */

import { MAX_WINDOW_START } from "../engine/access-set.ts";
import { dataCapacity } from "../engine/cells.ts";
import { copyWords } from "../engine/journal.ts";
import type { Transaction } from "../engine/transaction.ts";
import type { Address } from "../memory/address.ts";
import { HEADER_BYTES, HEADER_WORDS } from "../memory/object.ts";
import { CELL_BYTES, sizeClassOf } from "../memory/size-classes.ts";
import { Views } from "../memory/views.ts";
import { MAX_CELL_BYTES, MAX_ROW_BYTES } from "../runtime/limits.ts";
import type { RowCodec } from "./store.ts";

export const ROW_WORDS = 0;
export const ROW_CHUNKS = 1;
export const ROW_DATA = 2;
export const CHUNK_POINTER_WORDS = 3;
/** In the word of the chunks: they are of CHUNK_WORDS, not of LARGE_CHUNK_WORDS. */
export const SMALL_CHUNKS = 1 << 16;
/** The largest class of which eight cells fill a block of 256 KiB. */
const CHUNK_CELL_BYTES = CELL_BYTES[sizeClassOf(32 * 1024 + 8) - 1];
export const CHUNK_WORDS = (CHUNK_CELL_BYTES - HEADER_BYTES) / 4;
export const LARGE_CHUNK_WORDS = (MAX_CELL_BYTES - HEADER_BYTES) / 4;
/** The largest row that is written in one piece, and that may be found in one. */
export const MAX_SINGLE_WORDS = CHUNK_WORDS - ROW_DATA;
export const MAX_READ_SINGLE_WORDS = LARGE_CHUNK_WORDS - ROW_DATA;
/** The last chunk of a row is a multiple of this, but for the largest. */
const LAST_CHUNK_STEP = 1024;

/** Where a row that was cut is put together for its reader. */
const assembled = new Views(new ArrayBuffer(MAX_ROW_BYTES + 8));

/** Opened by `openRow`: where the row can be read. */
export class RowPlace {
  views: Views = assembled;
  at = 0;
  words = 0;
}

/** Data words of the object for a row of so many words. */
export function objectWords(rowWords: number): number {
  return rowWords <= MAX_SINGLE_WORDS
    ? ROW_DATA + rowWords
    : ROW_DATA + CHUNK_POINTER_WORDS * Math.ceil(rowWords / CHUNK_WORDS);
}

/** Allocates a row object, fills it from `source`, and returns its entry. */
export function createRow(
  tx: Transaction,
  source: Int32Array,
  words: number,
  near: Address,
): number {
  // All that the cell holds, so that a longer row of the same class can replace this one in place.
  const entry = tx.allocate(dataCapacity(objectWords(words) * 4), near);
  fillRow(tx, entry, source, words, near);
  return entry;
}

function fillRow(
  tx: Transaction,
  entry: number,
  source: Int32Array,
  words: number,
  near: Address,
): void {
  const { set } = tx;
  const { i32 } = set.arena;
  const at = set.bufferOf(entry);
  i32[at + ROW_WORDS] = words;
  if (words <= MAX_SINGLE_WORDS) {
    i32[at + ROW_CHUNKS] = 0;
    copyWords(source, 0, i32, at + ROW_DATA, words);
    set.markDirty(entry, 0, ROW_DATA + words);
    return;
  }
  const chunks = Math.ceil(words / CHUNK_WORDS);
  i32[at + ROW_CHUNKS] = SMALL_CHUNKS | chunks;
  set.markDirty(entry, 0, objectWords(words));
  for (let index = 0; index < chunks; index++) {
    const part = Math.min(CHUNK_WORDS, words - index * CHUNK_WORDS);
    const chunk = tx.allocate(chunkBytes(part), near);
    const pointer = set.bufferOf(entry) + ROW_DATA + CHUNK_POINTER_WORDS * index;
    const arena = set.arena.i32;
    copyWords(source, index * CHUNK_WORDS, arena, set.bufferOf(chunk), part);
    arena[pointer] = set.regionIdOf(chunk) + 1;
    arena[pointer + 1] = set.wordOf(chunk);
    arena[pointer + 2] = set.incarnationOf(chunk);
  }
}

/**
 * Replaces the row in its object, if it stays in one piece and in its size class; else false, and
 * the caller makes a new object.
 */
export function replaceRow(
  tx: Transaction,
  entry: number,
  source: Int32Array,
  words: number,
): boolean {
  const { set } = tx;
  tx.open(set.regionOf(entry), set.wordOf(entry));
  const { i32 } = tx.views;
  const wordsBefore = i32[tx.at + ROW_WORDS];
  const chunksBefore = i32[tx.at + ROW_CHUNKS];
  if (!tx.settle(entry)) tx.conflict(entry);
  if (chunksBefore !== 0 || words > MAX_SINGLE_WORDS) return false;
  const capacity = dataCapacity(objectWords(words) * 4);
  const fits = words === wordsBefore || capacity === dataCapacity(objectWords(wordsBefore) * 4);
  if (!fits) return false;
  // All of the row is overwritten; what lies behind it in the cell belongs to nobody.
  tx.overwritableWindow(entry, 0, ROW_DATA + words, capacity / 4);
  fillRow(tx, entry, source, words, tx.addressOf(entry));
  return true;
}

/** Whether rows of this size, 0 if they differ, lie in one piece whose fields keep their places. */
export function isPatchable(fixedWords: number): boolean {
  return fixedWords > 0 && fixedWords <= MAX_SINGLE_WORDS;
}

/** Applies staged changes to such a row in its object: only the words that they lie in are copied. */
export function patchRow<Row>(tx: Transaction, entry: number, codec: RowCodec<Row, never>): void {
  const range = codec.changed[0];
  const from = ROW_DATA + (range >>> 16);
  const to = ROW_DATA + ((range >>> 1) & 0x7fff);
  const capacity = dataCapacity(objectWords(codec.fixedWords) * 4) / 4;
  let at: number;
  if (from <= MAX_WINDOW_START) {
    at = tx.writableWindow(entry, from, to, capacity);
  } else {
    at = tx.writable(entry, capacity);
    tx.set.markDirty(entry, from, to);
  }
  codec.patch(tx.set.arena, at + ROW_DATA);
}

/** Frees the row object and the chunks it has. */
export function freeRow(tx: Transaction, entry: number): void {
  const { chunks, pointers } = headOf(tx, entry);
  for (let index = 0; index < chunks; index++) {
    const at = index * CHUNK_POINTER_WORDS;
    const region = tx.executor.memory.region(pointers[at] - 1);
    const chunk = tx.open(region, pointers[at + 1]);
    if (tx.incarnationOf(chunk) !== pointers[at + 2]) tx.conflict(entry);
    tx.free(chunk);
  }
  tx.free(entry);
}

/** Size and chunk pointers of a row object that the transaction depends on. */
function headOf(
  tx: Transaction,
  entry: number,
): { words: number; chunks: number; chunkWords: number; pointers: Int32Array } {
  const { set } = tx;
  tx.open(set.regionOf(entry), set.wordOf(entry));
  const { i32 } = tx.views;
  const words = i32[tx.at + ROW_WORDS];
  const chunks = chunkCount(i32[tx.at + ROW_CHUNKS]);
  const chunkWords = chunkWordsOf(i32[tx.at + ROW_CHUNKS]);
  const first = tx.at + ROW_DATA;
  const pointers = i32.slice(first, first + chunks * CHUNK_POINTER_WORDS);
  if (!tx.settle(entry)) tx.conflict(entry);
  return { words, chunks, chunkWords, pointers };
}

/**
 * Says where the row of an opened object can be read, putting a cut row together. False if what
 * lies there makes no sense: the object is changing, the caller's `settle` will tell.
 */
export function placeRow(tx: Transaction, entry: number, place: RowPlace): boolean {
  const { i32 } = tx.views;
  const words = i32[tx.at + ROW_WORDS];
  const chunks = i32[tx.at + ROW_CHUNKS];
  if (words < 0 || words * 4 > MAX_ROW_BYTES) return false;
  if (chunks === 0) {
    if (tx.at + ROW_DATA + words > i32.length) return false;
    place.views = tx.views;
    place.at = tx.at + ROW_DATA;
    place.words = words;
    return true;
  }
  const head = headOf(tx, entry);
  if (head.chunks !== Math.ceil(head.words / head.chunkWords)) return false;
  place.views = assembled;
  place.at = 0;
  place.words = head.words;
  for (let index = 0, to = 0; index < head.chunks; index++) {
    const at = index * CHUNK_POINTER_WORDS;
    const region = tx.executor.memory.region(head.pointers[at] - 1);
    const part = Math.min(head.chunkWords, head.words - to);
    const chunk = tx.open(region, head.pointers[at + 1]);
    copyWords(tx.views.i32, tx.at, assembled.i32, to, part);
    // Settled first: what this attempt knew of the cell may be from an earlier life of it.
    if (!tx.settle(chunk) || tx.incarnationOf(chunk) !== head.pointers[at + 2]) return false;
    tx.depend(chunk);
    tx.doneWith(chunk);
    to += part;
  }
  return true;
}

/** Words of a cache line. */
const LINE = 16;
/** More lines than this are not under way at the same time anyway. */
const MAX_TOUCHED_WORDS = 32 * LINE;

/**
 * Asks for all lines of a row before the first one is needed, so that they come from memory at the
 * same time and not one after the other. The caller keeps what is returned, for else the loads would
 * be dropped.
 */
export function touchRow(i32: Int32Array, word: number, words: number): number {
  const end = word + Math.min(words, MAX_TOUCHED_WORDS);
  let touched = 0;
  for (let at = word; at < end; at += LINE) touched ^= i32[at];
  return touched;
}

/** Lock-free variant for rows in one piece; -1 if the row is cut or makes no sense. */
export function wordsOfSingleRow(i32: Int32Array, word: number): number {
  const at = word + HEADER_WORDS;
  const words = i32[at + ROW_WORDS];
  const single = i32[at + ROW_CHUNKS] === 0 && words >= 0 && words <= MAX_READ_SINGLE_WORDS;
  return single && at + ROW_DATA + words <= i32.length ? words : -1;
}

/** Data words of each chunk but the last, by the word that counts the chunks. */
export function chunkWordsOf(chunks: number): number {
  return (chunks & SMALL_CHUNKS) !== 0 ? CHUNK_WORDS : LARGE_CHUNK_WORDS;
}

/** How many chunks there are by that word; 0 if it makes no sense. */
export function chunkCount(chunks: number): number {
  const most = Math.ceil(MAX_ROW_BYTES / 4 / chunkWordsOf(chunks));
  const count = chunks & ~SMALL_CHUNKS;
  return count >= 0 && count <= most ? count : 0;
}

/** Bytes to allocate for a chunk of so many words. */
export function chunkBytes(words: number): number {
  const rounded = Math.ceil(words / LAST_CHUNK_STEP) * LAST_CHUNK_STEP;
  return 4 * Math.max(words, Math.min(CHUNK_WORDS, rounded));
}
