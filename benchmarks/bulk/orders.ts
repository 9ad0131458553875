// The table of the bench, in each system: a million small orders, a tenth of them open and old.
import { type Database, enumOf, i64, open, str, table, u32 } from "situ";
import { loadPeer, type Peer } from "../harness/peers.ts";
import type { PostgresClient } from "../harness/postgres-client.ts";
import { createCluster, findPostgres } from "../harness/postgres-server.ts";
import { temporaryFolder } from "../harness/resources.ts";
import type { SqliteModule } from "../memory/sqlite.ts";
import type { TrustContext } from "../trust/measure.ts";

export const Order = table(
  "order",
  {
    id: u32(),
    customer: u32(),
    day: u32(),
    status: enumOf("open", "late", "paid"),
    total: i64(),
    note: str(24),
  },
  { key: "id" },
);

export const CUSTOMERS = 1_000;
const STATUS = ["open", "late", "paid"] as const;
export const LATE_DAY = 30;

export const orderRow = (id: number) => ({
  id,
  customer: (id * 7_919) % CUSTOMERS,
  day: (id * 31) % 100,
  status: STATUS[id % 3],
  total: BigInt(id % 10_000),
  note: `order ${id}`,
});

export const rowsOf = ({ options }: TrustContext): number => (options.quick ? 100_000 : 1_000_000);

const BATCH = 10_000;

export async function loadSitu(context: TrustContext): Promise<Database<"order">> {
  const db = await open({
    path: temporaryFolder(context.memoryFolder),
    durability: "none",
    memoryBytes: 2 ** 30,
    tables: [Order],
    timeoutMs: 120_000,
  });
  const rows = rowsOf(context);
  for (let from = 0; from < rows; from += BATCH) {
    db.transactSync((tx) => {
      for (let id = from; id < Math.min(rows, from + BATCH); id++) tx.insert(Order, orderRow(id));
    });
  }
  return db;
}

export type Sqlite = InstanceType<SqliteModule>;

export function loadSqlite(context: TrustContext): Peer<Sqlite> {
  const peer = loadPeer<SqliteModule>("better-sqlite3");
  if (!peer.available) return peer;
  const db = new peer.value(":memory:");
  db.pragma("journal_mode = MEMORY");
  db.pragma("synchronous = OFF");
  db.exec(`CREATE TABLE "order" (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, day INTEGER NOT NULL,
    status TEXT NOT NULL, total INTEGER NOT NULL, note TEXT NOT NULL)`);
  const insert = db.prepare(`INSERT INTO "order" VALUES (?, ?, ?, ?, ?, ?)`);
  const rows = rowsOf(context);
  db.transaction(() => {
    for (let id = 0; id < rows; id++) {
      const { customer, day, status, total, note } = orderRow(id);
      insert.run(id, customer, day, status, total, note);
    }
  })();
  return { ...peer, value: db };
}

export interface Postgres {
  readonly client: PostgresClient;
  stop(): Promise<void>;
}

export async function loadPostgres(context: TrustContext): Promise<Peer<Postgres>> {
  const peer = findPostgres();
  if (!peer.available) return peer;
  const cluster = await createCluster(peer.value, context.memoryFolder);
  const client = await cluster.start();
  await client.query(`CREATE TABLE "order" (id integer PRIMARY KEY, customer integer NOT NULL,
    day integer NOT NULL, status text NOT NULL, total bigint NOT NULL, note text NOT NULL)`);
  await client.query(`INSERT INTO "order" SELECT id, (id::bigint * 7919) % ${CUSTOMERS}, (id::bigint * 31) % 100,
    (ARRAY['open','late','paid'])[1 + id % 3], id % 10000, 'order ' || id
    FROM generate_series(0, ${rowsOf(context) - 1}) AS id`);
  await client.query(`VACUUM (FREEZE, ANALYZE) "order"`);
  return { ...peer, value: { client, stop: () => cluster.stop() } };
}

/** Milliseconds that something takes: the median of some rounds. */
export async function timed(rounds: number, run: () => unknown): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const startMs = performance.now();
    await run();
    times.push(performance.now() - startMs);
  }
  return times.sort((a, b) => a - b)[Math.floor(rounds / 2)];
}

/** The longest time in which no timer ran while something was going on, in milliseconds. */
export async function longestPause(run: () => Promise<unknown>): Promise<number> {
  let last = performance.now();
  let longest = 0;
  const look = (): void => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(look, 1);
  try {
    await run();
    look();
  } finally {
    clearInterval(timer);
  }
  return longest;
}
