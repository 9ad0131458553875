/**
 * Fills the partitions that a configuration gives to this node (FaRM SOSP'15 §5.4), and clears away those that it
 * takes. A node that fills a partition is sent records like every backup from the configuration on that
 * made it so, and applies them; the rest it copies from the primary.
 *
 * A row that was copied is added only if the node has none with its key, and no record has removed one. Why
 * that is right: the partition was empty when filling began. So what is there came by a record, or
 * was copied before; of either all later changes come as records, and the copy is no newer than
 * they are. What is not there, and was not removed, no record that was applied has written. The copy
 * is then the committed state of the row at some moment since filling began, and what was
 * committed after that moment was logged here first (source.ts): it is applied later, or again, in the
 * order of its row (row-order.ts), and leaves the row as it should be. A record that is aborted never touches it.
 *
 * Of transactions that were over by then no records come. The primary tells which of them are committed, before it gives
 * the first row (fetch-ends.ts).
 *
 * So the node counts as a copy when all rows are copied: of what is logged and not applied it knows
 * as much as any backup.
 *
 * A partition is copied anew, from an empty one, if this node has missed a configuration that changed who has it:
 * others may have gone on without this node. What is left of an earlier time when it had the partition is
 * cleared away first, and records of that time are forgotten (backup-records.ts). The same
 * holds after a restart: what was removed meanwhile, and how far the copy was, only memory knew.
 */

import type { Executor } from "../../engine/executor.ts";
import type { ConfigurationId, NodeId } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  COPY_TELL_MS,
  COPY_TIMEOUT_MS,
  MAX_COPY_KEYS,
  UNKNOWN_TABLE_MS,
} from "../../runtime/limits.ts";
import type { CopiedTables } from "../../tables/served/contract.ts";
import { PUT, type WriteRequest } from "../../tables/served/requests.ts";
import type { BackupRecords } from "../backup-records.ts";
import type { ClusterView } from "../cluster-view.ts";
import type { Disk } from "../disk.ts";
import type { Driver } from "../driver.ts";
import { Clearing } from "./clearing.ts";
import type { Ends } from "./fetch-ends.ts";
import { fetchSchemas } from "./fetch-tables.ts";
import { PartitionCopy } from "./partition-copy.ts";
import { Touched } from "./touched.ts";

/** What copying must know of a configuration. */
export interface CopyView extends ClusterView {
  readonly nodes: readonly NodeId[];
}

export interface CopyingOptions {
  readonly driver: Driver;
  readonly executor: Executor;
  readonly tables: CopiedTables;
  readonly backup: BackupRecords;
  readonly disk: Disk;
  /**
   * Told which partitions are filled, and in which configuration that is so, again and again until a later one
   * counts them as copies.
   */
  readonly filled: (configurationId: ConfigurationId, partitions: readonly number[]) => void;
  /** Told which partitions are filled from nothing, and since when. */
  readonly replica: FillingReplica;
}

/** What recovery must know of partitions that are filled (recovery/store-replica.ts). */
export interface FillingReplica {
  fills(partition: number, since: ConfigurationId): void;
  fillsNoMore(partition: number): void;
  /** What the primary of partitions that are filled knows to be committed. */
  hear(ends: Ends, partitions: ReadonlySet<number>): void;
}

export interface CopyProgress {
  /** Partitions that are being filled, and that are to be cleared. */
  readonly filling: number;
  readonly clearing: number;
  /** What was copied since this node was started. */
  readonly rows: number;
  readonly bytes: number;
  /** Why the last piece could not be copied or cleared, if it could not; it is tried again. */
  readonly problem: string | undefined;
}

/** A partition that is being filled: first it is cleared, then copied, then it waits for a configuration. */
interface Fill {
  state: "clearing" | "copying" | "filled";
}

export class Copying {
  readonly driver: Driver;
  readonly executor: Executor;
  readonly tables: CopiedTables;
  readonly disk: Disk;
  readonly touched = new Touched();
  readonly #backup: BackupRecords;
  readonly #filled: CopyingOptions["filled"];
  readonly #replica: FillingReplica;
  readonly #fills = new Map<number, Fill>();
  /** Partitions whose rows must go: those that are not this node's, and those that are filled anew. */
  readonly #uncleared = new Set<number>();
  /** Those that may have rows here, and were lost when that was found. */
  readonly #ofLost = new Set<number>();
  #clearing: Clearing | undefined;
  readonly #copies = new Map<NodeId, PartitionCopy>();
  #view: CopyView | undefined;
  #rows = 0;
  #bytes = 0;
  #problem: SituError | undefined;
  #isTelling = false;
  #isLearning = false;
  /** Tables that nobody knew, and until when they are not asked for again. */
  readonly #unknown = new Map<number, number>();
  #isStopped = false;

  constructor({ driver, executor, tables, backup, disk, filled, replica }: CopyingOptions) {
    this.driver = driver;
    this.executor = executor;
    this.tables = tables;
    this.disk = disk;
    this.#backup = backup;
    this.#filled = filled;
    this.#replica = replica;
    backup.applying = (request) => this.#applying(request);
    tables.learn = (id) => this.#learn(id);
  }

  get clock() {
    return this.driver.endpoint.clock;
  }

  /**
   * The configuration that holds from now on: to be called for each one that is committed, before its recovery
   * begins.
   */
  adopt(view: CopyView): void {
    if (this.#isStopped) return;
    const before = this.#view;
    this.#view = view;
    const { placement, self, nodes } = view;
    const given = new Set<number>();
    for (let partition = 0; partition < placement.partitions; partition++) {
      const mayHaveRows = this.#ofLost.delete(partition) || before === undefined;
      if (placement.copiesOf(partition).includes(self)) {
        this.#replica.fillsNoMore(partition);
        this.#forget(partition);
      } else if (placement.fillingOf(partition).includes(self)) {
        if (this.#goesOn(partition, before, view)) continue;
        this.#replica.fills(partition, view.configurationId);
        this.#anew(partition);
        given.add(partition);
      } else {
        this.#replica.fillsNoMore(partition);
        given.add(partition);
        if (this.#uncleared.has(partition) && !this.#fills.has(partition)) continue;
        const wasHere = mayHaveRows || isReplica(before!, partition);
        this.#forget(partition);
        if (!wasHere) continue;
        // Of a partition that is lost nobody knows who may need what is left.
        const isLost = !nodes.includes(placement.primaryOf(partition));
        (isLost ? this.#ofLost : this.#uncleared).add(partition);
      }
    }
    this.#backup.forget(view.configurationId, (partition) => given.has(partition));
    this.#regroup(view);
    this.#tell();
    this.#work();
  }

  stop(): void {
    this.#isStopped = true;
    this.#clearing?.cancel();
    for (const copy of this.#copies.values()) copy.cancel();
    this.#backup.applying = undefined;
    this.tables.learn = undefined;
  }

  progress(): CopyProgress {
    const open = [...this.#fills.values()].filter(({ state }) => state !== "filled");
    return {
      filling: open.length,
      clearing: this.#uncleared.size,
      rows: this.#rows,
      bytes: this.#bytes,
      problem: this.#problem?.message,
    };
  }

  get workers(): number {
    return this.#copies.size + (this.#clearing === undefined ? 0 : 1);
  }

  isCleared(partition: number): boolean {
    return this.#uncleared.has(partition);
  }

  /** Takes note of what went wrong with a piece; undefined if nothing did. */
  ran(problem: SituError | undefined): void {
    this.#problem = problem;
  }

  copied(rows: number, bytes: number): void {
    this.#rows += rows;
    this.#bytes += bytes;
  }

  hear(ends: Ends, partitions: ReadonlySet<number>): void {
    this.#replica.hear(ends, partitions);
  }

  ended(copy: PartitionCopy): void {
    this.#copies.delete(copy.source);
    for (const partition of copy.partitions) {
      this.#fills.get(partition)!.state = "filled";
      this.touched.forget(partition);
    }
    this.#tell();
    this.#work();
  }

  /** Whether the filling of a partition goes on as it was: this node has missed nothing. */
  #goesOn(partition: number, before: CopyView | undefined, view: CopyView): boolean {
    if (before === undefined || !this.#fills.has(partition)) return false;
    return (
      view.configurationId === before.configurationId + 1 ||
      view.placement.replicasSince(partition) <= before.configurationId
    );
  }

  #anew(partition: number): void {
    this.#forget(partition);
    this.#fills.set(partition, { state: "clearing" });
    this.#uncleared.add(partition);
  }

  #forget(partition: number): void {
    this.#fills.delete(partition);
    this.#uncleared.delete(partition);
    this.touched.forget(partition);
    for (const copy of this.#copies.values()) copy.partitions.delete(partition);
    // What a walk has passed over before may have to be cleared again.
    if (this.#clearing?.partitions.has(partition)) this.#endClearing();
  }

  #endClearing(): void {
    this.#clearing?.cancel();
    this.#clearing = undefined;
  }

  /** Ends copies from nodes that are no primaries any more: their places mean nothing to others. */
  #regroup({ placement }: CopyView): void {
    for (const [source, copy] of this.#copies) {
      for (const partition of copy.partitions) {
        if (placement.primaryOf(partition) !== source) copy.partitions.delete(partition);
      }
      if (copy.partitions.size > 0) continue;
      copy.cancel();
      this.#copies.delete(source);
    }
  }

  /** Begins what can be begun. */
  #work(): void {
    if (this.#isStopped) return;
    if (this.#uncleared.size > 0) this.#clear();
    const { placement, nodes } = this.#view!;
    const wanted = new Map<NodeId, number[]>();
    for (const [partition, { state }] of this.#fills) {
      const source = placement.primaryOf(partition);
      if (state !== "copying" || !nodes.includes(source)) continue;
      if (this.#copies.get(source)?.partitions.has(partition)) continue;
      const partitions = wanted.get(source) ?? [];
      wanted.set(source, partitions);
      partitions.push(partition);
    }
    for (const [source, partitions] of wanted) {
      // Others wait until it is done.
      if (this.#copies.has(source)) continue;
      const copy = new PartitionCopy(this, source, partitions);
      this.#copies.set(source, copy);
      copy.start();
    }
  }

  #clear(): void {
    if (this.#clearing !== undefined) return;
    const clearing = new Clearing(this, this.#uncleared, () => {
      this.#clearing = undefined;
      for (const partition of clearing.partitions) {
        this.#uncleared.delete(partition);
        this.touched.keepRemovals(partition);
        const fill = this.#fills.get(partition);
        if (fill !== undefined) fill.state = "copying";
      }
      this.#work();
    });
    this.#clearing = clearing;
    clearing.run();
  }

  /** A record is about to be applied. */
  #applying(request: WriteRequest): void {
    const { table, partition, code } = request;
    const state = this.#fills.get(partition)?.state;
    if (state === undefined || state === "filled") return;
    if (code === PUT && state === "copying") return;
    this.touched.note(request, this.tables.byId(table).keyOf(request));
    if (this.touched.size <= MAX_COPY_KEYS) return;
    const largest = this.touched.largest()!;
    // Not in the middle of a transaction.
    this.clock.after(0, () => this.#startAgain(largest));
  }

  /** Too much was removed while a partition was copied: by now its primary has less to copy. */
  #startAgain(partition: number): void {
    if (this.#isStopped || this.touched.size <= MAX_COPY_KEYS || !this.#fills.has(partition))
      return;
    this.#anew(partition);
    this.#work();
  }

  /** Says which partitions are filled, until they count as copies. */
  #tell(): void {
    const partitions = [...this.#fills].filter(([, { state }]) => state === "filled");
    if (this.#isStopped || partitions.length === 0) return;
    this.#filled(
      this.#view!.configurationId,
      partitions.map(([partition]) => partition),
    );
    if (this.#isTelling) return;
    this.#isTelling = true;
    this.clock.after(COPY_TELL_MS, () => {
      this.#isTelling = false;
      this.#tell();
    });
  }

  /** Asks others for their tables; false if nobody knew this one a moment ago. */
  #learn(id: number): boolean {
    if (this.#isStopped || this.#view === undefined) return false;
    if ((this.#unknown.get(id) ?? 0) > this.clock.nowMs()) return false;
    if (this.#isLearning) return true;
    this.#isLearning = true;
    this.#unknown.clear();
    const { nodes, self } = this.#view;
    const others = nodes.filter((node) => node !== self);
    let left = others.length;
    const heard = (): void => {
      if (--left > 0) return;
      this.#isLearning = false;
      this.#unknown.set(id, this.clock.nowMs() + UNKNOWN_TABLE_MS);
    };
    const told = (schemas: readonly string[]): void => {
      try {
        for (const schema of schemas) this.tables.open(schema);
      } catch (error) {
        if (!(error instanceof SituError)) throw error;
      }
      heard();
    };
    if (others.length === 0) {
      left = 1;
      heard();
      return false;
    }
    for (const node of others) this.driver.run(fetchSchemas(node), COPY_TIMEOUT_MS, told, heard);
    return true;
  }
}

function isReplica({ placement, self }: CopyView, partition: number): boolean {
  return placement.primaryOf(partition) === self || placement.backupsOf(partition).includes(self);
}
