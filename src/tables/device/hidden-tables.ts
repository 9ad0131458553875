/**
 * A table on the device is three tables in memory and a file of pages. All three are ordinary tables, of
 * objects that the engine commits, logs, recovers and keeps versions of; so a device table has the
 * engine's guarantees, and its own rules are these:
 *
 *   map     one row for each row of the table: its key, and its *place*. In the table's own layout, so it
 *           has the table's order, and its scans see the table's keys
 *   delta   rows that were written lately, whole: all rows whose place says so. Hashed
 *   free    pages of the file that may be written again, by number. Ordered
 *
 * A place is three words:
 *
 *   page         the number of the page where the row is, or where its run of pages begins
 *   generation   of that page
 *   where        the words of the row (21 bits) and its slot (11 bits); 0: the row is in the delta
 *
 * A row is written into the delta, and its place says so, in one transaction. Later it is written to a page,
 * and when that is on disk another transaction gives it the place and removes it from the delta, if it is
 * still the same (mover.ts). So there is one version of a row that counts, and every reader that has
 * found it depends on the place that led there.
 *
 * The root of the table is an object that says where these are:
 *
 *   0–1, 2–3, 4–5   the roots of map, delta and free: region id + 1, word
 *   6–7             the id of the file
 *   8               1 from when the file is made: from then on it must be there
 */

import type { Executor } from "../../engine/executor.ts";
import { runReadOnly } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { type Address, addressOf, regionIdOf, wordOf } from "../../memory/address.ts";
import type { Views } from "../../memory/views.ts";
import { uniqueNumber } from "../../runtime/random.ts";
import type { AnyCodec, StoreKind } from "../../stores/kind.ts";
import { TABLE_KINDS } from "../../stores/kinds.ts";
import { codecOf } from "../codec/codec.ts";
import { layoutOf } from "../codec/layout.ts";
import { orderedCodecOf } from "../codec/ordered.ts";
import { u32 } from "../fields.ts";
import type { RowValues } from "../indexes/structure.ts";
import type { Fields, Table } from "../table.ts";

export const ROOT_WORDS = 10;
const MAP = 0;
const DELTA = 2;
const FREE = 4;
const FILE = 6;
const MADE = 8;

/** Where a row is, as the map says. One object for all lookups of a store: good until the next one. */
export interface DevicePlace {
  page: number;
  generation: number;
  where: number;
}

const SLOT_BITS = 11;
const SLOT_MASK = (1 << SLOT_BITS) - 1;

/** The word `where`, of a row on the device. */
export function whereOf(words: number, slot: number): number {
  return ((words << SLOT_BITS) | slot) >>> 0;
}

export function wordsIn(where: number): number {
  return where >>> SLOT_BITS;
}

export function slotIn(where: number): number {
  return where & SLOT_MASK;
}

/** The place of a row that is in the delta. */
export const IN_DELTA = Object.freeze({ page: 0, generation: 0, where: 0 });

/** The roots of a device table, and its file. */
export interface DeviceRoot {
  readonly map: Address;
  readonly delta: Address;
  readonly free: Address;
  readonly fileHigh: number;
  readonly fileLow: number;
}

export interface HiddenTables {
  readonly mapKind: StoreKind;
  /** The names of the place's words in the map: no fields of the key are called so. */
  readonly names: readonly [page: string, generation: string, where: string];
  readonly mapTable: Table;
  readonly mapCodec: AnyCodec<RowValues, unknown>;
  readonly freeTable: Table;
  readonly freeCodec: AnyCodec<{ page: number }, number>;
}

/** The delta has no order, whatever the table has. */
export const DELTA_KIND: StoreKind = TABLE_KINDS.hopscotch;
export const FREE_KIND: StoreKind = TABLE_KINDS.btree;

export function hiddenTablesOf(table: Table): HiddenTables {
  const nameOf = (wanted: string): string => {
    let name = wanted;
    while (table.key.includes(name)) name += "'";
    return name;
  };
  const names = [nameOf("page"), nameOf("generation"), nameOf("where")] as const;
  const fields: Record<string, Fields[string]> = {};
  for (const name of table.key) {
    const field = table.fields[name];
    fields[name] = field.kind === "timestamp" ? { ...field, as: "number" } : field;
  }
  for (const name of names) fields[name] = u32();
  const hidden = { indexes: [], expires: undefined, ordinal: -1, storage: undefined };
  const { key, singleKey, ordered, layout } = table;
  const mapTable: Table = { ...hidden, name: table.name, fields, key, singleKey, ordered, layout };
  const freeTable: Table = {
    ...hidden,
    name: `${table.name} (free pages)`,
    fields: { page: u32() },
    key: ["page"],
    singleKey: true,
    ordered: true,
    layout: "btree",
  };
  return {
    mapKind: TABLE_KINDS[layout],
    names,
    mapTable,
    mapCodec: (ordered ? orderedCodecOf(mapTable) : codecOf(mapTable)) as never,
    freeTable,
    freeCodec: orderedCodecOf(freeTable) as never,
  };
}

/** A codec of the map whose rows are places, always the same object. */
export function placeCodec({
  mapTable,
  mapCodec,
  names,
}: HiddenTables): AnyCodec<DevicePlace, unknown> {
  const [page, generation, where] = placeWords(mapTable, names);
  const place: DevicePlace = { ...IN_DELTA };
  const decode = ({ i32 }: Views, at: number): DevicePlace => {
    place.page = i32[at + page] >>> 0;
    place.generation = i32[at + generation];
    place.where = i32[at + where] >>> 0;
    return place;
  };
  return { ...mapCodec, decode } as unknown as AnyCodec<DevicePlace, unknown>;
}

/** Where in a row of the map the words of the place lie. */
export function placeWords(mapTable: Table, names: HiddenTables["names"]): number[] {
  const { fields } = layoutOf(mapTable);
  return names.map((name) => fields.find((each) => each.name === name)!.offset >> 2);
}

/** Makes the hidden tables of a new one, and its root. */
export function createDeviceRoot(
  tx: Transaction,
  hidden: HiddenTables,
  codec: AnyCodec<never, never>,
): Address {
  const map = hidden.mapKind.create(tx, hidden.mapCodec);
  const delta = DELTA_KIND.create(tx, codec);
  const free = FREE_KIND.create(tx, hidden.freeCodec);
  const id = uniqueNumber();
  const entry = tx.allocate(ROOT_WORDS * 4);
  const { set } = tx;
  const at = set.bufferOf(entry);
  const { i32 } = set.arena;
  const roots: readonly (readonly [number, Address])[] = [
    [MAP, map],
    [DELTA, delta],
    [FREE, free],
  ];
  for (const [word, root] of roots) {
    i32[at + word] = regionIdOf(root) + 1;
    i32[at + word + 1] = wordOf(root);
  }
  i32[at + FILE] = Number(BigInt.asIntN(32, id >> 32n));
  i32[at + FILE + 1] = Number(BigInt.asIntN(32, id));
  set.markDirty(entry, 0, ROOT_WORDS);
  return tx.addressOf(entry);
}

/** The same as part of a transaction; also whether the file was made. */
export function readDeviceRoot(
  tx: Transaction,
  root: Address,
): DeviceRoot & { readonly isMade: boolean; readonly entry: number } {
  const entry = tx.open(tx.executor.memory.regionOf(root), wordOf(root));
  tx.depend(entry);
  const words = tx.views.i32.slice(tx.at, tx.at + ROOT_WORDS);
  if (!tx.settle(entry)) tx.conflict(entry);
  return { ...rootIn(words), isMade: words[MADE] !== 0, entry };
}

/** The words of a root. */
export function rootIn(words: Int32Array): DeviceRoot {
  const at = (word: number): Address => addressOf(words[word] - 1, words[word + 1]);
  return {
    map: at(MAP),
    delta: at(DELTA),
    free: at(FREE),
    fileHigh: words[FILE],
    fileLow: words[FILE + 1],
  };
}

export function deviceRootAt(executor: Executor, root: Address): DeviceRoot {
  return runReadOnly(
    executor,
    new Transaction(executor),
    (tx) => readDeviceRoot(tx, root),
    undefined,
  );
}

/** Notes that the file is about to be made. */
export function noteFile(tx: Transaction, entry: number): void {
  const at = tx.writable(entry, ROOT_WORDS);
  tx.set.arena.i32[at + MADE] = 1;
  tx.set.markDirty(entry, MADE, MADE + 1);
}

/** Empties a word of a root whose structure was dismantled, or says that it was empty. */
export function clearRoot(tx: Transaction, entry: number, part: "map" | "delta" | "free"): void {
  const word = { map: MAP, delta: DELTA, free: FREE }[part];
  const at = tx.writable(entry, ROOT_WORDS);
  tx.set.arena.i32.fill(0, at + word, at + word + 2);
  tx.set.markDirty(entry, word, word + 2);
}
