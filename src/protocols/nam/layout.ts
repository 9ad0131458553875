/**
 * How a table lies in memory servers (NAM-DB §5.1, §5.2): a hash table of cells in equal ranges, one range a server.
 * Each server has three segments for it, in which all addresses follow from the number of the cell:
 *
 *   cells   the newest version of each record, in place:
 *             words 0, 1   version: as a header, never locked
 *             words 2, 3   checksum of the rest of the body
 *             word 4       how many old versions were kept of it (`keptAfter`)
 *             word 5       0; 1 if the cell is no key's (see below)
 *             then         key, data, to an even word
 *             last two     header: what compare-and-swap works on
 *   rings   for each cell the overflow word (where its latest version in the overflow region is, or 0), how many versions
 *           were moved there, and a ring of the headers of old versions
 *   old     for each cell a ring of bodies of old versions
 *
 * The header comes last, because a write becomes visible in the order of addresses: whoever sees the new header,
 * and with it an unlocked record, can rely on the body. A read is not one instant either, so a body carries a checksum
 * over its version and its data, as in Pilaf, on which the paper's hash tables are built: a torn one
 * is read again. The lock bit plays no part in that; a locked record can be read.
 *
 * With copies, a server has room for so many ranges, one after the other (members.ts): the number of a cell counts through all of
 * them. Only the primary's rings are used.
 *
 * A cell that was given to a key stays that key's: a deleted record is a version that says so. Therefore everybody
 * who inserts a key finds the same cell for it, and two who insert the same key meet there. A search ends at the first cell that
 * was never used. So a cell that others may have passed is never empty again: if what was installed there is lost (recover.ts),
 * it becomes no key's, which every search passes.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { assert } from "../../runtime/assert.ts";
import { SituError } from "../../runtime/errors.ts";
import { DELETED_BIT } from "./header.ts";
import { Members } from "./members.ts";

export const VERSION_LOW_AT = 0;
export const VERSION_HIGH_AT = 1;
export const CHECKSUM_AT = 2;
export const KEPT_AT = 4;
export const NO_KEY_AT = 5;
export const KEY_AT = 6;
export const HEADER_WORDS = 2;

/** In a block of the rings' segment. */
export const OVERFLOW_AT = 0;
export const MOVED_COUNT_AT = 1;
export const RING_AT = 2;

/** A count of old versions is below this. */
const MOST_KEPT = 2 ** 32;

/** How many cells a key may be away from where its hash puts it. */
export const MOST_PROBES = 32;

export interface NamTableOptions {
  readonly name: string;
  readonly keyWords: number;
  readonly dataWords: number;
  /** In all; rounded up to equal ranges. */
  readonly cells: number;
  /** Old versions that each record has room for before they are moved. */
  readonly ring: number;
  /** Which cell a key prefers, taken modulo their number: by its hash, if not given. */
  readonly place?: (key: Int32Array) => number;
}

/** The numbers of its segments, the same at every server. */
export interface TableSegments {
  readonly cells: number;
  readonly rings: number;
  readonly old: number;
}

/** Where a cell is. */
export interface CellPlace {
  readonly server: NodeId;
  /** Within what the server has of the table. */
  readonly cell: number;
}

export class NamTable {
  readonly id: number;
  readonly name: string;
  readonly keyWords: number;
  readonly dataWords: number;
  readonly ring: number;
  readonly bodyWords: number;
  readonly cellWords: number;
  readonly blockWords: number;
  /** In one range. */
  readonly cellsPerServer: number;
  readonly members: Members;
  readonly servers: readonly NodeId[];
  readonly segments: TableSegments;
  readonly #place: (key: Int32Array) => number;

  constructor(
    id: number,
    options: NamTableOptions,
    servers: readonly NodeId[],
    segments: TableSegments,
    members = new Members(servers),
  ) {
    assert(servers.length > 0 && options.ring > 0 && options.keyWords > 0, "a table has a shape");
    this.id = id;
    this.name = options.name;
    this.keyWords = options.keyWords;
    this.dataWords = options.dataWords;
    this.ring = options.ring;
    this.bodyWords = (KEY_AT + options.keyWords + options.dataWords + 1) & ~1;
    this.cellWords = this.bodyWords + HEADER_WORDS;
    this.blockWords = RING_AT + 2 * options.ring;
    this.cellsPerServer = Math.ceil(options.cells / servers.length);
    this.servers = servers;
    this.members = members;
    this.segments = segments;
    this.#place = options.place ?? hashOf;
  }

  /** The same table, as it lies with other members. */
  withMembers(members: Members): NamTable {
    const { id, name, keyWords, dataWords, ring, servers, segments } = this;
    const cells = this.cellsPerServer * servers.length;
    const place = this.#place;
    const options = { name, keyWords, dataWords, cells, ring, place };
    return new NamTable(id, options, servers, segments, members);
  }

  get dataAt(): number {
    return KEY_AT + this.keyWords;
  }

  /** Where the search for a key begins. */
  home(key: Int32Array): CellPlace {
    const cells = this.cellsPerServer * this.servers.length;
    const bucket = (this.#place(key) >>> 0) % cells;
    const range = Math.floor(bucket / this.cellsPerServer);
    return this.placesOf(range, bucket - range * this.cellsPerServer)[0];
  }

  /** Cells that a server has room for: of its own range, and of those that it has copies of. */
  get cellsHeld(): number {
    return this.cellsPerServer * this.members.copies;
  }

  /** Where the copies of a cell are now, the primary's first; a cell is counted within its range. */
  placesOf(range: number, cell: number): CellPlace[] {
    const places = this.members.copiesOf(range);
    if (places.length === 0) throw rangeIsLost(this, range);
    return places.map(({ server, shelf }) => ({
      server,
      cell: shelf * this.cellsPerServer + cell,
    }));
  }

  /** Which range a cell of a server is of, and which cell of it. */
  rangeOf({ server, cell }: CellPlace): { readonly range: number; readonly cell: number } {
    const shelf = Math.floor(cell / this.cellsPerServer);
    return { range: this.members.rangeOf(server, shelf), cell: cell % this.cellsPerServer };
  }

  /** Whether records are read and locked in this cell. */
  isPrimary(place: CellPlace): boolean {
    return this.members.copiesOf(this.rangeOf(place).range)[0]?.server === place.server;
  }

  /** The next cell to look at: within the same range, so that a key is at one server. */
  after({ server, cell }: CellPlace): CellPlace {
    const shelf = cell - (cell % this.cellsPerServer);
    return { server, cell: shelf + ((cell + 1) % this.cellsPerServer) };
  }

  /** How many cells are looked at for a key. */
  get mostProbes(): number {
    return Math.min(MOST_PROBES, this.cellsPerServer);
  }

  /** How many steps of `after` lead from a key's first cell to this one. */
  distance(key: Int32Array, { cell }: CellPlace): number {
    const steps = cell - this.home(key).cell;
    return steps < 0 ? steps + this.cellsPerServer : steps;
  }

  cellAt(cell: number): number {
    return cell * this.cellWords;
  }

  headerAt(cell: number): number {
    return this.cellAt(cell) + this.bodyWords;
  }

  blockAt(cell: number): number {
    return cell * this.blockWords;
  }

  /**
   * The count of old versions after this one. It has 32 bits. At their end it goes on where the ring has come around once: the
   * next version has the next place of the ring, and 0 says that there never was one.
   */
  keptAfter(kept: number): number {
    const next = (kept >>> 0) + 1;
    return next < MOST_KEPT - (MOST_KEPT % this.ring) ? next : this.ring;
  }

  /** The header of the old version with this number, counted from 0. */
  ringHeaderAt(cell: number, number: number): number {
    return this.blockAt(cell) + RING_AT + 2 * (number % this.ring);
  }

  oldAt(cell: number, number: number): number {
    return (cell * this.ring + (number % this.ring)) * this.bodyWords;
  }

  hasKey(body: Int32Array, key: Int32Array, from = 0): boolean {
    if (body[from + NO_KEY_AT] !== 0) return false;
    for (let i = 0; i < this.keyWords; i++) {
      if (body[from + KEY_AT + i] !== key[i]) return false;
    }
    return true;
  }

  dataOf(body: Int32Array): Int32Array {
    return body.subarray(this.dataAt, this.dataAt + this.dataWords);
  }

  /**
   * What is in a cell that is no key's: always the same. Everybody sees it, for it is of timestamp 0 of the first slot, and nobody
   * writes it, for no search ends there.
   */
  bodyOfNoKey(): Int32Array {
    const body = new Int32Array(this.bodyWords);
    body[VERSION_HIGH_AT] = DELETED_BIT;
    body[NO_KEY_AT] = 1;
    sign(body, 0, this.bodyWords);
    return body;
  }

  /** A body with its checksum. */
  bodyOf(
    low: number,
    high: number,
    kept: number,
    key: Int32Array,
    data: Int32Array | undefined,
  ): Int32Array {
    if (key.length !== this.keyWords || (data !== undefined && data.length !== this.dataWords)) {
      throw new SituError(
        "SITU_TYPE",
        `a record of table ${this.name} has ${this.keyWords} words of key and ${this.dataWords} of data`,
      );
    }
    const body = new Int32Array(this.bodyWords);
    body[VERSION_LOW_AT] = low;
    body[VERSION_HIGH_AT] = high;
    body[KEPT_AT] = kept;
    body.set(key, KEY_AT);
    if (data !== undefined) body.set(data, this.dataAt);
    sign(body, 0, this.bodyWords);
    return body;
  }
}

/** Murmur's mixing of a key's words. */
export function hashOf(key: Int32Array): number {
  let hash = 0x9747b28c;
  for (let i = 0; i < key.length; i++) hash = mixIn(hash, key[i]);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function mixIn(hash: number, word: number): number {
  let mixed = Math.imul(word, 0xcc9e2d51);
  mixed = Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
  const turned = hash ^ mixed;
  return (Math.imul((turned << 13) | (turned >>> 19), 5) + 0xe6546b64) | 0;
}

/** Writes the checksum of the body at [from, from + words). */
export function sign(i32: Int32Array, from: number, words: number): void {
  const { first, second } = checksum(i32, from, words);
  i32[from + CHECKSUM_AT] = first;
  i32[from + CHECKSUM_AT + 1] = second;
}

/** Whether what was read is one version as it was written. A cell that was never used is not. */
export function isWhole(i32: Int32Array, from: number, words: number): boolean {
  const { first, second } = checksum(i32, from, words);
  return i32[from + CHECKSUM_AT] === first && i32[from + CHECKSUM_AT + 1] === second;
}

const sums = { first: 0, second: 0 };

/** 64 bits, in two halves that begin differently. The object is used again. */
function checksum(i32: Int32Array, from: number, words: number): typeof sums {
  let first = 0x2f1b3a55;
  let second = 0x6d2b79f5;
  for (let i = 0; i < words; i++) {
    if (i === CHECKSUM_AT || i === CHECKSUM_AT + 1) continue;
    const word = i32[from + i];
    first = mixIn(first, word);
    second = Math.imul(second ^ word, 0x01000193) ^ (second >>> 15);
  }
  sums.first = (first ^ (first >>> 16)) | 0;
  sums.second = second | 0;
  return sums;
}

function rangeIsLost(table: NamTable, range: number): SituError {
  return new SituError(
    "SITU_MEMORY_LOST",
    `all memory servers with range ${range} of table ${table.name} are gone: restart all memory servers, and load the data again`,
  );
}

/** A range of a server that has no room for a key. */
export function tableIsFull(table: NamTable, server: NodeId): SituError {
  return new SituError(
    "SITU_FULL",
    `table ${table.name} has no room for this key at memory server ${server}: ${MOST_PROBES} cells in a row are taken`,
  );
}
