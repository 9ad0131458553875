/**
 * The side that is copied from: the primary of the partitions. What it reads for those who copy is all that was
 * committed before the configuration in which they began, but for what is handed to them as records:
 *
 *   - What it has installed as the primary is in its store.
 *   - What it has locked and not installed is in doubt, if it began under an earlier configuration, and
 *     recovery gives the record to all replicas, those who copy included (recovery/recovery.ts); if it
 *     began later, its coordinator sends it to them by LOG before it is installed here.
 *   - What it has logged as a backup, before it became the primary, and has heard to be committed, is handed on, too;
 *     it gives out no rows of a partition before all of that is applied.
 *
 * Before the rows it tells what it knows to be committed (fetch-ends.ts): of what it has installed there is no record to hand
 * on, and one elsewhere may be in doubt for longer than this node lives.
 *
 * It gives out nothing before all such records have been handed on. So whoever has all rows has the records as well, and can
 * count as a copy, also if the next moment nobody is left who could hand them on.
 */

import type { Executor } from "../../engine/executor.ts";
import { isSignal } from "../../engine/signals.ts";
import { Transaction } from "../../engine/transaction.ts";
import type { Clock, ConfigurationId } from "../../fabric/fabric.ts";
import { Writer } from "../../fabric/wire.ts";
import { SituError } from "../../runtime/errors.ts";
import { COPY_ATTEMPTS } from "../../runtime/limits.ts";
import type { CopiedTable, CopiedTables } from "../../tables/served/contract.ts";
import type { Walked } from "../../tables/served/partition-rows.ts";
import type { BackupRecords } from "../backup-records.ts";
import type { CurrentView } from "../cluster-view.ts";
import type { TransactionId } from "../names.ts";
import type { Head } from "../records.ts";
import type { Ends } from "./fetch-ends.ts";

export interface CopySourceOptions {
  readonly view: CurrentView;
  readonly executor: Executor;
  readonly tables: CopiedTables;
  readonly backup: BackupRecords;
  readonly clock: Clock;
  readonly replica: KnownEnds;
  /** Whether all replicas have what is in doubt, in the present configuration. */
  readonly hasReplicated: () => boolean;
}

/** What recovery knows of how transactions have ended (recovery/store-replica.ts). */
export interface KnownEnds {
  /** The next so many that are known to be committed, behind one of them, in the order of their names. */
  committedAfter(after: TransactionId, most: number): TransactionId[];
  /** Those that this node has installed last, as far as its store shows it. */
  installed(): Iterable<Head>;
}

interface ReadRows extends Walked {
  readonly rows: number;
  readonly spentMs: number;
  readonly writes: Writer;
}

export class CopySource {
  readonly tables: CopiedTables;
  readonly #view: CurrentView;
  readonly #executor: Executor;
  readonly #backup: BackupRecords;
  readonly #clock: Clock;
  readonly #replica: KnownEnds;
  readonly #hasReplicated: () => boolean;
  readonly #tx: Transaction;
  readonly #writes = new Writer();
  /** Partitions in which nothing was left to apply since this configuration. */
  readonly #applied = new Set<number>();
  #appliedIn: ConfigurationId = 0;

  constructor(options: CopySourceOptions) {
    const { view, executor, tables, backup, clock, replica, hasReplicated } = options;
    this.tables = tables;
    this.#view = view;
    this.#executor = executor;
    this.#backup = backup;
    this.#clock = clock;
    this.#replica = replica;
    this.#hasReplicated = hasReplicated;
    this.#tx = new Transaction(executor);
  }

  /** A piece of a walk over a table; undefined if it has met a lock, or must wait for something else. */
  read(
    table: CopiedTable,
    place: Int32Array,
    partitions: ReadonlySet<number>,
  ): ReadRows | undefined {
    if (![...partitions].every((partition) => this.#isReady(partition))) return undefined;
    const executor = this.#executor;
    const tx = this.#tx;
    const writes = this.#writes;
    const startMs = this.#clock.nowMs();
    for (let attempt = 0; attempt < COPY_ATTEMPTS; attempt++) {
      const entered = executor.enter();
      try {
        writes.clear();
        const isWanted = (partition: number): boolean => partitions.has(partition);
        const walked = table.copyRows(tx, place, isWanted, writes);
        if (executor.commit(tx)) {
          return { ...walked, spentMs: this.#clock.nowMs() - startMs, writes };
        }
      } catch (error) {
        if (!isSignal(error)) throw error;
      } finally {
        tx.clear();
        executor.leave(entered);
      }
    }
    return undefined;
  }

  /**
   * Transactions that are known to be committed, behind one of them. `withHeads` adds heads of those that write to one of
   * the partitions, and to one that is lost: they may be in doubt until it is back, for longer than nodes live.
   */
  ends(
    partitions: ReadonlySet<number>,
    after: TransactionId,
    most: number,
    withHeads: boolean,
  ): Ends | undefined {
    if (![...partitions].every((partition) => this.#isReady(partition))) return undefined;
    const names = this.#replica.committedAfter(after, most);
    if (!withHeads || !this.#hasLost()) return { names, heads: [] };
    const heads = [...this.#replica.installed()].filter(
      ({ partitions: written }) =>
        written.some((partition) => partitions.has(partition)) &&
        written.some((partition) => this.#isLost(partition)),
    );
    return { names, heads };
  }

  #hasLost(): boolean {
    const { partitions } = this.#view.current.placement;
    for (let partition = 0; partition < partitions; partition++) {
      if (this.#isLost(partition)) return true;
    }
    return false;
  }

  #isLost(partition: number): boolean {
    const { nodes, placement } = this.#view.current;
    return partition < placement.partitions && !nodes.includes(placement.primaryOf(partition));
  }

  #isReady(partition: number): boolean {
    const { placement, self, configurationId } = this.#view.current;
    if (partition >= placement.partitions || placement.primaryOf(partition) !== self) {
      const why = `node ${self} is not the primary of partition ${partition}`;
      throw new SituError("SITU_STALE_CONFIGURATION", why);
    }
    if (this.#appliedIn !== configurationId) {
      this.#applied.clear();
      this.#appliedIn = configurationId;
    }
    if (this.#applied.has(partition)) return true;
    if (!this.#hasReplicated() || this.#backup.isBehind(partition)) return false;
    this.#applied.add(partition);
    return true;
  }
}
