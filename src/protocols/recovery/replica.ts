/**
 * What recovery asks of the thread that keeps the records of a node, whichever way it keeps them. A
 * node is a replica of many partitions, and may have seen more of a transaction in one of them than in
 * another: LOCK as the primary of the one, LOG as a backup of the other.
 *
 * A backup may have records of several transactions in doubt that write the same row. All but the last
 * of them are committed: a primary unlocks a row when it has installed what it was locked for, or when
 * all backups have dropped the record of it. That holds for recovery, too: `abort` drops the records of
 * backups, and primaries unlock with `forget`, which comes when all replicas have aborted.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import type { Name } from "../names.ts";
import type { Head } from "../records.ts";
import type { Seen } from "./votes.ts";

/** What a transaction writes in one partition (writes.ts). */
export interface PartitionWrites {
  readonly words: Int32Array;
  readonly count: number;
}

export interface Replica {
  /**
   * A node is gone: what its coordinators have locked only to read it is let go. There is nothing to settle, but
   * for those that are in doubt: of them, others have a record.
   */
  release(node: NodeId, isInDoubt: (name: Name) => boolean): void;
  /** Transactions of which there are records or locks here, whatever was seen of them. */
  inDoubt(): Iterable<Head>;
  seen(name: Name, partition: number): Seen;
  /** From the record, while there is one. */
  writes(name: Name, partition: number): PartitionWrites | undefined;
  /** The place of a backup's record among all that it has, which is that of its rows' changes; -1 for others. */
  orderOf(name: Name): number;
  /**
   * Takes over what other replicas of the partition have seen, and the writes if there is no record of them here. It is
   * kept as safely as what LOG brings, and nothing is done about it before the outcome is told.
   */
  takeOver(head: Head, partition: number, seen: Seen, writes: PartitionWrites | undefined): void;
  /**
   * At a primary: whether nobody else can lock or read the rows until the transaction is settled. If not,
   * the partition is not served until then.
   */
  lock(name: Name, partition: number): boolean;
  /**
   * At a primary: whether it has not applied yet what it has heard, as a backup, to be committed in a partition.
   * Nobody is in doubt about that, and nobody may read what was there before.
   */
  isBehind(partition: number): boolean;
  /** Installs it, and removes the record. False if that must be tried again. */
  commit(name: Name): boolean;
  /** Drops the records that it has as a backup. As a primary it keeps its locks, for now. */
  abort(name: Name): void;
  /** All replicas know the outcome: it need not be remembered. What is locked and aborted is released. */
  forget(name: Name): void;
}
