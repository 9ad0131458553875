/** Scans and counts over several nodes give what those of a local database give. */

import { afterEach, describe, expect, it } from "vitest";
import type { AsyncTransaction } from "../../src/database/async-transaction.ts";
import type { Database } from "../../src/database/database.ts";
import type { RemoteDatabase } from "../../src/database/remote/remote-database.ts";
import type { RemoteTransaction } from "../../src/database/remote/remote-transaction.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { Random } from "../../src/runtime/random.ts";
import { bytes, i64, json, str, u32 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { RemoteCluster } from "../helpers/remote-cluster.ts";
import { MIB, seed, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
let cluster: RemoteCluster | undefined;
afterEach(async () => {
  await cluster?.close();
  cluster = undefined;
});

const Person = table(
  "person",
  { id: u32(), name: str(12), group: u32(), note: json() },
  {
    key: "id",
    ordered: true,
    indexes: {
      byName: { on: ["name"] },
      byGroup: { on: ["group"], kind: "hash" },
      byBoth: { on: ["group", "name"] },
    },
  },
);
const Edge = table(
  "edge",
  { from: i64(), to: str(), weight: u32() },
  { key: ["from", "to"], ordered: true, indexes: { byWeight: { on: ["weight", "from"] } } },
);
const Plain = table("plain", { id: u32(), value: u32() }, { key: "id" });
const Bucket = table("bucket", { id: u32(), value: u32() }, { key: "id", layout: "buckets" });
const Text = table(
  "text",
  { id: str(), text: str(), tag: bytes(4) },
  { key: ["id"], indexes: { byTag: { on: ["tag"], kind: "hash" } } },
);
const TABLES: readonly Table[] = [Person, Edge, Plain, Bucket, Text];

type Tx = AsyncTransaction | RemoteTransaction;
type AnyTx = {
  put(table: unknown, row: unknown): Promise<void>;
  delete(table: unknown, key: unknown): Promise<boolean>;
  scan(
    table: unknown,
    options?: unknown,
  ): AsyncIterable<unknown> & { toArray(): Promise<unknown[]> };
  count(table: unknown, options?: unknown): Promise<number>;
};
const any = (tx: Tx): AnyTx => tx as unknown as AnyTx;

function rowOf(random: Random, which: Table, most: number): Record<string, unknown> {
  const id = random.below(most);
  const name = `n${random.below(20)}`;
  if (which === Person) return { id, name, group: random.below(5), note: { id, more: name } };
  if (which === Edge) {
    const from = BigInt(random.below(30)) - 15n;
    return {
      from,
      to: `${"t".repeat(random.below(9))}${random.below(9)}`,
      weight: random.below(9),
    };
  }
  if (which === Text) {
    const tag = Uint8Array.of(random.below(4));
    return { id: `k${id}`, text: "x".repeat(random.below(400)), tag };
  }
  return { id, value: random.below(1_000) };
}

const keyOf = (which: Table, row: Record<string, unknown>): unknown =>
  which.singleKey ? row[which.key[0]] : which.key.map((name) => row[name]);

function optionsOf(
  random: Random,
  which: Table,
): { scan: object; count: object; isOrdered: boolean } {
  const pick = <T>(list: readonly T[]): T => list[random.below(list.length)];
  const row = (): Record<string, unknown> => rowOf(random, which, 500);
  const bound = (on: readonly string[], single: boolean): unknown => {
    const from = row();
    if (single) return from[on[0]];
    return on.slice(0, 1 + random.below(on.length)).map((name) => from[name]);
  };
  const index =
    random.below(3) === 0 || which.indexes.length === 0 ? undefined : pick(which.indexes);
  const isOrdered = index === undefined ? which.ordered : index.kind === "ordered";
  const options: Record<string, unknown> = {};
  if (index !== undefined) options.index = index.name;
  if (index?.kind === "hash") options.eq = row()[index.on[0]];
  const on = index?.on ?? which.key;
  const single = index === undefined ? which.singleKey : on.length === 1;
  if (isOrdered) {
    for (const name of ["gte", "gt", "lte", "lt"]) {
      if (random.below(4) === 0) options[name] = bound(on, single);
    }
    if (random.below(6) === 0) options.eq = bound(on, single);
  }
  const count = { ...options };
  if (isOrdered && random.below(2) === 0) options.reverse = true;
  if (isOrdered && random.below(3) === 0) options.limit = random.below(40);
  return { scan: options, count, isOrdered };
}

const shown = (rows: readonly unknown[], isOrdered: boolean): string[] => {
  const texts = rows.map((row) =>
    JSON.stringify(row, (_, value) => (typeof value === "bigint" ? `${value}n` : value)),
  );
  return isOrdered ? texts : texts.sort();
};

async function both(options: { seed: number; backups?: number; readsByVerb?: boolean }): Promise<{
  local: Database;
  remote: RemoteDatabase;
  run: <T>(program: () => Promise<T>) => Promise<T>;
}> {
  cluster = new RemoteCluster(options);
  const remote = await cluster.client(TABLES, options.readsByVerb);
  const local = await stores.open({ tables: [...TABLES], memoryBytes: 32 * MIB });
  const here = cluster;
  return { local, remote, run: (program) => here.run(program) };
}

async function fill(
  local: Database,
  remote: RemoteDatabase,
  random: Random,
  rows: number,
): Promise<void> {
  for (const which of TABLES) {
    for (let done = 0; done < rows; done += 50) {
      const chunk = Array.from({ length: 50 }, () => rowOf(random, which, 500));
      const write = (tx: Tx): Promise<unknown> =>
        Promise.all(chunk.map((row) => any(tx).put(which, row)));
      await local.transact(write);
      await remote.transact(write);
    }
  }
}

describe("equal to a local database", () => {
  it.each([0, 2])("random rows, bounds and orders, %i backups", async (backups) => {
    const { local, remote, run } = await both({ seed, backups });
    const random = new Random(seed + backups);
    await run(async () => {
      await fill(local, remote, random, 600);
      for (let i = 0; i < 150; i++) {
        const which = TABLES[random.below(TABLES.length)];
        const { scan, count, isOrdered } = optionsOf(random, which);
        const what = `seed ${seed}: ${which.name} ${shown([scan], true)[0]}`;
        const ask = async (tx: Tx): Promise<[string[], number]> => {
          const rows = await any(tx).scan(which, scan).toArray();
          return [shown(rows, isOrdered), await any(tx).count(which, count)];
        };
        const expected = await local.transact(ask);
        expect(await remote.transact(ask), what).toEqual(expected);
        const alone = await remote.scan(which, scan as never).toArray();
        expect(shown(alone, isOrdered), what).toEqual(expected[0]);
        expect(await remote.count(which, count as never), what).toBe(expected[1]);
      }
    });
  });

  it.each([
    ["message", false],
    ["verb", true],
  ])("what the transaction has written itself, with rows by %s", async (_, readsByVerb) => {
    const { local, remote, run } = await both({ seed, readsByVerb });
    const random = new Random(seed);
    await run(async () => {
      await fill(local, remote, random, 300);
      for (let i = 0; i < 60; i++) {
        const which = TABLES[random.below(TABLES.length)];
        const start = random.below(2 ** 31);
        const isLazy = random.below(2) === 0;
        // The same choices in every run of the body, here and there.
        const body = async (tx: Tx): Promise<unknown> => {
          const own = new Random(start);
          for (let round = 0; round < 2; round++) {
            const issued: Promise<unknown>[] = [];
            for (let writes = own.below(12); writes > 0; writes--) {
              const row = rowOf(own, which, 500);
              issued.push(
                own.below(3) === 0
                  ? any(tx).delete(which, keyOf(which, row))
                  : any(tx).put(which, row),
              );
            }
            if (!isLazy) await Promise.all(issued);
          }
          const { scan, count, isOrdered } = optionsOf(own, which);
          const counted = any(tx).count(which, count);
          const rows = any(tx).scan(which, scan).toArray();
          return [shown([scan], true), await counted, shown(await rows, isOrdered)];
        };
        const expected = await local.transact(body);
        const what = `seed ${seed}, ${which.name}, body ${start}`;
        expect(await remote.transact(body), what).toEqual(expected);
      }
      for (const which of TABLES) {
        const all = async (tx: Tx): Promise<string[]> =>
          shown(await any(tx).scan(which).toArray(), which.ordered);
        expect(await remote.transact(all)).toEqual(await local.transact(all));
      }
    });
  });

  it("what is refused, in the same words", async () => {
    const { local, remote, run } = await both({ seed });
    const cases: [Table, object][] = [
      [Plain, { gte: 1 }],
      [Plain, { reverse: true }],
      [Plain, { index: "byName" }],
      [Person, { index: "nothing" }],
      [Person, { index: 7 }],
      [Person, { index: "byGroup" }],
      [Person, { index: "byGroup", gte: 1 }],
      [Person, { index: "byGroup", eq: "one" }],
      [Person, { index: "byBoth", eq: [1, 2] }],
      [Person, { gte: "one" }],
      [Person, { limit: -1 }],
      [Person, { reverse: 1 }],
      [Person, { backwards: true }],
      [Edge, { eq: [1n, "a", 3] }],
      [Edge, { prefix: [1] }],
    ];
    const words = async (ask: () => Promise<unknown>): Promise<unknown> => {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof SituError)) throw error;
        return [error.code, error.message];
      }
    };
    await run(async () => {
      for (const [which, options] of cases) {
        const scan = (tx: Tx): Promise<unknown> => any(tx).scan(which, options).toArray();
        const count = (tx: Tx): Promise<unknown> => any(tx).count(which, options);
        for (const ask of [scan, count]) {
          const expected = await words(() => local.transact(ask));
          expect(expected).toHaveLength(2);
          expect(await words(() => remote.transact(ask))).toEqual(expected);
        }
        const alone = async (): Promise<unknown> => remote.scan(which, options as never).toArray();
        expect(await words(alone)).toEqual(await words(() => local.transact(scan)));
      }
    });
  });
});

describe("inside of a node", () => {
  it("gives the same, and refuses what it has locked itself", async () => {
    const { remote, run } = await both({ seed });
    const inside = await cluster!.inside(1, TABLES);
    await run(async () => {
      const ids = Array.from({ length: 900 }, (_, id) => id);
      await inside.transact((tx) =>
        Promise.all(
          ids.flatMap((id) => [
            tx.put(Plain, { id, value: id }),
            tx.put(Edge, { from: BigInt(id % 7), to: `t${id}`, weight: id % 5 }),
          ]),
        ),
      );
      for (const db of [inside, remote]) {
        const found = (await db.scan(Plain).toArray()).map(({ id }) => id);
        expect(found.sort((a, b) => a - b)).toEqual(ids);
        expect(await db.count(Edge, { index: "byWeight", eq: [3] })).toBe(180);
      }
      const locked = inside.transact(async (tx) => {
        await tx.getForUpdate(Plain, 7);
        return tx.count(Plain);
      });
      await expect(locked).rejects.toMatchObject({ code: "SITU_UNSUPPORTED" });
      // The other way round it can be had, and other tables have nothing to do with it.
      const sum = await inside.transact(async (tx) => {
        const before = await tx.count(Plain, {});
        const row = await tx.getForUpdate(Plain, 7);
        await tx.put(Plain, { id: 7, value: (row?.value ?? 0) + before });
        return before + (await tx.count(Edge));
      });
      expect(sum).toBe(1_800);
      expect(await remote.get(Plain, 7)).toEqual({ id: 7, value: 907 });
    });
  });
});

describe("while it goes on", () => {
  it("a body may change what it meets, and meets no row twice", async () => {
    const { remote, run } = await both({ seed });
    await run(async () => {
      for (const which of [Plain, Bucket]) {
        const ids = Array.from({ length: 700 }, (_, id) => id);
        await remote.transact((tx) =>
          Promise.all(ids.map((id) => tx.put(which, { id, value: 1 }))),
        );
        const met = await remote.transact(async (tx) => {
          const found: number[] = [];
          for await (const { id } of tx.scan(which)) {
            found.push(id);
            if (id % 3 === 0) await tx.delete(which, id);
            else await tx.update(which, id, { value: 2 });
          }
          return found;
        });
        expect(
          met.sort((a, b) => a - b),
          which.name,
        ).toEqual(ids);
        const rest = await remote.scan(which).toArray();
        expect(rest.every(({ id, value }) => value === 2 && id % 3 !== 0)).toBe(true);
        expect(rest.length).toBe(466);
      }
      await remote.transact((tx) =>
        Promise.all(
          Array.from({ length: 600 }, (_, id) =>
            tx.put(Person, { id, name: "a", group: 1, note: null }),
          ),
        ),
      );
      const met: number[] = [];
      await remote.transact(async (tx) => {
        met.length = 0;
        for await (const { id } of tx.scan(Person, { reverse: true })) {
          met.push(id);
          await tx.delete(Person, id);
        }
        expect(await tx.count(Person)).toBe(0);
        expect(await tx.scan(Person).toArray()).toEqual([]);
      });
      expect(met).toEqual(Array.from({ length: 600 }, (_, i) => 599 - i));
      expect(await remote.count(Person)).toBe(0);
    });
  });

  it("rows far larger than a step come one by one", async () => {
    const { local, remote, run } = await both({ seed });
    const sizes = [900_000, 10, 270_000, 150_000, 20, 262_144, 1_000_000, 5, 100_000, 90_000];
    await run(async () => {
      for (const which of [Text, Person]) {
        for (const [i, size] of sizes.entries()) {
          const text = String.fromCharCode(97 + i).repeat(size);
          const tag = Uint8Array.of(1);
          const row =
            which === Text
              ? { id: `k${i}`, text, tag }
              : { id: i, name: "same", group: 1, note: text };
          await local.transact((tx) => any(tx).put(which, row));
          await remote.transact((tx) => any(tx).put(which, row));
        }
      }
      const ways: [Table, object][] = [
        [Text, {}],
        [Text, { index: "byTag", eq: Uint8Array.of(1) }],
        [Person, {}],
        [Person, { reverse: true, limit: 4 }],
        [Person, { index: "byName", eq: "same", reverse: true }],
        [Person, { index: "byGroup", eq: 1 }],
      ];
      for (const [which, options] of ways) {
        const isOrdered = which === Person && !("eq" in options && options.eq === 1);
        const ask = async (tx: Tx): Promise<string[]> =>
          shown(await any(tx).scan(which, options).toArray(), isOrdered);
        const expected = await local.transact(ask);
        expect((await remote.transact(ask)).map((text) => text.slice(0, 99))).toEqual(
          expected.map((text) => text.slice(0, 99)),
        );
        expect(await remote.transact(ask)).toEqual(expected);
      }
    });
  });

  it("is over with its transaction", async () => {
    const { remote, run } = await both({ seed });
    await run(async () => {
      await remote.transact((tx) => tx.put(Plain, { id: 1, value: 1 }));
      let kept: RemoteTransaction | undefined;
      const scan = await remote.transact((tx) => {
        kept = tx;
        return { plan: tx.scan(Plain) };
      });
      await expect(scan.plan.toArray()).rejects.toMatchObject({ code: "SITU_CLOSED" });
      expect(() => kept?.scan(Plain)).toThrow(/has ended/);
      await expect(kept?.count(Plain)).rejects.toMatchObject({ code: "SITU_CLOSED" });
      const forgotten = remote.transact((tx) => [
        ...(tx.scan(Plain) as unknown as Iterable<unknown>),
      ]);
      await expect(forgotten).rejects.toMatchObject({ code: "SITU_TYPE" });
    });
  });
});
