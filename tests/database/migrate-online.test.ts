/** Tables are migrated, there and back, while others read and write them without a pause. */

import { expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { localDatabase } from "../../src/database/local/local-database.ts";
import type { SituError } from "../../src/runtime/errors.ts";
import { Random } from "../../src/runtime/random.ts";
import { readSchemas } from "../../src/tables/catalogue.ts";
import { i64, str, u8, u32 } from "../../src/tables/fields.ts";
import { addField, dropField, renameField } from "../../src/tables/migrations/steps.ts";
import { table } from "../../src/tables/table.ts";
import { compareIndexes } from "../helpers/indexes.ts";
import { eventually, MIB, seed, sleep, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const ACCOUNTS = 600;
const TOTAL = BigInt(ACCOUNTS) * 100n;
const fields = { id: u32(), owner: str(12), balance: i64() };
const byOwner = { on: ["owner"] } as const;
const Account = table("account", fields, { key: "id", indexes: { byOwner } });
/** Ordered, with another field, and another name for one. */
const Next = table(
  "account",
  { id: u32(), holder: str(30), balance: i64(), level: u8() },
  {
    key: "id",
    ordered: true,
    indexes: { byOwner: { on: ["holder"] }, byLevel: { on: ["level"], kind: "hash" } },
  },
);
const Back = table("account", fields, { key: "id", indexes: { byOwner } });
const isolations = ["snapshot", "strict-serializable"] as const;

const THERE = [renameField("account", "owner", "holder"), addField(Next, "level", { default: 4 })];

interface Accounts {
  readonly db: Database;
  readonly random: Random;
}

/** Moves money; now and then an account gives all that it has to another one and is gone, or comes back. */
async function transfer({ db, random }: Accounts): Promise<void> {
  const [from, to] = [random.below(ACCOUNTS), random.below(ACCOUNTS)];
  const isolation = isolations[random.below(2)];
  if (from === to) return;
  const owner = `o${random.below(30)}`;
  const what = random.below(6);
  if (random.below(3) > 0) {
    db.transactSync(
      (tx) => {
        const [a, b] = [tx.get(Account, from), tx.get(Account, to)];
        if (a === undefined || b === undefined) {
          const id = a === undefined ? from : to;
          if (what < 4) tx.insert(Account, { id, owner, balance: 0n });
          return;
        }
        if (what === 0) {
          tx.delete(Account, from);
          tx.update(Account, to, { balance: b.balance + a.balance });
          return;
        }
        tx.update(Account, from, { balance: a.balance - 1n });
        if (what === 1) tx.put(Account, { ...b, owner, balance: b.balance + 1n });
        else tx.update(Account, to, { owner, balance: b.balance + 1n });
      },
      { isolation },
    );
    return;
  }
  // These stretch over several turns, and over several states of the migration.
  const body = async (tx: Parameters<Parameters<Database["transact"]>[0]>[0]): Promise<void> => {
    const a = await tx.get(Account, from);
    await sleep(random.below(3));
    const b = await tx.get(Account, to);
    if (a === undefined || b === undefined) return;
    await tx.update(Account, from, { balance: a.balance - 5n });
    await sleep(random.below(2));
    await tx.update(Account, to, { balance: b.balance + 5n });
  };
  await db.transact(body, { timeoutMs: 1_000, isolation }).catch((error: SituError) => {
    if (!error.retryable) throw error;
  });
}

/** All ways to read see one state. */
async function read({ db, random }: Accounts): Promise<void> {
  const sum = (rows: Iterable<{ readonly balance: bigint }>): bigint => {
    let total = 0n;
    for (const { balance } of rows) total += balance;
    return total;
  };
  const scan = db.scan(Account);
  using snapshot = db.snapshot();
  await sleep(random.below(4));
  expect(sum(scan)).toBe(TOTAL);
  expect(sum(snapshot.scan(Account))).toBe(TOTAL);
  const rows = snapshot.scan(Account).toArray();
  const byOwner = rows.filter(({ owner }) => owner === "o3").map(({ id }) => id);
  const found = [...snapshot.scan(Account, { index: "byOwner", eq: "o3" })].map(({ id }) => id);
  expect(found.sort()).toEqual(byOwner.sort());
  const id = random.below(ACCOUNTS);
  expect(snapshot.get(Account, id)).toEqual(rows.find((row) => row.id === id));
  db.get(Account, id);
}

it("there and back, several times: nothing is lost, and every reader sees one state", async () => {
  const db = await stores.open({ tables: [Account], memoryBytes: 128 * MIB });
  for (let from = 0; from < ACCOUNTS; from += 200) {
    db.transactSync((tx) => {
      for (let id = from; id < from + 200; id++) {
        tx.insert(Account, { id, owner: `o${id % 30}`, balance: 100n });
      }
    });
  }
  const others = await Promise.all(
    [1, 2].map(() => stores.open({ path: db.path, tables: [Account] })),
  );
  let isRunning = true;
  let turns = 0;
  const repeat = async (each: Database, salt: number, work: typeof read): Promise<void> => {
    const accounts = { db: each, random: new Random(seed + salt) };
    while (isRunning) {
      await work(accounts);
      turns++;
      await sleep(accounts.random.below(3));
    }
  };
  const busy = [
    repeat(db, 1, transfer),
    repeat(others[0], 2, transfer),
    repeat(others[1], 3, transfer),
    repeat(others[1], 4, transfer),
    repeat(db, 5, read),
    repeat(others[0], 6, read),
  ];
  const failed = Promise.all(busy);
  failed.catch(() => {
    isRunning = false;
  });
  const migrator = await stores.open({ path: db.path });
  for (let round = 0; round < 2 && isRunning; round++) {
    await migrator.migrate(THERE, { tables: [Next] });
    const back = [
      renameField("account", "holder", "owner"),
      dropField("account", "level"),
      { step: "drop index", table: "account", index: "byLevel" } as const,
    ];
    if (round === 1) break;
    await migrator.migrate(back, { tables: [Back] });
  }
  isRunning = false;
  await failed;
  expect(turns).toBeGreaterThan(50);
  const { executor } = localDatabase(db);
  await eventually(() => readSchemas(executor).every(({ schema }) => schema.remains === undefined));
  expect((await db.verify()).problems).toEqual([]);
  const next = await stores.open({ path: db.path, tables: [Next] });
  expect(compareIndexes(next, Next)).toBe(db.count(Account));
});
