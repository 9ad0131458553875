// Situ's side: one store with the accounts twice, hashed for the transfers and ordered for ranges.
import * as situ from "situ";
import { keyMask } from "../harness/random.ts";
import type { SyncContestant } from "../harness/rounds.ts";
import { sink } from "../harness/sink.ts";
import { accountFields } from "../memory/account-table.ts";
import { Account, type Bank, type StorePlace } from "../memory/situ.ts";
import { rangeRows } from "./ranges.ts";

export const Ledger = situ.table("ledger", accountFields(situ), { key: "id", ordered: true });

export function openSnapshotBank({ path, memoryDir }: StorePlace): Promise<Bank> {
  const memoryBytes = 512 * 2 ** 20;
  // Enough for every bucket once: while a snapshot lives, all of them are overwritten.
  const versionBytes = 256 * 2 ** 20;
  return situ.open({
    path,
    memoryDir,
    memoryBytes,
    versionBytes,
    tables: [Account, Ledger],
    durability: "none",
  });
}

export function ledgerScan(db: Bank, rows: number): SyncContestant {
  const ledger = Ledger;
  const seen = sink;
  return {
    name: "situ scan",
    unit: rows,
    run(passes) {
      let sum = 0;
      for (let pass = 0; pass < passes; pass++) {
        const snapshot = db.snapshot();
        let count = 0;
        for (const row of snapshot.scan(ledger)) {
          seen.value = row;
          sum += row.id;
          count++;
        }
        snapshot.close();
        if (count !== rows) throw new Error(`situ scanned ${count} rows`);
      }
      return sum;
    },
  };
}

export function ledgerRange(db: Bank, starts: Int32Array): SyncContestant {
  const ledger = Ledger;
  const seen = sink;
  const mask = keyMask;
  const limit = rangeRows;
  let kept = 0;
  return {
    name: "situ range",
    run(operations) {
      let cursor = kept;
      let sum = 0;
      for (let done = 0; done < operations; done++) {
        let count = 0;
        for (const row of db.scan(ledger, { gte: starts[cursor], limit })) {
          seen.value = row;
          sum += row.id;
          count++;
        }
        if (count !== limit) throw new Error(`situ found ${count} rows`);
        cursor = (cursor + 1) & mask;
      }
      kept = cursor;
      return sum;
    },
  };
}
