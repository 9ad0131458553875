/** Scans over several nodes among writers, and over a network that loses, repeats and delays. */

import { afterEach, describe, expect, it } from "vitest";
import type { Fault } from "../../simulation/fabric/faults.ts";
import type { RemoteDatabase } from "../../src/database/remote/remote-database.ts";
import type { RemoteTransaction } from "../../src/database/remote/remote-transaction.ts";
import type { Request } from "../../src/fabric/fabric.ts";
import type { Reader, Writer } from "../../src/fabric/wire.ts";
import { SCAN } from "../../src/protocols/kinds.ts";
import { Scan } from "../../src/protocols/phases/scan.ts";
import { Part } from "../../src/protocols/writes.ts";
import type { SituError } from "../../src/runtime/errors.ts";
import { SCAN_HELD_ROWS, SCAN_STEP_ROWS } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { i64, str, u32 } from "../../src/tables/fields.ts";
import { tableId } from "../../src/tables/partitions.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { RemoteCluster } from "../helpers/remote-cluster.ts";
import { seed } from "../helpers/store.ts";

let cluster: RemoteCluster | undefined;
afterEach(async () => {
  await cluster?.close();
  cluster = undefined;
});

const Seat = table(
  "seat",
  { id: u32(), flight: u32(), holder: str(8) },
  {
    key: "id",
    ordered: true,
    indexes: { byFlight: { on: ["flight"] }, byHash: { on: ["flight"], kind: "hash" } },
  },
);
const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
const Chest = table("chest", { id: u32(), balance: i64() }, { key: "id", layout: "buckets" });
const Ledger = table("ledger", { id: u32(), balance: i64() }, { key: "id", ordered: true });
const TABLES: readonly Table[] = [Seat, Account, Chest, Ledger];

const BAD_NETWORK: Fault[] = [
  { kind: "loss", probability: 0.01 },
  { kind: "duplicate", probability: 0.05 },
  { kind: "delay", probability: 0.1, minUs: 0, maxUs: 2_000 },
  { kind: "reorder", probability: 0.1 },
];

function clusterOf(faults: Fault[], plus = 0): RemoteCluster {
  cluster = new RemoteCluster({ seed: seed + plus, faults });
  return cluster;
}

async function clients(of: RemoteCluster, count: number): Promise<RemoteDatabase[]> {
  const all: RemoteDatabase[] = [];
  for (let i = 0; i < count; i++) all.push(await of.client(TABLES));
  return all;
}

async function fillAccounts(db: RemoteDatabase, which: typeof Ledger, rows: number): Promise<void> {
  for (let from = 0; from < rows; from += 500) {
    await db.transact(async (tx) => {
      for (let id = from; id < Math.min(rows, from + 500); id++) {
        await tx.put(which, { id, balance: 100n });
      }
    });
  }
}

describe("phantoms", () => {
  /** Each way to ask who is on a flight; the answer decides whether a seat is taken. */
  const ways: [string, (tx: RemoteTransaction) => Promise<number>][] = [
    ["rows of a range", async (tx) => (await tx.scan(Seat, { lt: 1_000 }).toArray()).length],
    [
      "rows of an index",
      async (tx) => (await tx.scan(Seat, { index: "byFlight", eq: 1 }).toArray()).length,
    ],
    [
      "rows of a hash index",
      async (tx) => (await tx.scan(Seat, { index: "byHash", eq: 1 }).toArray()).length,
    ],
    ["a count of a range", (tx) => tx.count(Seat, { lt: 1_000 })],
    ["a count of an index", (tx) => tx.count(Seat, { index: "byFlight", eq: 1 })],
    ["a count of a hash index", (tx) => tx.count(Seat, { index: "byHash", eq: 1 })],
  ];

  const hashed: typeof ways = [Account, Chest].flatMap((which): typeof ways => [
    [
      `rows of ${which.name}`,
      async (tx) => (await tx.scan(which as typeof Account).toArray()).length,
    ],
    [`a count of ${which.name}`, (tx) => tx.count(which as typeof Account)],
  ]);

  it.each([...ways, ...hashed])("one that another adds is noticed: %s", async (_, ask) => {
    const here = clusterOf([]);
    const [db, other] = await clients(here, 2);
    let added = 0;
    // Wherever it is: a key of each node is among so many.
    const add = async (tx: RemoteTransaction): Promise<void> => {
      const id = added++;
      await tx.insert(Seat, { id, flight: 1, holder: "other" });
      await tx.insert(Account, { id, balance: 1n });
      await tx.insert(Chest, { id, balance: 1n });
    };
    await here.run(async () => {
      for (let round = 0; round < 12; round++) {
        let runs = 0;
        const found = await db.transact(async (tx) => {
          const count = await ask(tx);
          if (++runs === 1) await other.transact(add);
          if (round % 2 === 0) await tx.put(Ledger, { id: round, balance: 1n });
          return count;
        });
        // More often, if the backups' copies arrive meanwhile: they lie between the same rows.
        expect(runs, `round ${round}`).toBeGreaterThanOrEqual(2);
        expect(found, `round ${round}`).toBe(round + 1);
      }
    });
  });

  it.each(ways)("nobody sells a seat too many: %s", async (_, taken) => {
    const here = clusterOf(BAD_NETWORK);
    const databases = await clients(here, 5);
    const seats = 12;
    let sold = 0;
    await here.run(async () => {
      await Promise.all(
        databases.map(async (db, client) => {
          const random = new Random(seed + client);
          for (let i = 0; i < 4; i++) {
            const id = random.below(1_000);
            const isSold = await db.transact(async (tx) => {
              if ((await taken(tx)) >= seats || (await tx.has(Seat, id))) return false;
              await tx.insert(Seat, { id, flight: 1, holder: `c${client}` });
              return true;
            });
            if (isSold) sold++;
          }
        }),
      );
      expect(sold, `seed ${seed}`).toBe(seats);
      expect(await databases[0].count(Seat), `seed ${seed}`).toBe(seats);
    });
  });

  it.each([
    ["hopscotch", Account],
    ["buckets", Chest],
  ])("nor in a table without order: %s", async (_, which) => {
    const here = clusterOf(BAD_NETWORK);
    const databases = await clients(here, 4);
    const most = 9;
    await here.run(async () => {
      await Promise.all(
        databases.map(async (db, client) => {
          for (let i = 0; i < 4; i++) {
            await db.transact(async (tx) => {
              const rows =
                i % 2 === 0 ? await tx.count(which) : (await tx.scan(which).toArray()).length;
              if (rows < most) await tx.insert(which, { id: 10 * client + i, balance: 0n });
            });
          }
        }),
      );
      expect(await databases[0].count(which), `seed ${seed}`).toBe(most);
    });
  });
});

describe("one state", () => {
  it.each([
    ["ordered", Ledger],
    ["hopscotch", Account],
    ["buckets", Chest],
  ])("a scan among transfers always has the same sum: %s", async (_, given) => {
    const which = given as typeof Ledger;
    const here = clusterOf(BAD_NETWORK);
    const [first, ...databases] = await clients(here, 4);
    const rows = 600;
    const sums: bigint[] = [];
    await here.run(async () => {
      await fillAccounts(first, which, rows);
      let writers = databases.length;
      const write = async (db: RemoteDatabase, client: number): Promise<void> => {
        const random = new Random(seed + client);
        for (let i = 0; i < 12; i++) {
          const from = random.below(rows);
          const to = (from + 1 + random.below(rows - 1)) % rows;
          await db.transact(async (tx) => {
            const [a, b] = await tx.getMany(which, [from, to]);
            await tx.update(which, from, { balance: (a?.balance ?? 0n) - 7n });
            await tx.update(which, to, { balance: (b?.balance ?? 0n) + 7n });
          });
        }
        writers--;
      };
      const sum = (all: readonly { balance: bigint }[]): bigint =>
        all.reduce((total, { balance }) => total + balance, 0n);
      const read = async (): Promise<void> => {
        do {
          sums.push(sum(await first.scan(which).toArray()));
          sums.push(await first.transact(async (tx) => sum(await tx.scan(which).toArray())));
        } while (writers > 0);
      };
      await Promise.all([read(), ...databases.map(write)]);
      expect(new Set(sums), `seed ${seed}`).toEqual(new Set([100n * BigInt(rows)]));
      expect(sums.length).toBeGreaterThan(1);
    });
  });

  it("a body that has read what changes behind it is run again", async () => {
    const here = clusterOf([]);
    const [db, other] = await clients(here, 2);
    const rows = 2_000;
    await here.run(async () => {
      await fillAccounts(db, Ledger, rows);
      let runs = 0;
      const sum = await db.transact(async (tx) => {
        runs++;
        let total = 0n;
        let met = 0;
        for await (const { balance } of tx.scan(Ledger)) {
          total += balance;
          if (++met !== 1_500 || runs > 1) continue;
          // One row behind the scan's place, and one ahead of it.
          await other.transact(async (writer) => {
            await writer.put(Ledger, { id: 3, balance: 0n });
            await writer.put(Ledger, { id: 1_999, balance: 200n });
          });
        }
        return total;
      });
      expect(sum).toBe(100n * BigInt(rows));
      expect(runs).toBe(2);
    });
  });

  it.each([
    ["ordered", Ledger],
    ["hopscotch", Account],
    ["buckets", Chest],
  ])("nodes that split what is being scanned give no wrong rows: %s", async (_, given) => {
    const which = given as typeof Ledger;
    const here = clusterOf([]);
    const [db, other] = await clients(here, 2);
    await here.run(async () => {
      await fillAccounts(db, which, 1_000);
      let runs = 0;
      const ids = await db.transact(async (tx) => {
        runs++;
        const found: number[] = [];
        for await (const { id } of tx.scan(which)) {
          found.push(id);
          if (found.length === 700 && runs === 1) await fillAccounts(other, which, 3_000);
        }
        return found;
      });
      expect(runs).toBeGreaterThanOrEqual(2);
      expect(ids.sort((a, b) => a - b)).toEqual(Array.from({ length: 3_000 }, (_, id) => id));
    });
  });

  it("what was not read does not matter", async () => {
    const here = clusterOf([]);
    const [db, other] = await clients(here, 2);
    await here.run(async () => {
      await fillAccounts(db, Ledger, 2_000);
      let runs = 0;
      const found = await db.transact(async (tx) => {
        runs++;
        const some = await tx.scan(Ledger, { gte: 100, limit: 20 }).toArray();
        await other.transact((writer) => writer.put(Ledger, { id: 1_990, balance: 1n }));
        return some.map(({ id }) => id);
      });
      expect(found).toEqual(Array.from({ length: 20 }, (_, i) => 100 + i));
      expect(runs).toBe(1);
    });
  });

  it("a long scan outside of transactions ends with SITU_CONFLICT if it was disturbed", async () => {
    const here = clusterOf([]);
    const [db, other] = await clients(here, 2);
    const rows = SCAN_HELD_ROWS + 2_000;
    await here.run(async () => {
      await fillAccounts(db, Ledger, rows);
      const ids = (await db.scan(Ledger).toArray()).map(({ id }) => id);
      expect(ids).toEqual(Array.from({ length: rows }, (_, id) => id));
      let given = 0;
      const disturbed = (async () => {
        for await (const _ of db.scan(Ledger)) {
          if (++given !== 10) continue;
          await other.transact((tx) => tx.put(Ledger, { id: 5, balance: 1n }));
        }
      })();
      await expect(disturbed).rejects.toMatchObject({ code: "SITU_CONFLICT" });
      expect(given).toBe(rows);
      // One that is left early holds nothing, and says nothing.
      for await (const { id } of db.scan(Ledger, { reverse: true })) {
        expect(id).toBe(rows - 1);
        break;
      }
      expect(await db.count(Ledger, { gte: 10 })).toBe(rows - 10);
    });
  });
});

describe("steps", () => {
  it("bring their own place: repeated or late, they give the same rows", async () => {
    const here = clusterOf([]);
    const db = await here.client(TABLES);
    await here.run(async () => {
      await fillAccounts(db, Ledger, 1_200);
      await fillAccounts(db, Account as unknown as typeof Ledger, 1_200);
    });
    const endpoint = here.endpoint();
    for (const which of [Ledger, Account]) {
      const way = {
        index: undefined,
        range: { from: undefined, to: undefined },
        reverse: false,
        equal: undefined,
      };
      const step = async (
        place: Int32Array | undefined,
      ): Promise<{ words: number[]; next: Scan }> => {
        const words: number[] = [];
        let isOver = false;
        const next = new Scan(
          1,
          tableId(which.name),
          way,
          100,
          place,
          new Part(),
          (reply, count) => {
            for (let i = 0; i < count; i++) words.push(reply.views.i32[reply.at + i]);
          },
        );
        next.waiting = {
          ended() {
            isOver = true;
          },
        };
        endpoint.send(1, next);
        await here.fabric.settle(() => isOver);
        expect(next.error).toBeUndefined();
        return { words, next };
      };
      const places: (Int32Array | undefined)[] = [undefined];
      const answers: string[] = [];
      let rows = 0;
      for (let i = 0; ; i++) {
        const { words, next } = await step(places[i]);
        answers.push(words.join());
        rows += next.rows;
        if (next.isDone) break;
        places.push(next.place);
      }
      expect(rows).toBeGreaterThan(200);
      expect(answers.length).toBeGreaterThan(3);
      for (const i of [answers.length - 1, 0, 2, 1, 2]) {
        expect((await step(places[i])).words.join()).toBe(answers[i]);
      }
    }
    await endpoint.close();
  });

  it("that make no sense are refused with a code, and the node serves on", async () => {
    const here = clusterOf([]);
    const db = await here.client(TABLES);
    const endpoint = here.endpoint();
    const random = new Random(seed);
    await here.run(() => fillAccounts(db, Ledger, 300));
    const codes = new Map<string, number>();
    let answers = 0;
    for (let i = 0; i < 3_000; i++) {
      const known = TABLES[random.below(TABLES.length)];
      const words = Array.from({ length: random.below(12) }, () =>
        random.below(3) === 0 ? random.below(2 ** 31) - 2 ** 30 : random.below(40) - 2,
      );
      const request: Request = {
        kind: SCAN,
        encode(out: Writer) {
          if (random.below(10) > 0) out.word(tableId(known.name));
          if (random.below(2) === 0) {
            out.word(random.below(64));
            out.word(random.below(SCAN_STEP_ROWS));
          }
          for (const word of words) out.word(word);
        },
        replied: (_: Reader) => {
          answers++;
        },
        failed({ code }: SituError) {
          answers++;
          codes.set(code, (codes.get(code) ?? 0) + 1);
        },
      };
      endpoint.send(random.below(3), request);
      if (i % 100 === 99) await here.fabric.settle(() => answers === i + 1);
    }
    expect(answers).toBe(3_000);
    const known = ["SITU_PROTOCOL", "SITU_UNKNOWN_TABLE", "SITU_UNKNOWN_INDEX", "SITU_TYPE"];
    expect(
      [...codes.keys()].filter((code) => !known.includes(code)),
      `seed ${seed}`,
    ).toEqual([]);
    expect(codes.get("SITU_PROTOCOL")).toBeGreaterThan(100);
    await here.run(async () => expect(await db.count(Ledger)).toBe(300));
    await endpoint.close();
  });
});
