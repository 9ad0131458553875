/**
 * How often this store's node has been started: a counter in the store itself, raised before a life of the
 * node sends anything. The sequences of its coordinators begin with it (protocols/names.ts), so a clock that
 * steps back cannot make a name come twice.
 */

import type { Executor } from "../../engine/executor.ts";
import { runSync } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { DEFAULT_TIMEOUT_MS } from "../../runtime/limits.ts";
import { openTable } from "../catalogue.ts";
import { u8, u32 } from "../fields.ts";
import { LIVES } from "../own-tables.ts";
import { table } from "../table.ts";

const Lives = table(LIVES, { id: u8(), life: u32() }, { key: "id" });

/** One counter for the whole store. */
const ID = 0;

/**
 * Begins another life, and gives its number. On disk it is when `executor.committer.lastEpoch` is. It is above
 * `others`: those that other stores may have had under the id of this node.
 */
export function raiseLife(executor: Executor, others = 0): number {
  const { rows } = openTable(executor, Lives);
  const tx = new Transaction(executor);
  tx.subject = "the lives of a node";
  return runSync(
    executor,
    tx,
    DEFAULT_TIMEOUT_MS,
    () => {
      const before = (rows.read(tx, ID) as { life: number } | undefined)?.life ?? 0;
      const life = Math.max(before, others) + 1;
      rows.put(tx, { id: ID, life });
      return life;
    },
    undefined,
  );
}
