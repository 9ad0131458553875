/** `isolation: "snapshot"`: one moment to read, first committer wins, keys stay unique. */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { TransactOptions } from "../../src/database/transact-options.ts";
import type { Transaction } from "../../src/database/transaction.ts";
import { i64, str, u32 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { compareIndexes } from "../helpers/indexes.ts";
import { failure, failureSync, Gate, MIB, sleep, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const fields = { id: u32(), name: str(20), balance: i64() };
const Hashed = table("hashed", fields, {
  key: "id",
  indexes: { byName: { on: ["name"], unique: true, kind: "hash" } },
});
const Ordered = table("ordered", fields, {
  key: "id",
  ordered: true,
  indexes: { byName: { on: ["name"], unique: true } },
});

interface Account {
  id: number;
  name: string;
  balance: bigint;
}
type Accounts = Table<Account, number, Partial<Omit<Account, "id">>>;
const tables: readonly Accounts[] = [Hashed, Ordered];
const SNAPSHOT = { isolation: "snapshot" } as const;

const row = (id: number, balance = 100n) => ({ id, name: `name ${id}`, balance });

/** Two databases of one store, as two threads would have them; ids 0, 100, … lie far apart. */
async function twoOf(options: { maxSnapshotMs?: number } = {}): Promise<[Database, Database]> {
  const db = await stores.open({ tables, memoryBytes: 32 * MIB, ...options });
  for (const Each of tables) {
    db.transactSync((tx) => {
      for (let id = 0; id < 1_000; id++) tx.insert(Each, row(id));
    });
  }
  return [db, await stores.open({ path: db.path, tables, ...options })];
}

/** Runs a body, and `meanwhile` in the middle of its first attempt; says how often it ran. */
function interrupted(
  db: Database,
  before: (tx: Transaction) => void,
  meanwhile: () => void,
  after: (tx: Transaction) => void,
  options = SNAPSHOT as { isolation: "snapshot" | "strict-serializable" },
): number {
  let attempts = 0;
  db.transactSync((tx) => {
    before(tx);
    if (++attempts === 1) meanwhile();
    after(tx);
  }, options);
  return attempts;
}

const set = (db: Database, Each: Accounts, id: number, balance: bigint): void =>
  db.transactSync((tx) => tx.update(Each, id, { balance }));

describe.each(tables.map((each) => [each.name, each] as const))("%s", (_, Each) => {
  it("reads see the moment of the beginning, and nothing makes a reader start again", async () => {
    const [db, other] = await twoOf();
    const conflicts = db.stats().counters.conflicts;
    const attempts = interrupted(
      db,
      (tx) => expect(tx.get(Each, 0)?.balance).toBe(100n),
      () => {
        other.transactSync((tx) => {
          for (let id = 0; id < 1_000; id++) {
            if (id % 4 === 1) tx.delete(Each, id);
            else tx.update(Each, id, { balance: 7n, name: `changed ${id}` });
          }
          tx.insert(Each, row(5_000));
        });
      },
      (tx) => {
        expect(tx.get(Each, 500)).toEqual(row(500));
        expect(tx.getMany(Each, [1, 5_000])).toEqual([row(1), undefined]);
        expect(tx.count(Each)).toBe(1_000);
        expect([...tx.scan(Each)].every(({ balance }) => balance === 100n)).toBe(true);
        const asOf = (value: string) => tx.get(Each, value as never, { index: "byName" } as never);
        expect(asOf("name 1")).toEqual(row(1));
        expect(asOf("changed 4")).toBeUndefined();
      },
    );
    expect(attempts).toBe(1);
    expect(db.stats().counters.conflicts).toBe(conflicts);
  });

  it("its own writes are visible, by key, in scans, in counts, through indexes", async () => {
    const [db, other] = await twoOf();
    // Rows of one bucket conflict, and which ones do depends on the table's seed: then it is run again.
    let balance: bigint | undefined;
    const attempts = interrupted(
      db,
      (tx) => {
        balance = tx.get(Each, 900)!.balance;
        tx.update(Each, 3, { balance: 5n });
        tx.insert(Each, { ...row(2_000), name: "mine" });
        tx.delete(Each, 400);
      },
      () => set(other, Each, 900, 1n),
      (tx) => {
        expect(tx.get(Each, 3)?.balance).toBe(5n);
        expect(tx.has(Each, 400)).toBe(false);
        expect(tx.count(Each)).toBe(1_000);
        const seen = new Map([...tx.scan(Each)].map(({ id, balance }) => [id, balance]));
        expect([seen.get(3), seen.get(400), seen.get(900), seen.get(2_000)]).toEqual([
          5n,
          undefined,
          balance,
          100n,
        ]);
        const mine = tx.get(Each, "mine" as never, { index: "byName" } as never);
        expect(mine).toMatchObject({ id: 2_000 });
        expect(tx.get(Each, "name 400" as never, { index: "byName" } as never)).toBeUndefined();
      },
    );
    expect(balance).toBe(attempts === 1 ? 100n : 1n);
    expect(db.get(Each, 2_000)?.name).toBe("mine");
    expect(compareIndexes(db, Each)).toBe(1_000);
  });

  it("first committer wins: the other is run again, with a new snapshot", async () => {
    const [db, other] = await twoOf();
    const seen: bigint[] = [];
    const attempts = interrupted(
      db,
      (tx) => seen.push(tx.get(Each, 100)!.balance),
      () => set(other, Each, 100, 40n),
      (tx) => tx.update(Each, 100, { balance: tx.get(Each, 100)!.balance + 1n }),
    );
    expect([attempts, seen]).toEqual([2, [100n, 40n]]);
    expect(db.get(Each, 100)?.balance).toBe(41n);
    // The same when the row is written without having been read, put, or deleted.
    for (const write of [
      (tx: Transaction) => tx.update(Each, 200, { name: "blind" }),
      (tx: Transaction) => tx.put(Each, { ...row(200, 9n), name: "blind" }),
      (tx: Transaction) => tx.delete(Each, 200),
    ]) {
      const times = interrupted(
        db,
        (tx) => tx.get(Each, 0),
        () => set(other, Each, 200, 1n),
        write,
      );
      expect(times).toBe(2);
    }
    expect(db.get(Each, 200)).toBeUndefined();
  });

  it("write skew happens here, and not under strict serializability", async () => {
    const [db, other] = await twoOf();
    const skew = (isolation: "snapshot" | "strict-serializable") => {
      for (const id of [0, 900]) set(db, Each, id, 1n);
      const leave = (tx: Transaction, id: number): void => {
        const on = tx.getMany(Each, [0, 900]).filter((each) => each?.balance === 1n).length;
        if (on === 2) tx.update(Each, id, { balance: 0n });
      };
      const attempts = interrupted(
        db,
        (tx) => void tx.getMany(Each, [0, 900]),
        () => other.transactSync((tx) => leave(tx, 900), { isolation }),
        (tx) => leave(tx, 0),
        { isolation },
      );
      return [attempts, db.get(Each, 0)!.balance + db.get(Each, 900)!.balance];
    };
    expect(skew("snapshot")).toEqual([1, 0n]);
    expect(skew("strict-serializable")).toEqual([2, 1n]);
  });

  it("keys stay unique: of two that insert one, the second is told", async () => {
    const [db, other] = await twoOf();
    let attempts = 0;
    failureSync("SITU_EXISTS", () =>
      db.transactSync((tx) => {
        expect(tx.has(Each, 3_000)).toBe(attempts > 0);
        if (++attempts === 1) other.transactSync((inner) => inner.insert(Each, row(3_000, 1n)));
        tx.insert(Each, row(3_000, 2n));
      }, SNAPSHOT),
    );
    expect(attempts).toBe(2);
    expect(db.get(Each, 3_000)?.balance).toBe(1n);
    // A row that another has deleted meanwhile is missing, and not brought back.
    attempts = 0;
    failureSync("SITU_MISSING", () =>
      db.transactSync((tx) => {
        tx.get(Each, 3_000);
        if (++attempts === 1) other.transactSync((inner) => inner.delete(Each, 3_000));
        tx.update(Each, 3_000, { balance: 3n });
      }, SNAPSHOT),
    );
    expect([attempts, db.get(Each, 3_000)]).toEqual([2, undefined]);
  });

  it("unique values stay unique, also where the rows differ", async () => {
    const [db, other] = await twoOf();
    let attempts = 0;
    failureSync("SITU_UNIQUE", () =>
      db.transactSync((tx) => {
        expect(tx.get(Each, "taken" as never, { index: "byName" } as never) === undefined).toBe(
          attempts === 0,
        );
        if (++attempts === 1) {
          other.transactSync((inner) => inner.update(Each, 10, { name: "taken" }));
        }
        tx.update(Each, 800, { name: "taken" });
      }, SNAPSHOT),
    );
    expect(attempts).toBe(2);
    expect(db.get(Each, 800)?.name).toBe("name 800");
    // And a value that has become free can be taken.
    attempts = interrupted(
      db,
      () => {},
      () => other.transactSync((inner) => inner.delete(Each, 10)),
      (tx) => tx.update(Each, 800, { name: "taken" }),
    );
    expect(attempts).toBe(2);
    expect(db.get(Each, 800)?.name).toBe("taken");
    expect(compareIndexes(db, Each)).toBe(999);
  });

  it("a body that fails leaves nothing behind", async () => {
    const [db] = await twoOf();
    expect(() =>
      db.transactSync((tx) => {
        tx.delete(Each, 1);
        tx.insert(Each, row(4_000));
        throw new Error("mine");
      }, SNAPSHOT),
    ).toThrow("mine");
    expect([db.get(Each, 1)?.id, db.get(Each, 4_000)]).toEqual([1, undefined]);
    expect(compareIndexes(db, Each)).toBe(1_000);
    expect(db.stats().snapshots).toMatchObject({ open: 0, versionBytes: 0 });
  });
});

describe("asynchronous bodies", () => {
  it("each has its own moment, whatever runs in between", async () => {
    const [db] = await twoOf();
    const [begun, gate] = [new Gate(), new Gate()];
    let attempts = 0;
    const reader = db.transact(async (tx) => {
      attempts++;
      const first = await tx.get(Ordered, 1);
      begun.open();
      await gate.opened;
      const rows = await tx.scan(Ordered, { gte: 0, lt: 10 }).toArray();
      return [first, await tx.count(Ordered), rows.map(({ balance }) => balance)];
    }, SNAPSHOT);
    await begun.opened;
    expect(db.stats().snapshots.open).toBe(1);
    for (let id = 0; id < 10; id++) set(db, Ordered, id, 0n);
    await db.transact((tx) => tx.delete(Ordered, 1), SNAPSHOT);
    gate.open();
    expect(await reader).toEqual([row(1), 1_000, Array(10).fill(100n)]);
    expect(attempts).toBe(1);
    expect(db.stats().snapshots.open).toBe(0);
  });

  it("first committer wins among many", async () => {
    const [db, other] = await twoOf();
    const increment = (via: Database) =>
      via.transact(async (tx) => {
        const { balance } = (await tx.get(Hashed, 1))!;
        await sleep(1);
        await tx.update(Hashed, 1, { balance: balance + 1n });
      }, SNAPSHOT);
    await Promise.all(Array.from({ length: 12 }, (_, n) => increment(n % 2 === 0 ? db : other)));
    expect(db.get(Hashed, 1)?.balance).toBe(112n);
    expect(db.stats().snapshots.open).toBe(0);
  });

  it("a signal, a deadline or an error releases the snapshot", async () => {
    const [db] = await twoOf();
    const controller = new AbortController();
    const [begun, never] = [new Gate(), new Gate()];
    const endless = (options: TransactOptions): Promise<unknown> =>
      db.transact(
        async (tx) => {
          await tx.get(Ordered, 1);
          begun.open();
          await never.opened;
        },
        { ...SNAPSHOT, ...options },
      );
    const aborted = failure("SITU_ABORTED", () => endless({ signal: controller.signal }));
    await begun.opened;
    controller.abort();
    await aborted;
    await failure("SITU_TIMEOUT", () => endless({ timeoutMs: 30 }));
    await expect(
      db.transact(async (tx) => {
        await tx.get(Ordered, 1);
        throw new Error("mine");
      }, SNAPSHOT),
    ).rejects.toThrow("mine");
    expect(db.stats().snapshots).toMatchObject({ open: 0, versionBytes: 0 });
  });
});

describe("limits and bad input", () => {
  it("a body that outlives maxSnapshotMs is told, and changes nothing", async () => {
    const [db] = await twoOf({ maxSnapshotMs: 60 });
    let attempts = 0;
    await failure("SITU_SNAPSHOT_TOO_OLD", () =>
      db.transact(async (tx) => {
        attempts++;
        await tx.update(Ordered, 1, { balance: 1n });
        await tx.get(Ordered, 2);
        // The background looks for such snapshots twice in a second.
        await sleep(1_200);
        await tx.get(Ordered, 3);
      }, SNAPSHOT),
    );
    expect(attempts).toBe(1);
    expect(db.get(Ordered, 1)?.balance).toBe(100n);
    // The strict kind takes the time that it needs.
    await db.transact(async (tx) => {
      await tx.get(Ordered, 2);
      await sleep(100);
      await tx.update(Ordered, 1, { balance: 1n });
    });
    expect(db.get(Ordered, 1)?.balance).toBe(1n);
  });

  it("an isolation that does not exist gets a code", async () => {
    const [db] = await twoOf();
    for (const isolation of ["serializable", "", null, 1, {}] as never[]) {
      failureSync("SITU_CONFIG", () => db.transactSync(() => 1, { isolation }));
      await failure("SITU_CONFIG", () => db.transact(() => 1, { isolation }));
    }
    failureSync("SITU_CONFIG", () => db.transactSync(() => 1, { isolate: "snapshot" } as never));
    expect(db.transactSync(() => 1, { isolation: undefined } as never)).toBe(1);
    expect(db.transactSync(() => 1, { isolation: "strict-serializable" })).toBe(1);
  });

  it("objects: what another wrote or freed meanwhile is as it was", async () => {
    const [db, other] = await twoOf();
    const [pointer, second] = db.transactSync((tx) => {
      const made = [tx.alloc(16), tx.alloc(16)];
      tx.write(made[0], new Uint8Array([1, 2, 3]));
      return made;
    });
    let attempts = interrupted(
      db,
      (tx) => expect([...tx.read(pointer)].slice(0, 3)).toEqual([1, 2, 3]),
      () =>
        other.transactSync((tx) => {
          tx.write(pointer, new Uint8Array([9]));
          tx.free(second);
        }),
      (tx) => {
        expect([...tx.read(pointer)].slice(0, 3)).toEqual([1, 2, 3]);
        expect(tx.read(second).length).toBe(16);
      },
    );
    expect(attempts).toBe(1);
    expect([...db.readObject(pointer)].slice(0, 3)).toEqual([9, 2, 3]);
    failureSync("SITU_FREED", () => db.transactSync((tx) => tx.read(second), SNAPSHOT));
    attempts = interrupted(
      db,
      (tx) => tx.read(pointer),
      () => other.transactSync((tx) => tx.write(pointer, new Uint8Array([7]))),
      (tx) => tx.write(pointer, new Uint8Array([tx.read(pointer)[0] + 1])),
    );
    expect([attempts, db.readObject(pointer)[0]]).toEqual([2, 8]);
  });
});
