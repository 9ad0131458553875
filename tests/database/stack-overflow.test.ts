/** A stack that overflows somewhere inside a transaction leaves the database as good as before. */

import { expect, test } from "vitest";
import { f64, table, u32 } from "../../src/index.ts";
import { temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const Row = table("row", { id: u32(), value: f64() }, { key: "id" });
const ROWS = 20;
const REFUSED = "the body refuses";

/** Calls `work` where the stack is nearly used up, with frames of many sizes. */
function nearTheEndOfTheStack(work: () => void): void {
  for (let size = 0; size < 100; size += 3) {
    const names = Array.from({ length: size }, (_, i) => `a${i}`).join();
    const values = Array.from({ length: size }, () => "1").join();
    const deep = new Function(
      "work",
      `let calls = 0;
      function down(${names}) { try { down(${values}); } catch {} if (calls++ < 40) work(); }
      down();`,
    ) as (work: () => void) => void;
    try {
      deep(work);
    } catch {
      // The overflow itself, where there was no room for more.
    }
  }
}

test("whole or not at all, and the database goes on", async () => {
  const path = stores.folder();
  const db = await stores.open({ path, tables: [Row] });
  const other = await stores.open({ path, tables: [Row] });
  db.transactSync((tx) => {
    for (let id = 0; id < ROWS; id++) tx.put(Row, { id, value: 0 });
  });
  let calls = 0;
  const unexpected = new Set<string>();
  nearTheEndOfTheStack(() => {
    const call = ++calls;
    try {
      db.transactSync((tx) => {
        for (let id = 0; id < ROWS; id++) tx.update(Row, id, { value: call });
        if (call % 3 !== 0) return;
        tx.put(Row, { id: 1000 + call, value: call });
        throw new Error(REFUSED);
      });
    } catch (error) {
      const { message } = error as Error;
      if (message !== REFUSED && !message.includes("call stack")) unexpected.add(message);
    }
  });
  expect(calls).toBeGreaterThan(100);
  expect([...unexpected]).toEqual([]);
  for (let call = 3; call <= calls; call += 3) expect(other.get(Row, 1000 + call)).toBeUndefined();
  const values = other.transactSync((tx) => {
    const seen = new Set<number | undefined>();
    for (let id = 0; id < ROWS; id++) seen.add(tx.get(Row, id)?.value);
    return seen;
  });
  expect(values.size).toBe(1);
  expect(db.transactSync((tx) => tx.has(Row, 0))).toBe(true);
  await db.close();
});
