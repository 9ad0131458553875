/**
 * What the checker reports. A broken store produces the same anomaly thousands of times, so all are
 * counted, but only the first few of each kind are explained and kept.
 */

import type { Key } from "./history.ts";

export type AnomalyKind =
  /** A read holds a value that nobody appended. */
  | "unwritten-read"
  /** A read holds a value that only a failed transaction appended (G1a). */
  | "aborted-read"
  /** A read holds one value twice. */
  | "duplicate"
  /** A read contradicts earlier operations of its own transaction. */
  | "internal"
  /** A read ends between two appends of another transaction (G1b). */
  | "intermediate-read"
  /**
   * Two reads of a key, or a read and a writer's own order, disagree about the order of appends.
   */
  | "incompatible-order"
  /** A committed append is gone. */
  | "lost-write"
  /** Two transactions read a key, both appended to it, and neither saw the other. */
  | "lost-update"
  /** Cycle of ww edges (G0). */
  | "dirty-write"
  /** Cycle of ww and wr edges (G1c). */
  | "circular-information-flow"
  /** Cycle with rw edges (G-single, G2). */
  | "not-serializable"
  /** Cycle with rw edges of which no two are adjacent. */
  | "not-snapshot-isolated"
  /** Cycle that the isolation of each of its transactions, of which some differ, does not allow. */
  | "not-isolated"
  /** Cycle that needs the real-time order. */
  | "not-strictly-serializable";

export type DependencyKind = "ww" | "wr" | "rw" | "realtime";

export interface CycleStep {
  readonly from: number;
  readonly to: number;
  readonly dependency: DependencyKind;
  readonly reason: string;
}

export interface AnomalyDetails {
  /** Indexes into the history. Empty where only the final reads are concerned. */
  readonly transactions: readonly number[];
  readonly explanation: string;
  readonly key?: Key;
  readonly cycle?: readonly CycleStep[];
}

export interface Anomaly extends AnomalyDetails {
  readonly kind: AnomalyKind;
}

export class AnomalyReport {
  readonly #limitPerKind: number;
  readonly #counts = new Map<AnomalyKind, number>();
  readonly #anomalies: Anomaly[] = [];

  constructor(limitPerKind: number) {
    this.#limitPerKind = limitPerKind;
  }

  /** `describe` runs only if the anomaly is kept: finding a small cycle is the expensive part. */
  add(kind: AnomalyKind, describe: () => AnomalyDetails): void {
    const count = this.#counts.get(kind) ?? 0;
    this.#counts.set(kind, count + 1);
    if (count < this.#limitPerKind) this.#anomalies.push({ kind, ...describe() });
  }

  get anomalies(): readonly Anomaly[] {
    return this.#anomalies;
  }

  get counts(): ReadonlyMap<AnomalyKind, number> {
    return this.#counts;
  }
}
