/**
 * The store in which processes try to produce anomalies. Rows that belong together lie far apart,
 * in different buckets and leaves: in one object they would be changed and read as one.
 */

import type { Snapshot, Transaction } from "../../src/index.ts";
import { bytes, type Database, i32, open, type Table, table, u32 } from "../../src/index.ts";

export interface Cell {
  id: number;
  pair: number;
  n: number;
}
/** Both kinds of tables are used in the same way, so their types say no more than this. */
export type Cells = Table<Cell, number, Partial<Omit<Cell, "id">>>;

const cell = { id: u32(), pair: u32(), n: i32() };
const HashedCells = table("hashed-cells", cell, {
  key: "id",
  indexes: { byPair: { on: ["pair"], kind: "hash" } },
});
const OrderedCells = table("ordered-cells", cell, {
  key: "id",
  ordered: true,
  indexes: { byPair: { on: ["pair"] } },
});
export const CELLS: readonly Cells[] = [HashedCells, OrderedCells];

export const PAIRS = 3;
const PAIR_STEP = 1_000;
const NO_PAIR = 1_000_000;

export function xOf(pair: number): number {
  return pair * PAIR_STEP;
}

export function yOf(pair: number): number {
  return pair * PAIR_STEP + PAIR_STEP / 2;
}

export interface Booking {
  room: number;
  id: number;
  taken: number;
}
export type Bookings = Table<Booking, readonly [number, number], { taken?: number }>;

const booking = { room: u32(), id: u32(), taken: u32() };
const HashedBookings = table("hashed-bookings", booking, {
  key: ["room", "id"],
  indexes: { taken: { on: ["taken", "room"], kind: "hash" } },
});
const OrderedBookings = table("ordered-bookings", booking, {
  key: ["room", "id"],
  ordered: true,
  indexes: { taken: { on: ["taken", "room"] } },
});
export const BOOKINGS: readonly Bookings[] = [HashedBookings, OrderedBookings];

export const ROOMS = 2;
/** Bookings that a room may have. */
export const ROOM_LIMIT = 5;
/** Places that are for nobody, even ids, so that the bookings lie in many leaves and buckets. */
const EMPTY_PLACES = 150;

interface List {
  id: number;
  values: Uint8Array;
}
export type Lists = Table<List, number, { values?: Uint8Array }>;
const list = { id: u32(), values: bytes() };
const HashedLists = table("hashed-lists", list, { key: "id" });
const OrderedLists = table("ordered-lists", list, { key: "id", ordered: true });

/** Lists with even ids are hashed, the others ordered. */
export function listsOf(id: number): Lists {
  return id % 2 === 0 ? HashedLists : OrderedLists;
}

/** What reads: a transaction, a snapshot, or (one row after the other) a database. */
export type Reader = Pick<Transaction, "get" | "scan" | "count"> | Snapshot | Database;

export function openAnomalies(path: string): Promise<Database> {
  return open({
    path,
    tables: [...CELLS, ...BOOKINGS, HashedLists, OrderedLists],
    memoryBytes: 64 * 2 ** 20,
    timeoutMs: 120_000,
    // What is tried for are interleavings; a log that is late would run bodies again.
    durability: "none",
  });
}

/** Puts rows in places that stay as they are; between them lie those that are worked with. */
export function fillAnomalies(db: Database): void {
  for (const cells of CELLS) {
    for (let pair = 0; pair < PAIRS; pair++) {
      db.transactSync((tx) => {
        for (let id = xOf(pair); id < xOf(pair + 1); id++) {
          const isOne = id === xOf(pair) || id === yOf(pair);
          tx.insert(cells, { id, pair: isOne ? pair : NO_PAIR + id, n: 0 });
        }
      });
    }
  }
  for (const bookings of BOOKINGS) {
    db.transactSync((tx) => {
      for (let room = 0; room < ROOMS; room++) {
        for (let place = 0; place < EMPTY_PLACES; place++) {
          tx.insert(bookings, { room, id: 2 * place, taken: 0 });
        }
      }
    });
  }
}

/** For the next test: all cells of pairs hold `n`, no room is booked, the lists are new ones. */
export function resetAnomalies(db: Database, n: number): void {
  db.transactSync((tx) => {
    for (const cells of CELLS) {
      for (let pair = 0; pair < PAIRS; pair++) {
        tx.update(cells, xOf(pair), { n });
        tx.update(cells, yOf(pair), { n });
      }
    }
    for (const bookings of BOOKINGS) {
      for (let room = 0; room < ROOMS; room++) {
        for (const { id } of bookingsIn(tx, bookings, room)) tx.delete(bookings, [room, id]);
      }
    }
    startGeneration(tx, generationIn(tx) + 1);
  });
}

/** Lists are left alone when they are long, for the next generation of them. */
export const LISTS_PER_GENERATION = 6;
/** The number of the generation is kept in a cell of no pair. */
const GENERATION = 1;

export function generationIn(reader: Reader): number {
  return reader.get(CELLS[1], GENERATION)!.n;
}

export function startGeneration(tx: Transaction, generation: number): void {
  if (generationIn(tx) < generation) tx.update(CELLS[1], GENERATION, { n: generation });
}

/** An id that a booking may get: odd, between those of the empty places. */
export function placeOf(random: number): number {
  return 2 * (random % EMPTY_PLACES) + 1;
}

/** The bookings of a room, found by a range or by a walk through the table. */
export function bookingsIn(reader: Reader, bookings: Bookings, room: number): Booking[] {
  const options = bookings.ordered ? { prefix: [room] } : {};
  const found = reader.scan(bookings, options).toArray();
  return found.filter((each) => each.room === room && each.taken === 1);
}

/** The same through the index. */
export function indexedBookingsIn(reader: Reader, bookings: Bookings, room: number): Booking[] {
  return reader.scan(bookings, { index: "taken", eq: [1, room] }).toArray();
}
