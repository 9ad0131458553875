/** Transactions on objects as procedures at the nodes of a cluster, which name their rows; see ../smallbank/procedures.ts. */

import { type AsyncTransaction, procedure, type RemoteDatabase, type Table } from "situ";
import { accessObjects } from "./situ.ts";
import { type ObjectStore, Objects, type ObjectTable, RetwisObjects } from "./store.ts";

function declared(table: ObjectTable) {
  return procedure(
    `${table.name}.access`,
    (
      tx: AsyncTransaction,
      keys: readonly number[],
      reads: number,
      writes: number,
      stamp: number,
      text: string,
    ) => accessObjects(tx, table, keys, reads, writes, stamp, text),
    {
      tables: [table],
      at: ([first]) => [table as Table, first],
      runs: "nic",
      rows: (keys, _reads, writes) =>
        keys.map((key, index) => [table as Table, key, index < writes ? "write" : "read"] as const),
    },
  );
}

export const onObjects = declared(Objects);
export const onRetwis = declared(RetwisObjects);

/** Calls them, at the node of the first object. */
export function calledObjects(db: RemoteDatabase, table: ObjectTable): ObjectStore {
  return {
    access: (keys, reads, writes, stamp, text) =>
      db.call(`${table.name}.access`, [keys, reads, writes, stamp, text], {
        near: [table as Table, keys[0]],
      }) as Promise<number>,
  };
}
