/** docs/FAULTS.md, "One machine": one hot key; a long transaction against many short ones. */

import { afterAll, expect, test } from "vitest";
import { endAll, StoreFolder, start } from "../helpers/engine-processes.ts";
import { Account, fillStore, openStore } from "./crash-store.ts";
import type { HotKeyOrder, HotKeyReport } from "./hot-key-child.ts";

const ROWS = 400;
const FIRST_ROW = 5_000;
const LONG_TIMEOUT_MS = 400;

afterAll(endAll);

async function run(order: HotKeyOrder): Promise<HotKeyReport> {
  const { code, stdout, stderr } = await start("hot-key-child", order).ended;
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout) as HotKeyReport;
}

test("every acknowledged increment counts once; who does not get through is told in time", async () => {
  const folder = new StoreFolder();
  const { path } = folder;
  const db = await openStore(path);
  try {
    fillStore(db);
    for (let row = 0; row < ROWS; row++) {
      db.transactSync((tx) =>
        tx.insert(Account, { id: FIRST_ROW + row, owner: "row", balance: 0n }),
      );
    }
    const before = db.get(Account, 1)!.balance;
    const short = { path, role: "short", times: 8_000, timeoutMs: 120_000, rows: 0 } as const;
    const long = { path, role: "long", times: 40, timeoutMs: LONG_TIMEOUT_MS, rows: ROWS } as const;
    const reports = await Promise.all([run(short), run(short), run(long)]);

    const committed = reports.reduce((sum, report) => sum + report.committed, 0);
    expect(db.get(Account, 1)!.balance - before).toBe(BigInt(committed));
    // The short ones have no reason to fail; the long one gets through or gets a code.
    expect(reports[0].failures).toEqual([]);
    expect(reports[1].failures).toEqual([]);
    for (const code of reports[2].failures)
      expect(["SITU_CONFLICT", "SITU_TIMEOUT"]).toContain(code);
    expect(reports[2].committed + reports[2].failures.length).toBe(40);
    // Bounded: nobody waits without end, on any machine.
    expect(reports[2].slowestMs).toBeLessThan(LONG_TIMEOUT_MS + 60_000);
  } finally {
    endAll();
    await db.close();
    await folder.remove();
  }
});
