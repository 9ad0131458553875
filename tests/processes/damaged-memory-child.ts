/** Opens a store whose memory may be damaged and reads all of it in every way; says how that ended. */

import { open } from "../../src/database/open.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { orderOf, report } from "../helpers/process-child.ts";
import { type DamageOrder, Ordered, ROWS, rowOf, Texts } from "./damaged-memory-store.ts";

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
    const db = await open({ path, tables: [Texts, Ordered], timeoutMs: 500 });
    const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
    for (const each of [Texts, Ordered]) {
      const table = each as typeof Texts;
      outcomes.push(
        await outcomeOf(() => {
          for (let id = 0; id < ROWS; id++) {
            if (!isSame(db.get(table, id), rowOf(id))) return false;
          }
          return true;
        }),
      );
      outcomes.push(
        await outcomeOf(async () => {
          let rows = 0;
          for await (const row of db.scan(table)) {
            rows++;
            if (!isSame(row, rowOf(row.id))) return false;
          }
          return rows === ROWS;
        }),
      );
    }
    outcomes.push(await outcomeOf(() => db.verify().then(() => true)));
    await db.close();
  }),
);
report(outcomes);
