/**
 * A store with everything in it that a store can have: hashed and ordered tables, indexes of all kinds,
 * rows in buckets, in leaves and as objects, large ones, objects that point to each other, arrays.
 * Random changes from a seed, and a text of all that is there, to compare with another moment's.
 */

import { crc32 } from "node:zlib";
import { attach } from "../../src/attach/attach.ts";
import type { Database } from "../../src/database/database.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import type { Transaction } from "../../src/database/transaction.ts";
import { Pointer } from "../../src/memory/pointer.ts";
import type { Random } from "../../src/runtime/random.ts";
import {
  bool,
  bytes,
  f64,
  i64,
  json,
  pointer,
  str,
  u8,
  u16,
  u32,
  u64,
} from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { verifyTables } from "../../src/tools/tables/verify.ts";
import { compareIndexes } from "./indexes.ts";

export const Account = table(
  "account",
  { id: u32(), owner: str(12), balance: i64(), open: bool(), score: f64() },
  {
    key: "id",
    indexes: { byOwner: { on: ["owner"], kind: "hash" }, byBalance: { on: ["balance", "id"] } },
  },
);
export const Event = table(
  "event",
  { day: u16(), name: str(20), serial: u64(), kind: u8(), note: str() },
  {
    key: ["day", "name"],
    ordered: true,
    indexes: { bySerial: { on: ["serial"], unique: true, kind: "hash" }, byKind: { on: ["kind"] } },
  },
);
export const Document = table(
  "document",
  { id: str(40), body: json<unknown>(), scan: bytes() },
  { key: "id" },
);
/** Chains of objects, and arrays whose elements change one by one. */
export const Chain = table("chain", { id: u32(), head: pointer(), list: pointer() }, { key: "id" });

export const WORLD = [Account, Event, Document, Chain];

const ACCOUNTS = 400;
const DAYS = 30;
const DOCUMENTS = 25;
const CHAINS = 12;
const OBJECT_BYTES = [16, 40, 100, 600, 5_000];
const ELEMENTS = 9;
const ELEMENT_BYTES = 20;

function account(tx: Transaction, random: Random): void {
  const id = random.below(ACCOUNTS);
  const dice = random.below(10);
  if (dice === 0) tx.delete(Account, id);
  else if (dice < 5) {
    tx.put(Account, {
      id,
      owner: `owner ${random.below(20)}`,
      balance: BigInt(random.below(1_000)),
      open: random.below(2) === 0,
      score: random.below(100) / 7,
    });
  } else if (tx.get(Account, id) !== undefined) {
    tx.update(Account, id, { balance: BigInt(random.below(1_000)) });
  }
}

function event(tx: Transaction, random: Random, serial: bigint): void {
  const day = random.below(DAYS);
  const name = `event ${random.below(40)}`;
  if (random.below(4) === 0) {
    tx.delete(Event, [day, name]);
    return;
  }
  const note = "n".repeat(random.below(10) === 0 ? 3_000 : random.below(60));
  tx.put(Event, { day, name, serial, kind: random.below(6), note });
}

function document(tx: Transaction, random: Random): void {
  const id = `document ${random.below(DOCUMENTS)}`;
  if (random.below(5) === 0) {
    tx.delete(Document, id);
    return;
  }
  const large = random.below(12) === 0 ? 300_000 : 2_000;
  const scan = new Uint8Array(random.below(large)).fill(1 + random.below(255));
  tx.put(Document, { id, body: { pages: random.below(9), tags: ["a", id] }, scan });
}

/** Puts an object in front of a chain, takes one off, or changes the first. */
function chain(tx: Transaction, random: Random): void {
  const id = random.below(CHAINS);
  const row = tx.get(Chain, id) ?? { id, head: null, list: null };
  const dice = random.below(3);
  if (dice === 0 && row.head !== null) {
    const next = Pointer.fromBytes(tx.read(row.head));
    tx.free(row.head);
    tx.put(Chain, { ...row, head: next });
    return;
  }
  if (dice === 1 && row.head !== null) {
    const data = tx.read(row.head);
    data.fill(1 + random.below(255), Pointer.BYTES);
    tx.write(row.head, data);
    return;
  }
  const made = tx.alloc(Pointer.BYTES + OBJECT_BYTES[random.below(OBJECT_BYTES.length)]);
  if (row.head !== null) tx.write(made, row.head.toBytes());
  tx.put(Chain, { ...row, head: made });
}

/** Makes an array, gives it back, or changes one of its elements. */
function list(tx: Transaction, random: Random): void {
  const id = random.below(CHAINS);
  const row = tx.get(Chain, id) ?? { id, head: null, list: null };
  if (row.list === null) {
    tx.put(Chain, { ...row, list: tx.allocArray(ELEMENT_BYTES, ELEMENTS) });
  } else if (random.below(8) === 0) {
    tx.free(row.list);
    tx.put(Chain, { ...row, list: null });
  } else {
    const element = row.list.at(random.below(ELEMENTS));
    tx.write(element, new Uint8Array(ELEMENT_BYTES).fill(1 + random.below(255)));
  }
}

let serials = 0n;

/** So many transactions, each with a few changes. */
export function change(db: Database, random: Random, transactions: number): void {
  for (let i = 0; i < transactions; i++) {
    db.transactSync((tx) => {
      for (let n = 1 + random.below(3); n > 0; n--) {
        const dice = random.below(20);
        if (dice < 8) account(tx, random);
        else if (dice < 13) event(tx, random, ++serials);
        else if (dice < 15) document(tx, random);
        else if (dice < 18) chain(tx, random);
        else list(tx, random);
      }
    });
  }
}

function shown(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (typeof part === "bigint") return `${part}n`;
    if (part instanceof Uint8Array) return `${part.length} bytes, ${crc32(part)}`;
    if (part instanceof Pointer) return `${part} ${part.incarnation}`;
    return part;
  });
}

/** All that is in the store, line by line, in an order of its own. */
export function describeWorld(db: Database): string[] {
  return db.transactSync((tx) => {
    const lines: string[] = [];
    for (const each of WORLD as readonly Table[]) {
      for (const row of tx.scan(each)) lines.push(`${each.name} ${shown(row)}`);
    }
    for (const { id, head, list } of tx.scan(Chain)) {
      for (let at = head, n = 0; at !== null; n++) {
        const data = tx.read(at);
        lines.push(`chain ${id}, object ${n}: ${at} ${at.incarnation} ${crc32(data)}`);
        at = Pointer.fromBytes(data);
      }
      for (let i = 0; list !== null && i < list.count; i++) {
        lines.push(`chain ${id}, element ${i}: ${crc32(tx.read(list.at(i)))}`);
      }
    }
    return lines.sort();
  });
}

/** Every structure is sound, and every index agrees with its rows. */
export async function worldProblems(db: Database): Promise<readonly string[]> {
  for (const each of WORLD) compareIndexes(db, each);
  const executor = await attach(settingsOf({ path: db.path }), (attached) => attached.executor);
  try {
    return (await verifyTables(executor)).problems;
  } finally {
    executor.close();
  }
}
