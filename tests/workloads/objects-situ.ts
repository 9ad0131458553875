/** A Situ store in a folder of its own with a workload's rows in it, gone when the test is done. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Database, open, type Table } from "situ";
import type { ReadRows, Workload } from "../../workloads/workload.ts";

export async function withSitu<Store>(
  workload: Workload<Store>,
  use: (db: Database, read: ReadRows) => Promise<void>,
): Promise<void> {
  const path = mkdtempSync(join(tmpdir(), "situ-workload-"));
  try {
    const { tables } = workload;
    const memoryBytes = 64 * 2 ** 20;
    // Memory inside the folder: it goes with it, however the test ends.
    await using db = await open({ path, memoryDir: path, tables, memoryBytes, durability: "none" });
    db.transactSync((tx) => {
      for (const { table, row } of workload.rows()) tx.put(table, row);
    });
    await use(db, (table: Table) => db.scan(table) as ReturnType<ReadRows>);
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}
