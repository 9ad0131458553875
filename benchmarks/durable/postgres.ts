// PostgreSQL's side: the same rows in a table, transfers by pgbench, and the parts of a recovery as
// the server's log tells them.
import type { PostgresClient } from "../harness/postgres-client.ts";
import type { PostgresCluster } from "../harness/postgres-server.ts";
import { checkTotal } from "../memory/rows.ts";

/** Each statement by itself, as most programs send them, or a whole transfer at once. */
export const transferScripts = {
  "one by one": "transfer.sql",
  pipelined: "transfer-pipelined.sql",
} as const;

export type TransferWay = keyof typeof transferScripts;

/** Room in each page, as the manual advises for rows that are updated often: no index is touched. */
const fillfactor = 80;

export async function loadAccounts(client: PostgresClient, rows: number): Promise<void> {
  await client.query(`CREATE TABLE account (id integer PRIMARY KEY, balance bigint NOT NULL,
    a float8 NOT NULL, b float8 NOT NULL, c float8 NOT NULL, d float8 NOT NULL, e float8 NOT NULL)
    WITH (fillfactor = ${fillfactor})`);
  await client.query(`INSERT INTO account
    SELECT id, 1000000 + id, id + 0.5, id + 0.25, id * 0.1, -id - 0.5, id / 3.0
    FROM generate_series(0, ${rows - 1}) AS id`);
  await client.query("VACUUM (FREEZE, ANALYZE) account");
  await client.query("CHECKPOINT");
}

/**
 * A page goes to the log as a whole when it is first changed after a checkpoint. Some rows of every
 * page, so that this is over before anything is measured.
 */
export async function touchAllPages(client: PostgresClient): Promise<void> {
  await client.query("UPDATE account SET balance = balance WHERE id % 32 = 0");
}

export async function checkAccounts(client: PostgresClient, rows: number): Promise<void> {
  const [[total]] = await client.query("SELECT sum(balance) FROM account");
  checkTotal("postgres", BigInt(total), rows);
}

export interface PostgresTransfers {
  readonly clients: number;
  readonly seconds: number;
  readonly rows: number;
  readonly seed: number;
}

/** Transfers per second, without the time to connect. */
export async function pgbenchTransfers(
  cluster: PostgresCluster,
  way: TransferWay,
  { clients, seconds, rows, seed }: PostgresTransfers,
): Promise<number> {
  const script = transferScripts[way];
  const printed = await cluster.pgbench({
    ...{ script, clients, seconds, seed },
    threads: 2,
    variables: { rows },
  });
  const perSecond = Number(/^tps = ([\d.]+)/m.exec(printed)?.[1]);
  const failed = /^number of failed transactions: (\d+)/m.exec(printed)?.[1] ?? "0";
  if (!(perSecond > 0) || failed !== "0") throw new Error(`pgbench said:\n${printed}`);
  return perSecond;
}

/**
 * One added to the balance of a random row, so many times, each in a transaction of its own. They
 * do not wait for the disk one by one, which changes nothing about what they log; the last one does.
 * Returns how many bytes of log there are behind the checkpoint.
 */
export async function updateAccounts(
  client: PostgresClient,
  rows: number,
  updates: number,
): Promise<number> {
  const [[before]] = await client.query("SELECT pg_current_wal_insert_lsn()");
  await client.query("SET synchronous_commit = off");
  await client.query(`DO $$
    DECLARE
      row_id integer;
    BEGIN
      FOR step IN 1 .. ${updates} LOOP
        row_id := floor(random() * ${rows});
        UPDATE account SET balance = balance + 1 WHERE id = row_id;
        COMMIT;
      END LOOP;
    END $$`);
  await client.query("SET synchronous_commit = on");
  await client.query("CREATE TABLE crash_now ()");
  const [[bytes]] = await client.query(
    `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '${before}')`,
  );
  return Number(bytes);
}
