/** Opens a store whose memory may be damaged and reads all of it in every way; says how that ended. */

import { open } from "../../src/database/open.ts";
import { SituError } from "../../src/runtime/errors.ts";
import type { AnyScanOptions } from "../../src/tables/indexes/read-options.ts";
import { orderOf, report } from "../helpers/process-child.ts";
import {
  type DamageOrder,
  type DamageRow,
  type DamageTable,
  GROUPS,
  ROWS,
  rowOf,
  rowsOf,
  tables,
} from "./damaged-memory-store.ts";

/** The rows that are looked up by an index. */
const GROUP = 3;
const { path } = orderOf<DamageOrder>();

/** A code, "right", "wrong", or what was thrown without a code. */
async function outcomeOf(work: () => unknown): Promise<string> {
  try {
    return (await work()) === false ? "wrong" : "right";
  } catch (error) {
    if (error instanceof SituError) return error.code;
    return `uncoded ${(error as Error).stack}`;
  }
}

const outcomes: string[] = [];
outcomes.push(
  await outcomeOf(async () => {
    const db = await open({ path, tables, timeoutMs: 500 });
    const isRight = (table: DamageTable, row: DamageRow | undefined, id: number): boolean =>
      JSON.stringify(row) === JSON.stringify(rowOf(table, id));
    /** Reads rows until they end, or are more than were ever written. */
    const areRight = async (
      table: DamageTable,
      options: AnyScanOptions,
      expected: number,
    ): Promise<boolean> => {
      let rows = 0;
      for await (const row of db.scan(table, options as object)) {
        if (!isRight(table, row, row.id)) return false;
        if (++rows > ROWS) throw new Error(`a scan of ${table.name} has no end`);
      }
      return rows === expected;
    };
    for (const table of tables) {
      const most = rowsOf(table);
      const ask = async (work: () => unknown): Promise<void> => {
        outcomes.push(await outcomeOf(work));
      };
      await ask(() => {
        for (let id = 0; id < most; id++) if (!isRight(table, db.get(table, id), id)) return false;
        return true;
      });
      await ask(() => areRight(table, {}, most));
      await ask(async () => (await db.count(table)) === most);
      await ask(() => db.transactSync((tx) => isRight(table, tx.get(table, 1), 1)));
      if (table.ordered) await ask(() => areRight(table, { reverse: true }, most));
      for (const { name } of table.indexes) {
        const inGroup = Math.ceil((most - GROUP) / GROUPS);
        await ask(() => areRight(table, { index: name, eq: GROUP }, inGroup));
      }
    }
    outcomes.push(await outcomeOf(() => db.verify().then(() => true)));
    await db.close();
  }),
);
report(outcomes);
