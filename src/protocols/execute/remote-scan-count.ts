/**
 * Counting over all nodes: only numbers travel. Nodes count rows as they have them; those that the
 * transaction has written itself are then taken out as the nodes have them, and put in as they are
 * now.
 */

import { SCAN_STEP_ROWS } from "../../runtime/limits.ts";
import type { RowValues } from "../../tables/indexes/structure.ts";
import { Scan } from "../phases/scan.ts";
import type { Entry } from "./remote-access-set.ts";
import type { ScanSource } from "./remote-scan.ts";
import type { RemotePlan } from "./remote-scan-plan.ts";

export class RemoteCount {
  /** Once it was fetched. */
  rows = 0;
  readonly #plan: RemotePlan;
  readonly #source: ScanSource;
  readonly #read: (entries: readonly Entry[]) => Promise<boolean>;

  /** `read` reads rows as the nodes have them. */
  constructor(
    plan: RemotePlan,
    source: ScanSource,
    read: (entries: readonly Entry[]) => Promise<boolean>,
  ) {
    this.#plan = plan;
    this.#source = source;
    this.#read = read;
  }

  /** Counts. All that the transaction has written must be known by now. False: met locks. */
  async fetch(): Promise<boolean> {
    const { table } = this.#plan;
    this.#source.check(table);
    const own = this.#source.writtenOf(table);
    const theirs = own.map((entry) => ({ ...entry, isKnown: false, row: undefined }));
    const isRead = theirs.length === 0 ? true : this.#read(theirs);
    const [counted, isFree] = await Promise.all([this.#atNodes(), isRead]);
    if (counted === undefined || !isFree) return false;
    this.rows = counted - this.#within(theirs) + this.#within(own);
    return true;
  }

  /** Undefined if a step kept meeting locks. */
  async #atNodes(): Promise<number | undefined> {
    const { table, way } = this.#plan;
    const source = this.#source;
    let count = 0;
    let open = source.nodes.map((node) => ({ node, place: undefined as Int32Array | undefined }));
    while (open.length > 0) {
      const steps = open.map(
        ({ node, place }) =>
          new Scan(
            node,
            table.id,
            way,
            SCAN_STEP_ROWS,
            place,
            source.partAt(node),
            undefined,
            source.snapshot,
          ),
      );
      if (!(await source.send(steps))) return undefined;
      for (const { rows } of steps) count += rows;
      open = steps.filter(({ isDone }) => !isDone).map(({ to: node, place }) => ({ node, place }));
    }
    return count;
  }

  /** How many of some rows belong to what is counted. */
  #within(rows: Iterable<{ readonly row: RowValues | undefined }>): number {
    let count = 0;
    for (const { row } of rows) if (row !== undefined && this.#plan.holds(row)) count++;
    return count;
  }
}
