// How many bytes of log a change of an indexed field writes, batches' headers and padding included.
import { open, str, type Table, table, u32 } from "situ";
import { diskFolder } from "../durable/disk.ts";
import { counted } from "../harness/figures.ts";
import { randomStream } from "../harness/random.ts";
import { temporaryFolder } from "../harness/resources.ts";
import type { TrustContext, TrustMeasure } from "../trust/measure.ts";
import { CUSTOMERS, Customers, Orders, orderSource } from "./orders.ts";

const ROWS = 20_000;
const SCORES = 1_000_000;

const fields = { score: u32() };
const Plain = table("plain", { id: u32(), ...fields }, { key: "id" });
const Hashed = table(
  "hashed",
  { id: u32(), ...fields },
  { key: "id", indexes: { byScore: { on: ["score"], kind: "hash" } } },
);
const Numbered = table(
  "numbered",
  { id: u32(), ...fields },
  { key: "id", indexes: { byScore: { on: ["score"] } } },
);
const Named = table(
  "named",
  { id: str(), ...fields },
  { key: "id", indexes: { byScore: { on: ["score"] } } },
);

type AnyTable = Table<{ id: number | string; score: number }, number | string>;

const tables = [Plain, Hashed, Numbered, Named, Customers, Orders] as const;

async function openStore({ memoryFolder }: TrustContext) {
  return open({
    path: temporaryFolder(diskFolder()),
    memoryDir: temporaryFolder(memoryFolder),
    durability: "lazy",
    timeoutMs: 60_000,
    memoryBytes: 512 * 2 ** 20,
    checkpointBytes: 2 ** 40,
    checkpointMs: 24 * 3600 * 1000,
    tables: [...tables],
  });
}

type Store = Awaited<ReturnType<typeof openStore>>;

/** Bytes of log for each call of `work`. */
async function bytesOf(db: Store, count: number, work: () => void): Promise<number> {
  await db.durable();
  const before = db.stats().durability.logBytes;
  for (let done = 0; done < count; done++) work();
  await db.durable();
  return (db.stats().durability.logBytes - before) / count;
}

async function updates(db: Store, rows: AnyTable, count: number, named: boolean): Promise<number> {
  const random = randomStream(1);
  const idOf = (n: number): number | string => (named ? `customer-${n}` : n);
  for (let first = 0; first < ROWS; first += 500) {
    db.transactSync((tx) => {
      for (let n = first; n < first + 500; n++) {
        tx.insert(rows, { id: idOf(n), score: Math.floor(random() * SCORES) });
      }
    });
  }
  return bytesOf(db, count, () => {
    const id = idOf(Math.floor(random() * ROWS));
    const score = Math.floor(random() * SCORES);
    db.transactSync((tx) => tx.update(rows, id, { score }));
  });
}

export const logBytes: TrustMeasure = {
  name: "log-bytes",
  async run(context) {
    const { options, progress } = context;
    const count = options.quick ? 2_000 : 20_000;
    const db = await openStore(context);
    try {
      const measure = (rows: unknown, name: string, named = false): Promise<number> => {
        progress.show(`log bytes: ${name}`);
        return updates(db, rows as AnyTable, count, named);
      };
      const plain = await measure(Plain, "no index");
      const hashed = await measure(Hashed, "hash index");
      const numbered = await measure(Numbered, "ordered index");
      const named = await measure(Named, "ordered index, string key", true);
      progress.show("log bytes: orders");
      db.transactSync((tx) => {
        for (let id = 0; id < CUSTOMERS; id++) tx.insert(Customers, { id, orders: 0, spent: 0 });
      });
      const next = orderSource(0, randomStream(options.seed));
      const place = (): void => {
        const order = next();
        db.transactSync((tx) => {
          const { orders, spent } = tx.get(Customers, order.customer)!;
          tx.insert(Orders, order);
          const changes = { orders: orders + 1, spent: spent + order.total };
          tx.update(Customers, order.customer, changes);
        });
      };
      for (let placed = 0; placed < ROWS; placed++) place();
      const order = await bytesOf(db, count, place);
      const what = "log of an update of an ordered-indexed u32";
      return {
        figures: [
          counted(what, { atMost: 200 }, numbered, "bytes"),
          counted(`${what}, the row's key is a string`, { atMost: 200 }, named, "bytes"),
          counted("log of the order with three indexes", { atMost: 2_000 }, order, "bytes"),
        ],
        notes: [
          `log bytes of the same update without an index ${plain.toFixed(0)}, with a hash index ` +
            `${hashed.toFixed(0)}; ${count} transactions each, headers of batches and splits included`,
        ],
      };
    } finally {
      await db.close();
    }
  },
};
