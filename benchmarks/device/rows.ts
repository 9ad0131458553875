// The table of the bench, on the disk, in Situ and in PostgreSQL: rows of 1 KB as YCSB has them.
import { tmpdir } from "node:os";
import { type Database, open, str, table, u32 } from "situ";
import type { Peer } from "../harness/peers.ts";
import { PostgresClient } from "../harness/postgres-client.ts";
import { createCluster, findPostgres, superuser } from "../harness/postgres-server.ts";
import { temporaryFolder } from "../harness/resources.ts";
import type { TrustContext } from "../trust/measure.ts";

const text = () => str(100);

export const User = table(
  "usertable",
  {
    id: u32(),
    visits: u32(),
    field0: text(),
    field1: text(),
    field2: text(),
    field3: text(),
    field4: text(),
    field5: text(),
    field6: text(),
    field7: text(),
    field8: text(),
    field9: text(),
  },
  { key: "id", storage: "device" },
);

export const VISITS = 1_000;
/** `visits` below this: a tenth of the rows, spread over all pages. */
export const TENTH = VISITS / 10;

export const rowsOf = ({ options }: TrustContext): number => (options.quick ? 100_000 : 1_000_000);

const BATCH = 1_000;

const fieldOf = (id: number): string => String(id).padStart(10, "0").repeat(10);

export async function loadSitu(context: TrustContext): Promise<Database<"usertable">> {
  const db = await open({
    path: temporaryFolder(tmpdir()),
    durability: "lazy",
    memoryBytes: 2 ** 30,
    tables: [User],
    timeoutMs: 120_000,
  });
  const rows = rowsOf(context);
  for (let from = 0; from < rows; from += BATCH) {
    await db.transact(async (tx) => {
      for (let id = from; id < Math.min(rows, from + BATCH); id++) {
        const field = fieldOf(id);
        await tx.insert(User, {
          ...{ id, visits: (id * 7_919) % VISITS },
          ...{ field0: field, field1: field, field2: field, field3: field, field4: field },
          ...{ field5: field, field6: field, field7: field, field8: field, field9: field },
        });
      }
    });
  }
  await db.durable();
  return db;
}

export interface Postgres {
  readonly client: PostgresClient;
  /** Another connection. */
  connect(): Promise<PostgresClient>;
  stop(): Promise<void>;
}

export async function loadPostgres(context: TrustContext): Promise<Peer<Postgres>> {
  const peer = findPostgres();
  if (!peer.available) return peer;
  const cluster = await createCluster(peer.value, tmpdir());
  const client = await cluster.start();
  const fields = Array.from({ length: 10 }, (_, i) => `field${i}`);
  await client.query(`CREATE TABLE usertable (id integer PRIMARY KEY, visits integer NOT NULL,
    ${fields.map((field) => `${field} text NOT NULL`).join(", ")})`);
  await client.query(`INSERT INTO usertable SELECT id, (id::bigint * 7919) % ${VISITS},
    ${fields.map(() => "repeat(lpad(id::text, 10, '0'), 10)").join(", ")}
    FROM generate_series(0, ${rowsOf(context) - 1}) AS id`);
  await client.query("VACUUM (FREEZE, ANALYZE) usertable");
  const connect = (): Promise<PostgresClient> =>
    PostgresClient.connect(`${cluster.socketFolder}/.s.PGSQL.5432`, superuser);
  return { ...peer, value: { client, connect, stop: () => cluster.stop() } };
}
