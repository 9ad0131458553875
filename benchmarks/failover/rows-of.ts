// Which rows a node has, as a configuration places them: those that it is the primary of, those that it is a
// backup of, and those that it has no copy of.
import type * as situ from "situ";
import type { Configuration } from "../../src/cluster/configuration.ts";
import { ClusterPlacement } from "../../src/cluster/placement.ts";
import { f64, i64, table, u32 } from "../../src/index.ts";
import { RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import { accountTable } from "../fabric/accounts.ts";

export interface RowsOf {
  /** Rows by the partition that they are in, of partitions that it is the primary of. */
  readonly primary: ReadonlyMap<number, readonly number[]>;
  readonly backup: readonly number[];
  readonly none: readonly number[];
}

export function rowsOf(node: number, configuration: Configuration, rows: number): RowsOf {
  const placement = new ClusterPlacement(configuration);
  // The client's table is of the bundle, which keeps its placement to itself.
  const own = accountTable({ table, u32, i64, f64 } as unknown as typeof situ);
  const remote = new RemoteTable(
    own as unknown as ConstructorParameters<typeof RemoteTable>[0],
    placement,
  );
  const primary = new Map<number, number[]>();
  const backup: number[] = [];
  const none: number[] = [];
  for (let id = 0; id < rows; id++) {
    const partition = remote.partitionOf(id);
    if (placement.primaryOf(partition) === node) {
      const found = primary.get(partition);
      if (found === undefined) primary.set(partition, [id]);
      else found.push(id);
    } else if (placement.backupsOf(partition).includes(node)) {
      backup.push(id);
    } else {
      none.push(id);
    }
  }
  return { primary, backup, none };
}
