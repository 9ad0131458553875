// Objects on PostgreSQL: one statement, which adds up where the rows are. `= ANY` walks the index in
// the order of keys, so that no two transactions wait for each other.
import type { ObjectStore, ObjectTable } from "../../../workloads/objects/store.ts";
import type { Statement } from "./connection.ts";
import { type Database, listOf } from "./database.ts";

export function postgresObjects(database: Database, table: ObjectTable): ObjectStore {
  const { name } = table;
  const sum = "coalesce(sum(count + octet_length(text)), 0)::double precision AS sum";
  const read: Statement = {
    name: "read",
    text: `SELECT ${sum} FROM ${name} WHERE key = ANY ($1::integer[])`,
  };
  const readAndWrite: Statement = {
    name: "read_and_write",
    text: `WITH written AS (
        UPDATE ${name} SET stamp = $3, text = $4,
          count = count + CASE WHEN key = ANY ($1::integer[]) THEN 1 ELSE 0 END
        WHERE key = ANY ($2::integer[])
      )
      ${read.text}`,
  };
  const write: Statement = {
    name: "write",
    text: `UPDATE ${name} SET stamp = $2, text = $3 WHERE key = ANY ($1::integer[])`,
  };
  return {
    async access(keys, reads, writes, stamp, text) {
      if (reads === 0) {
        await database.write(write, [listOf(keys, writes), stamp, text]);
        return 0;
      }
      const list = listOf(keys, reads);
      const { rows } =
        writes === 0
          ? await database.read(read, [list])
          : await database.write(readAndWrite, [list, listOf(keys, writes), stamp, text]);
      return rows[0].sum as number;
    },
  };
}
