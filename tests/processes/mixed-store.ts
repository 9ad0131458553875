/**
 * The store of the mixed storm: lists that tell their own past, in a table of every kind, and money
 * that must not get lost, in tables that grow and shrink.
 *
 * A list's number says which table it is in, so that one transaction uses several kinds. All tables
 * are declared alike and differ in how rows lie (hashed by hopscotch, in buckets or by Robin Hood, ordered, on the
 * device), whether they are small enough to lie there or only a pointer does, and in the indexes that must follow.
 */

import { localDatabase } from "../../src/database/local/local-database.ts";
import { knownDevice } from "../../src/device/device.ts";
import {
  bytes,
  type Database,
  type DurabilityMode,
  i64,
  open,
  str,
  type Table,
  table,
  u32,
} from "../../src/index.ts";
import { type DeviceWork, workOf } from "../../src/tables/device/device-work.ts";
import { COUNTERS, fillCounters } from "./mixed-counters.ts";

export interface List {
  id: number;
  /** Its generation: lists of one can be found together. */
  generation: number;
  /** Changes with every append, and no other list of the table has the same. */
  tag: number;
  /** How often the device's threads have written it anew. */
  rewrites: number;
  values: Uint8Array;
}
export type Lists = Table<List, number, Partial<Omit<List, "id">>>;

/** Rows up to 128 bytes lie in the structure itself. */
const INLINE_BYTES = 96;
const numbers = { id: u32(), generation: u32(), tag: u32(), rewrites: u32() };
const inline = { ...numbers, values: bytes(INLINE_BYTES) };
const behindPointer = { ...numbers, values: bytes() };
const byGeneration = { on: ["generation"] } as const;
const byGenerationHash = { on: ["generation"], kind: "hash" } as const;
const byTag = { on: ["tag"], unique: true } as const;
const byTagHash = { on: ["tag"], unique: true, kind: "hash" } as const;

export const KINDS: readonly Lists[] = [
  table("hopscotch-inline", inline, { key: "id" }),
  table("hopscotch-pointer", behindPointer, { key: "id", indexes: { byGeneration, byTagHash } }),
  table("buckets-inline", inline, {
    key: "id",
    layout: "buckets",
    indexes: { byGeneration: byGenerationHash, byTag },
  }),
  table("buckets-pointer", behindPointer, { key: "id", layout: "buckets" }),
  table("robinhood-inline", inline, { key: "id", layout: "robinhood", indexes: { byTagHash } }),
  table("robinhood-pointer", behindPointer, { key: "id", layout: "robinhood" }),
  table("ordered-inline", inline, { key: "id", ordered: true, indexes: { byTagHash } }),
  table("ordered-pointer", behindPointer, {
    key: "id",
    ordered: true,
    indexes: { byGeneration, byTag },
  }),
  table("device-hashed", behindPointer, { key: "id", storage: "device", indexes: { byTagHash } }),
  table("device-ordered", behindPointer, {
    key: "id",
    ordered: true,
    storage: "device",
    indexes: { byGeneration, byTag },
  }),
];

/** Whose rows the threads of the device write anew. */
export const IN_THREADS = KINDS.find(({ name }) => name === "device-hashed")!;

/** What there is to do for the device tables that a process has used so far. */
export function deviceWorkOf(db: Database): readonly DeviceWork[] {
  const device = knownDevice(localDatabase(db).executor);
  return device === undefined ? [] : workOf(device);
}

export const LISTS_PER_GENERATION = 2 * KINDS.length;
const VALUE_BYTES = 6;
/** The longest list that fits where rows lie inline. */
export const MOST_VALUES = INLINE_BYTES / VALUE_BYTES;
/** From here on lists are left alone, for those of the next generation. */
export const LONG_LIST = MOST_VALUES - 6;
/** A list's tags: one for each length. */
const TAGS = 64;

export function kindOf(id: number): Lists {
  return KINDS[id % KINDS.length];
}

export function generationOf(id: number): number {
  return Math.floor(id / LISTS_PER_GENERATION);
}

/** The lists of a table in a generation. */
export function listsIn(lists: Lists, generation: number): number[] {
  const kind = KINDS.indexOf(lists);
  const first = generation * LISTS_PER_GENERATION;
  return Array.from(
    { length: LISTS_PER_GENERATION / KINDS.length },
    (_, i) => first + i * KINDS.length + kind,
  );
}

export function rowOf(id: number, values: readonly number[], rewrites = 0): List {
  const data = Buffer.alloc(values.length * VALUE_BYTES);
  for (const [i, value] of values.entries()) data.writeUIntLE(value, i * VALUE_BYTES, VALUE_BYTES);
  return {
    id,
    generation: generationOf(id),
    tag: id * TAGS + (values.length % TAGS),
    rewrites,
    values: new Uint8Array(data),
  };
}

export function valuesIn(row: List | undefined): number[] {
  if (row === undefined) return [];
  const data = Buffer.from(row.values);
  const count = data.length / VALUE_BYTES;
  return Array.from({ length: count }, (_, i) => data.readUIntLE(i * VALUE_BYTES, VALUE_BYTES));
}

/** Values that a process appends: no other process ever appends the same. */
export function newValue(life: number, count: number): number {
  return life * 2 ** 24 + count;
}

export const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
/** Money outside of accounts. Tokens come and go, so tables grow, split, merge and collapse. */
const token = { id: u32(), value: i64(), memo: str() };
export type Tokens = Table<
  { id: number; value: bigint; memo: string },
  number,
  { value?: bigint; memo?: string }
>;
export const TOKENS: readonly Tokens[] = [
  table("token-hopscotch", token, { key: "id" }),
  table("token-buckets", token, { key: "id", layout: "buckets" }),
  table("token-robinhood", token, { key: "id", layout: "robinhood" }),
  table("token-ordered", token, { key: "id", ordered: true }),
  table("token-device", token, { key: "id", storage: "device" }),
];
/** Row 0: the generation of lists that is being written now. */
export const Generation = table("generation", { id: u32(), current: u32() }, { key: "id" });

export const ACCOUNTS = 48;
/** Ids of tokens; each belongs to one of the tables. */
export const TOKEN_IDS = 2_400;
export const FIRST_BALANCE = 1_000n;
export const TOTAL = BigInt(ACCOUNTS) * FIRST_BALANCE;

/** So much that nothing waits in vain for a process that is stopped, on any machine. */
const TIMEOUT_MS = 120_000;

export function openMixed(path: string, durability?: DurabilityMode): Promise<Database> {
  return open({
    path,
    tables: [...KINDS, ...COUNTERS, Account, ...TOKENS, Generation],
    memoryBytes: 96 * 2 ** 20,
    timeoutMs: TIMEOUT_MS,
    ...(durability === undefined ? {} : { durability }),
  });
}

export function fillMixed(db: Database): void {
  db.transactSync((tx) => {
    for (let id = 0; id < ACCOUNTS; id++) tx.insert(Account, { id, balance: FIRST_BALANCE });
    tx.insert(Generation, { id: 0, current: 0 });
  });
  fillCounters(db);
}

/** How a transaction is run. */
export type MixedWay = "strict" | "snapshot" | "frozen" | "get";

/** A list, and the value to append. 0: reads it; -1: reads all of its table and generation. */
export type PlannedOperation = readonly [key: number, value: number];
export const READ = 0;
export const SCAN = -1;

/** A line of the log: what is about to be tried, then what became of it. */
export type LogLine =
  | {
      readonly number: number;
      readonly at: number;
      readonly way: MixedWay;
      readonly isAsync: boolean;
      readonly planned: readonly PlannedOperation[];
    }
  | { readonly number: number; readonly at: number; readonly lists: readonly (readonly number[])[] }
  | { readonly number: number; readonly at: number; readonly failed: string };
