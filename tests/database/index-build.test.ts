/** Building indexes of filled tables, while others write to them. */

import { describe, expect, it } from "vitest";
import { attach } from "../../src/attach/attach.ts";
import type { AsyncTransaction } from "../../src/database/async-transaction.ts";
import type { Database } from "../../src/database/database.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import type { Executor } from "../../src/engine/executor.ts";
import { readAtSnapshot, runSync } from "../../src/engine/run.ts";
import { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import type { SituError, TimeoutError } from "../../src/runtime/errors.ts";
import { Random } from "../../src/runtime/random.ts";
import { openTable, readSchema, readSchemas, writeSchema } from "../../src/tables/catalogue.ts";
import { i64, str, u32 } from "../../src/tables/fields.ts";
import { buildIndexes } from "../../src/tables/indexes/build.ts";
import { structuresOf } from "../../src/tables/indexes/forms.ts";
import type { ScanSource } from "../../src/tables/scan-plan.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { compareIndexes } from "../helpers/indexes.ts";
import {
  eventually,
  failure,
  failureSync,
  Gate,
  seed,
  sleep,
  temporaryStores,
} from "../helpers/store.ts";

const stores = temporaryStores();

const fields = { id: u32(), owner: str(20), email: str(), balance: i64() };
const indexes = {
  byOwner: { on: ["owner"] },
  byEmail: { on: ["email"], unique: true, kind: "hash" },
  byBalance: { on: ["balance", "owner"] },
  byOwnerHash: { on: ["owner"], kind: "hash" },
  byMail: { on: ["email", "id"], unique: true },
} as const;

const KINDS = {
  hashed: {
    Bare: table("accounts", fields, { key: "id" }),
    Full: table("accounts", fields, { key: "id", indexes }),
    Unique: table("accounts", fields, { key: "id", indexes: { byEmail: indexes.byEmail } }),
  },
  ordered: {
    Bare: table("accounts", fields, { key: "id", ordered: true }),
    Full: table("accounts", fields, { key: "id", ordered: true, indexes }),
    Unique: table("accounts", fields, {
      key: "id",
      ordered: true,
      indexes: { byEmail: indexes.byEmail },
    }),
  },
};

type Account = { id: number; owner: string; email: string; balance: bigint };
type Accounts = Table<Account, number, Partial<Omit<Account, "id">>>;
const MEMORY = 64 * 2 ** 20;

const account = (id: number, turn = 0): Account => ({
  id,
  owner: `owner${(id + turn) % 9}`,
  email: `${id}.${turn}@x`,
  balance: BigInt(id % 4),
});

async function filled(Bare: Accounts, rows: number): Promise<Database> {
  const db = await stores.open({ tables: [Bare], memoryBytes: MEMORY });
  for (let from = 0; from < rows; from += 500) {
    db.transactSync((tx) => {
      for (let id = from; id < Math.min(rows, from + 500); id++) tx.insert(Bare, account(id));
    });
  }
  return db;
}

const statesOf = (db: Database): [string, string][] =>
  db.stats().tables[0].indexes.map(({ name, state }) => [name, state]);

describe.each(["hashed", "ordered"] as const)("a %s table", (kind) => {
  const Bare: Accounts = KINDS[kind].Bare;
  const Full: Accounts = KINDS[kind].Full;
  const Unique: Accounts = KINDS[kind].Unique;

  it("gets its indexes when they are declared", async () => {
    const db = await filled(Bare, 2_000);
    expect(statesOf(db)).toEqual([]);
    const other = await stores.open({ path: db.path, tables: [Full] });
    expect(compareIndexes(other, Full)).toBe(2_000);
    expect(statesOf(db)).toEqual(Object.keys(indexes).map((name) => [name, "ready"]));
    // The one who has not declared them learns of them.
    db.transactSync((tx) => {
      tx.delete(Bare, 7);
      tx.update(Bare, 8, { owner: "new" });
      tx.insert(Bare, account(5_000));
      failureSync("SITU_UNIQUE", () => tx.insert(Bare, { ...account(8), id: 6_000 }));
    });
    expect(compareIndexes(other, Full)).toBe(2_000);
  });

  it("while others write", async () => {
    const db = await filled(Bare, 3_000);
    const second = await stores.open({ path: db.path, tables: [Bare] });
    const random = new Random(seed);
    let running = true;
    let turn = 1;
    const change = (): [string, number, number] => [
      ["insert", "delete", "update", "put"][random.below(4)],
      random.below(4_000),
      ++turn,
    ];
    const writeSync = async (): Promise<void> => {
      while (running) {
        (random.below(2) === 0 ? db : second).transactSync((tx) => {
          for (let n = random.below(4); n >= 0; n--) {
            const [what, id, turn] = change();
            if (what === "delete") tx.delete(Bare, id);
            else if (what === "put") tx.put(Bare, account(id, turn));
            else if (!tx.has(Bare, id)) tx.insert(Bare, account(id, turn));
            else tx.update(Bare, id, { owner: `new${turn % 5}`, email: `${id}.${turn}` });
          }
        });
        await sleep(random.below(4));
      }
    };
    // These stretch over several turns, and over several states of the indexes.
    const writeAsync = async (each: Database): Promise<void> => {
      while (running) {
        const body = async (tx: AsyncTransaction): Promise<void> => {
          for (let n = 0; n < 2; n++) {
            const [what, id, turn] = change();
            if (what === "delete") await tx.delete(Bare, id);
            else await tx.put(Bare, account(id, turn));
            await sleep(1);
          }
        };
        // A long transaction among short ones may never get through, but fails cleanly then.
        await each.transact(body, { timeoutMs: 500 }).catch((error: SituError) => {
          if (!error.retryable) throw error;
        });
        await sleep(random.below(4));
      }
    };
    const writers = [writeSync(), writeAsync(db), writeAsync(second)];
    const built = await stores.open({ path: db.path, tables: [Full] });
    for (let round = 0; round < 5; round++) await sleep(2);
    compareIndexes(built, Full);
    running = false;
    await Promise.all(writers);
    expect(compareIndexes(built, Full)).toBe(built.count(Full));
    expect(turn).toBeGreaterThan(20);
  });

  it("two build the same at once", async () => {
    const db = await filled(Bare, 1_500);
    const opened = await Promise.all(
      [1, 2, 3].map(() => stores.open({ path: db.path, tables: [Full] })),
    );
    for (const each of opened) expect(compareIndexes(each, Full)).toBe(1_500);
    expect(statesOf(db).length).toBe(5);
  });

  it("duplicates: opening fails, names both rows, and leaves no index", async () => {
    const db = await filled(Bare, 400);
    db.transactSync((tx) => tx.update(Bare, 300, { email: account(5).email }));
    const error = await failure("SITU_UNIQUE", () =>
      stores.open({ path: db.path, tables: [Unique] }),
    );
    expect(error.message).toMatch(
      /byEmail of table accounts: row (5|300) .*but row (300|5) has it/,
    );
    expect(statesOf(db)).toEqual([]);
    expect(db.stats().executors.length).toBe(1);
    db.transactSync((tx) => tx.update(Bare, 301, { email: account(5).email }));
    await Promise.all(
      [1, 2].map(() =>
        failure("SITU_UNIQUE", () => stores.open({ path: db.path, tables: [Unique] })),
      ),
    );
    db.transactSync((tx) => {
      tx.delete(Bare, 300);
      tx.delete(Bare, 301);
    });
    const other = await stores.open({ path: db.path, tables: [Unique] });
    expect(compareIndexes(other, Unique)).toBe(398);
    failureSync("SITU_UNIQUE", () =>
      db.transactSync((tx) => tx.update(Bare, 6, { email: account(5).email })),
    );
  });

  it("what a failed attempt leaves behind is used by the next one", async () => {
    const db = await filled(Bare, 3_000);
    db.transactSync((tx) => tx.update(Bare, 2_999, { email: account(0).email }));
    const used: number[] = [];
    for (let round = 0; round < 6; round++) {
      await failure("SITU_UNIQUE", () => stores.open({ path: db.path, tables: [Unique] }));
      const { reservedBytes, freeBytes } = db.stats().memory;
      used.push(reservedBytes - freeBytes);
      // Entries that are left over are nobody's: they must not come back.
      db.transactSync((tx) => tx.update(Bare, 100 + round, { email: `new ${round}` }));
    }
    expect(used[5]).toBeLessThanOrEqual(used[1]);
    db.transactSync((tx) => tx.delete(Bare, 2_999));
    const [other] = await Promise.all(
      [1, 2].map(() => stores.open({ path: db.path, tables: [Unique] })),
    );
    expect(compareIndexes(other, Unique)).toBe(2_999);
    for (let id = 100; id < 106; id++) {
      expect(other.count(Unique, { index: "byEmail", eq: account(id).email })).toBe(0);
    }
  });

  it("a value that is too long: the same", async () => {
    const db = await filled(Bare, 200);
    db.transactSync((tx) => tx.update(Bare, 100, { email: "x".repeat(2_000) }));
    await failure("SITU_TOO_LARGE", () => stores.open({ path: db.path, tables: [Unique] }));
    expect(statesOf(db)).toEqual([]);
    db.transactSync((tx) => tx.update(Bare, 100, { email: "x".repeat(100) }));
    const other = await stores.open({ path: db.path, tables: [Unique] });
    expect(compareIndexes(other, Unique)).toBe(200);
  });

  it("a builder that was cut off: the next one goes on", async () => {
    const db = await filled(Bare, 1_000);
    const settings = settingsOf({ path: db.path });
    for (const batches of [0, 1, 2]) {
      const executor = await attach(settings, ({ executor }) => executor);
      const options = {
        executor,
        table: openTable(executor, Full),
        timeoutMs: 1_000,
        source: () => failingSource(executor, batches),
      };
      await expect(buildIndexes(options)).rejects.toThrow("cut off");
      executor.close();
      expect(statesOf(db)).toEqual([["byOwner", "building"]]);
      db.transactSync((tx) => {
        for (let id = batches; id < 1_000; id += 10) tx.delete(Bare, id);
        for (let id = batches + 3; id < 1_000; id += 20) tx.put(Bare, account(id, batches + 1));
      });
    }
    const other = await stores.open({ path: db.path, tables: [Full] });
    expect(compareIndexes(other, Full)).toBe(db.count(Bare));
  });

  it("a builder that died before it told anyone", async () => {
    const db = await filled(Bare, 100);
    const executor = await attach(settingsOf({ path: db.path }), ({ executor }) => executor);
    const { position } = openTable(executor, Bare);
    const tx = new Transaction(executor);
    const announce = (): void => {
      const schema = readSchema(tx, position);
      const added = Full.indexes.map((index) => ({
        ...index,
        state: "announced" as const,
        roots: structuresOf(Full, index).map((structure) => structure.create(tx)),
        build: index.name,
      }));
      writeSchema(tx, position, { ...schema, indexes: added });
    };
    runSync(executor, tx, 1_000, announce, undefined);
    executor.close();
    // One learns of the indexes by opening the store, the other one knows nothing.
    const knowing = await stores.open({ path: db.path, tables: [Bare] });
    knowing.transactSync((tx) => {
      for (let id = 200; id < 250; id++) tx.insert(Bare, account(id));
      for (let id = 0; id < 20; id++) tx.put(Bare, account(id, 1));
    });
    db.transactSync((tx) => {
      for (let id = 0; id < 250; id += 3) tx.delete(Bare, id);
      for (let id = 1; id < 100; id += 3) tx.update(Bare, id, { owner: "ignorant" });
    });
    expect(statesOf(db).every(([, state]) => state === "announced")).toBe(true);
    const other = await stores.open({ path: db.path, tables: [Full] });
    expect(compareIndexes(other, Full)).toBe(db.count(Bare));
  });
});

/** Reads some batches, then fails as if its process had ended. */
function failingSource(executor: Executor, batches: number): ScanSource {
  const tx = new Transaction(executor);
  const snapshot = Snapshot.take(executor, 10_000, 1_000);
  let left = batches;
  return {
    run: (step, argument) => {
      if (left-- === 0) throw new Error("cut off");
      return readAtSnapshot(executor, tx, snapshot, step, argument);
    },
    check: () => {},
    release: () => snapshot.release(),
  };
}

describe("transactions that began before", () => {
  const { Bare, Full } = KINDS.ordered;

  it("are waited for", async () => {
    const db = await filled(Bare, 100);
    const [begun, gate] = [new Gate(), new Gate()];
    const running = db.transact(async (tx) => {
      await tx.insert(Bare, account(1_000));
      await tx.delete(Bare, 50);
      begun.open();
      await gate.opened;
      await tx.insert(Bare, account(1_001));
      await tx.delete(Bare, 51);
    });
    await begun.opened;
    const opening = stores.open({ path: db.path, tables: [Full] });
    await eventually(() => statesOf(db).length > 0);
    await sleep(30);
    expect(statesOf(db)).toEqual([["byOwner", "announced"]]);
    gate.open();
    await running;
    expect(compareIndexes(await opening, Full)).toBe(100);
  });

  it("but not for ever: the error says who lags, and the next one finishes", async () => {
    const db = await filled(Bare, 100);
    const [begun, gate] = [new Gate(), new Gate()];
    const running = db.transact(async (tx) => {
      await tx.get(Bare, 1);
      begun.open();
      await gate.opened;
    });
    await begun.opened;
    const error = await failure("SITU_TIMEOUT", () =>
      stores.open({ path: db.path, tables: [Full], timeoutMs: 500 }),
    );
    expect(error.message).toContain(`process ${process.pid} `);
    expect((error as TimeoutError).holder?.pid).toBe(process.pid);
    expect(db.stats().executors.length).toBe(1);
    gate.open();
    await running;
    db.transactSync((tx) => tx.update(Bare, 3, { owner: "between" }));
    const other = await stores.open({ path: db.path, tables: [Full] });
    expect(compareIndexes(other, Full)).toBe(100);
  });
});

it("no room for an index: opening fails, and the memory is there again", async () => {
  const fields = { id: u32(), text: str() };
  const Bare = table("long", fields, { key: "id" });
  const byText = { on: ["text", "id"] } as const;
  const Indexed = table("long", fields, { key: "id", indexes: { byText } });
  const memoryBytes = 8 * 2 ** 20;
  const db = await stores.open({ tables: [Bare], memoryBytes });
  const usedBytes = (): number => {
    const { reservedBytes, freeBytes } = db.stats().memory;
    return reservedBytes - freeBytes;
  };
  let rows = 0;
  const insert = (): void => {
    const id = rows++;
    db.insert(Bare, { id, text: `${(id * 7_919) % 100_003} ${"x".repeat(800)}` });
  };
  // The index would need as much again.
  while (usedBytes() < 0.6 * memoryBytes) insert();
  const error = await failure("SITU_FULL", () => stores.open({ path: db.path, tables: [Indexed] }));
  expect(error.message).toContain("index byText of table long cannot be built, and was not added");
  expect(statesOf(db)).toEqual([]);
  // If it could not be freed at once, the next one who opens the store does.
  const { executor } = await stores.open({ path: db.path, tables: [Bare] });
  await eventually(() => readSchemas(executor).every(({ schema }) => !schema.remains));
  for (const more = rows + rows / 4; rows < more; ) insert();
  expect((await db.verify()).problems).toEqual([]);
  await db.resize(64 * 2 ** 20);
  const other = await stores.open({ path: db.path, tables: [Indexed] });
  expect(compareIndexes(other, Indexed)).toBe(rows);
});

describe("limits", () => {
  it("a table has so many indexes at most, whoever declared them", async () => {
    const many = (from: number, count: number) =>
      table(
        "t",
        { id: u32(), a: u32() },
        {
          key: "id",
          indexes: Object.fromEntries(
            Array.from({ length: count }, (_, n) => [`x${from + n}`, { on: ["a"] as const }]),
          ),
        },
      );
    const db = await stores.open({ tables: [many(0, 32)], memoryBytes: MEMORY });
    const error = await failure("SITU_SCHEMA", () =>
      stores.open({ path: db.path, tables: [many(32, 1)] }),
    );
    expect(error.message).toMatch(/32 indexes in the store, which is the most/);
  });
});
