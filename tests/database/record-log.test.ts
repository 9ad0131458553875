/** The records of a backup in its store: order, parts, and what was left half-way. */

import { expect, test } from "vitest";
import { attach } from "../../src/attach/attach.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import { runSync } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { openTable } from "../../src/tables/catalogue.ts";
import { bytes, u8, u32 } from "../../src/tables/fields.ts";
import { BACKUP_LOG } from "../../src/tables/own-tables.ts";
import { StoreRecordLog } from "../../src/tables/served/record-log.ts";
import { table } from "../../src/tables/table.ts";
import { temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

test("kept in the order of arrival, also where it goes round, and in parts; half a record is none", async () => {
  const db = await stores.open({ memoryBytes: 64 * 2 ** 20 });
  const executor = await attach(settingsOf({ path: db.path }), (attached) => attached.executor);
  try {
    const log = new StoreRecordLog(executor, BACKUP_LOG);
    const long = Int32Array.from({ length: 700_000 }, (_, i) => i * 2_654_435_761);
    const short = Int32Array.of(1, 2);
    log.append(0, long);
    log.append(2 ** 32 - 1, short);
    log.append(1, short);
    const tx = new Transaction(executor);
    const Records = table(
      "situ backup log",
      { arrival: u32(), part: u8(), parts: u8(), record: bytes() },
      { key: ["arrival", "part"] },
    );
    const { rows } = openTable(executor, Records);
    const half = { arrival: 2, part: 1, parts: 2, record: new Uint8Array(8) };
    runSync(executor, tx, 1_000, () => rows.put(tx, half), undefined);

    const found = new StoreRecordLog(executor, BACKUP_LOG).all();
    expect(found.map(({ arrival }) => arrival)).toEqual([2 ** 32 - 1, 0, 1]);
    expect(found[1].record).toEqual(long);
    expect(rows.get([2, 1])).toBeUndefined();

    runSync(executor, tx, 1_000, () => log.remove(tx, 0, long), undefined);
    expect(log.all().map(({ arrival }) => arrival)).toEqual([2 ** 32 - 1, 1]);
    expect(rows.get([0, 2])).toBeUndefined();
    log.drop(1, short);
    expect(log.all().map(({ arrival }) => arrival)).toEqual([2 ** 32 - 1]);
  } finally {
    executor.close();
  }
});
