// A cluster has no unique index but the key: a table that has one is opened without it, and what the
// index would find is in a table of its own. Workloads and their checks know nothing of this.
import type { Table } from "situ";
import { ClusterSubscriber, SubscriberNumber } from "../../../workloads/tatp/cluster-tables.ts";
import { Subscriber, type SubscriberRow } from "../../../workloads/tatp/store.ts";
import type { InitialRow } from "../../../workloads/workload.ts";

export function clusterTable(table: Table): Table {
  return table === (Subscriber as Table) ? ClusterSubscriber : table;
}

export function clusterTables(tables: readonly Table[]): readonly Table[] {
  const own = tables.map(clusterTable);
  return own.includes(ClusterSubscriber) ? [...own, SubscriberNumber] : own;
}

export function* clusterRows(rows: Iterable<InitialRow>): Iterable<InitialRow> {
  for (const { table, row } of rows) {
    yield { table: clusterTable(table), row };
    if (table !== (Subscriber as Table)) continue;
    const { sub_nbr, s_id } = row as SubscriberRow;
    yield { table: SubscriberNumber, row: { sub_nbr, s_id } };
  }
}
