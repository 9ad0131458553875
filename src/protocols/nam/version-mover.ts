/**
 * Old versions that their ring has no room for any more (NAM-DB §5.1, §5.3). The mover of a memory server copies the
 * oldest ones of each ring to the overflow region and then marks their entries as moved: a commit may use
 * those again, and until it does they are found in the ring. The region is a ring of entries, written in the
 * order in which they were moved:
 *
 *   word 0   its position, in words since the server was started: says whether this is still the entry meant
 *   word 1   the position of the next older version of the record, or 0
 *   then     the body, with version, key, data and checksum
 *
 * A version was replaced before it was moved. So once the longest transaction time has passed since the move,
 * nobody may need it, and entries go in the order in which they came. Where the region is full of younger ones,
 * nothing is moved, and commits that find no free entry in a ring give way (transaction.ts).
 */

import { isMovedHigh, MOVED_BIT } from "./header.ts";
import {
  isWhole,
  MOVED_COUNT_AT,
  type NamTable,
  OVERFLOW_AT,
  RING_AT,
  VERSION_HIGH_AT,
  VERSION_LOW_AT,
} from "./layout.ts";
import type { MemoryServer } from "./memory-server.ts";
import { OVERFLOW } from "./segments.ts";

export const ENTRY_BODY_AT = 2;
/** In the place of a position: there were older versions, and they are gone with the server that had them. */
export const LOST_VERSIONS = -1;

interface Entry {
  readonly words: number;
  readonly movedMs: number;
}

export class VersionMover {
  readonly #server: MemoryServer;
  /** Versions that were moved so far. */
  moved = 0;
  /** Is told when there is something to move, by one who wants to know at once; until then cells are looked at in turn. */
  onNoted: (() => void) | undefined;
  #noted: { readonly table: NamTable; readonly cell: number }[] = [];
  /** Oldest first. */
  readonly #entries: Entry[] = [];
  #first = 0;
  /** Where the next entry goes, and where the oldest one begins: positions, which only grow. */
  #head = 1;
  #tail = 1;
  /** Where the next round goes on. */
  #table = 0;
  #cell = 0;

  constructor(server: MemoryServer) {
    this.#server = server;
  }

  get usedWords(): number {
    return this.#head - this.#tail;
  }

  /** An entry of a ring was written: what it holds has to be moved before the ring is full. */
  note(table: NamTable, cell: number): void {
    if (this.onNoted === undefined) return;
    this.#noted.push({ table, cell });
    if (this.#noted.length === 1) this.onNoted();
  }

  /** Moves what was noted. */
  moveNoted(nowMs: number): void {
    const noted = this.#noted;
    this.#noted = [];
    this.collect(nowMs);
    for (const { table, cell } of noted) {
      if (this.#server.tables.includes(table)) this.moveCell(table, cell, nowMs);
    }
  }

  /** Collects, then looks at so many cells. Says how many versions were moved. */
  round(nowMs: number, cells: number): number {
    this.collect(nowMs);
    const { tables } = this.#server;
    let moved = 0;
    for (let left = cells; left > 0 && tables.length > 0; left--) {
      // Extents may have been freed since.
      this.#table %= tables.length;
      const table = tables[this.#table];
      const isHere = table.servers.includes(this.#server.id) && this.#cell < table.cellsHeld;
      if (isHere) moved += this.moveCell(table, this.#cell, nowMs);
      if (++this.#cell >= table.cellsHeld) {
        this.#cell = 0;
        this.#table = (this.#table + 1) % tables.length;
      }
    }
    return moved;
  }

  /** All of one ring that can be moved. */
  moveCell(table: NamTable, cell: number, nowMs: number): number {
    const rings = this.#server.region(table.segments.rings).i32;
    const old = this.#server.region(table.segments.old).i32;
    const block = table.blockAt(cell);
    let moved = 0;
    while (moved < table.ring) {
      const number = rings[block + MOVED_COUNT_AT] >>> 0;
      const at = block + RING_AT + 2 * (number % table.ring);
      if (isFree(rings[at], rings[at + 1])) break;
      const body = table.oldAt(cell, number);
      // Header and body are two writes: the body may be about to come.
      const isThere =
        old[body + VERSION_LOW_AT] === rings[at] &&
        old[body + VERSION_HIGH_AT] === rings[at + 1] &&
        isWhole(old, body, table.bodyWords);
      if (!isThere) break;
      const position = this.#append(table, old, body, rings[block + OVERFLOW_AT], nowMs);
      if (position === undefined) break;
      rings[block + OVERFLOW_AT] = position;
      rings[block + MOVED_COUNT_AT] = table.keptAfter(number);
      rings[at + 1] |= MOVED_BIT;
      moved++;
    }
    this.moved += moved;
    return moved;
  }

  /** Forgets everything: no ring has an entry any more, and nobody may read what was moved. */
  reset(): void {
    this.#noted = [];
    this.#entries.length = 0;
    this.#first = 0;
    this.#tail = this.#head;
  }

  /** Frees what no transaction may need. */
  collect(nowMs: number): void {
    const beforeMs = nowMs - this.#server.options.longestTransactionMs;
    while (this.#first < this.#entries.length) {
      const { words, movedMs } = this.#entries[this.#first];
      if (movedMs >= beforeMs) break;
      this.#tail += words;
      this.#first++;
    }
    if (this.#first * 2 <= this.#entries.length) return;
    this.#entries.splice(0, this.#first);
    this.#first = 0;
  }

  #append(
    table: NamTable,
    old: Int32Array,
    body: number,
    previous: number,
    nowMs: number,
  ): number | undefined {
    const { i32 } = this.#server.region(OVERFLOW);
    const words = ENTRY_BODY_AT + table.bodyWords;
    // An entry does not go around the end.
    const gap = i32.length - (this.#head % i32.length);
    let skipped = gap < words ? gap : 0;
    // 0 says that there is none, and the number before it that they are lost.
    while (isNoPosition((this.#head + skipped) | 0)) skipped++;
    if (this.#head + skipped + words - this.#tail > i32.length) return undefined;
    this.#head += skipped;
    const at = this.#head % i32.length;
    const position = this.#head | 0;
    i32[at] = position;
    i32[at + 1] = previous;
    for (let i = 0; i < table.bodyWords; i++) i32[at + ENTRY_BODY_AT + i] = old[body + i];
    this.#head += words;
    this.#entries.push({ words: skipped + words, movedMs: nowMs });
    return position;
  }
}

function isNoPosition(position: number): boolean {
  return position === 0 || position === LOST_VERSIONS;
}

/** Whether a commit may use an entry of a ring: it never was used, or what it held was moved. */
export function isFree(low: number, high: number): boolean {
  return (low === 0 && high === 0) || isMovedHigh(high);
}

/** Where in the overflow region a position is. */
export function overflowAt(position: number, overflowWords: number): number {
  // Positions are kept in 32 bits, so the length of the region must divide their range.
  return (position >>> 0) % overflowWords;
}
