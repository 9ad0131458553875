/** What a thread of a node keeps of transactions that are under way, in the node's store. */

import type { Executor } from "../../engine/executor.ts";
import { BACKUP_LOG, LOCK_RECORDS } from "../own-tables.ts";
import type { DecisionLog, RecordLog } from "./contract.ts";
import { StoreDecisionLog } from "./decision-log.ts";
import { StoreRecordLog } from "./record-log.ts";

export interface KeptRecords {
  /** Of what it has locked. */
  readonly locks: RecordLog;
  readonly decisions: DecisionLog;
  /** Only at the thread that keeps the node's copies, and takes up what earlier lives have left. */
  readonly copies: RecordLog | undefined;
  /** What other threads have locked, in earlier lives. */
  readonly left: readonly RecordLog[];
}

type Thread = keyof typeof LOCK_RECORDS;

/** `isKeeper` for the thread that keeps the node's copies. */
export function keptRecords(executor: Executor, thread: Thread, isKeeper: boolean): KeptRecords {
  const other = thread === "nic" ? "host" : "nic";
  return {
    locks: new StoreRecordLog(executor, LOCK_RECORDS[thread]),
    decisions: new StoreDecisionLog(executor),
    copies: isKeeper ? new StoreRecordLog(executor, BACKUP_LOG) : undefined,
    left: isKeeper ? [new StoreRecordLog(executor, LOCK_RECORDS[other])] : [],
  };
}
