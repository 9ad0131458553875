/**
 * What a scan or count asks of all nodes, checked as everywhere; and, for the rows that the transaction
 * has written itself and no node knows of, whether they belong to it and where in its order.
 */

import { compareKeys } from "../../stores/btree/keys.ts";
import type { KeyRange, OrderedCodec } from "../../stores/store.ts";
import { canonicalPart } from "../../tables/copied-key.ts";
import type { IndexDefinition } from "../../tables/indexes/definition.ts";
import { sameValue } from "../../tables/indexes/entries.ts";
import { structuresOf } from "../../tables/indexes/forms.ts";
import { indexRange } from "../../tables/indexes/ranges.ts";
import { type CheckedScan, checkedScan } from "../../tables/indexes/read-options.ts";
import { checkIndexScan, rowRange, unknownIndex } from "../../tables/indexes/scan-rules.ts";
import type { RowValues, Structure } from "../../tables/indexes/structure.ts";
import type { ScanWay } from "../../tables/served/requests.ts";
import type { Table } from "../../tables/table.ts";
import type { RemoteTable } from "./remote-table.ts";

const EVERYTHING: KeyRange = { from: undefined, to: undefined };

export interface RemotePlan {
  readonly table: RemoteTable;
  readonly way: ScanWay;
  readonly limit: number;
  /** The partition that all its rows are in, if they are in one. */
  readonly partition?: number | undefined;
  /** Orders rows; without it they come in any order. */
  readonly order: OrderedCodec<RowValues, unknown> | undefined;
  /** Whether a row lies within the bounds. */
  holds(row: RowValues): boolean;
}

export function planRemote(
  call: "scan" | "count",
  table: RemoteTable,
  options: unknown,
): RemotePlan {
  const scan = checkedScan(call, table.table.name, options);
  return scan.index === undefined ? planRows(table, scan) : planIndex(table, scan);
}

function planRows(table: RemoteTable, scan: CheckedScan): RemotePlan {
  const range = rowRange(table.table, scan);
  const { reverse, limit } = scan;
  const way = { index: undefined, range, reverse, equal: undefined };
  if (!table.table.ordered) return { table, way, limit, order: undefined, holds: () => true };
  const order = table.codec as OrderedCodec<RowValues, unknown>;
  const partition = table.partitionWithin(scan.bounds.eq);
  return { table, way, limit, partition, order, holds: (row) => isWithin(order, range, row) };
}

function planIndex(table: RemoteTable, scan: CheckedScan): RemotePlan {
  const { reverse, limit, bounds } = scan;
  const { indexes } = table.table;
  const definition = indexes.find(({ name }) => name === scan.index);
  if (definition === undefined) {
    const names = indexes.map(({ name }) => name);
    throw unknownIndex(table.table, scan.index, names);
  }
  checkIndexScan(table.table, definition, scan);
  const { name: index, on } = definition;
  const { ordered: order, codec } = firstStructure(table.table, definition);
  if (order !== undefined) {
    const range = indexRange(table.table, definition, bounds);
    const way = { index, range, reverse, equal: undefined };
    return { table, way, limit, order, holds: (row) => isWithin(order, range, row) };
  }
  // Checks the types of the values.
  codec.stageKey(bounds.eq);
  const given = on.length === 1 ? [bounds.eq] : (bounds.eq as readonly unknown[]);
  const values = given.map((value, i) => canonicalPart(table.table.fields[on[i]], value));
  return {
    table,
    way: { index, range: EVERYTHING, reverse, equal: bounds.eq },
    limit,
    order: undefined,
    holds: (row) => on.every((name, i) => sameValue(row[name], values[i])),
  };
}

function isWithin(
  order: OrderedCodec<RowValues, unknown>,
  { from, to }: KeyRange,
  row: RowValues,
): boolean {
  const words = order.stageOrderedOf(row);
  const key = order.ordered;
  if (from !== undefined && compareKeys(key, 0, words, from, from.length) < 0) return false;
  return to === undefined || compareKeys(key, 0, words, to, to.length) < 0;
}

/** Their codecs are generated, which takes its time. */
const structures = new WeakMap<IndexDefinition, Structure<RowValues, unknown>>();

function firstStructure(table: Table, definition: IndexDefinition): Structure<RowValues, unknown> {
  let found = structures.get(definition);
  if (found === undefined) {
    [found] = structuresOf(table, definition);
    structures.set(definition, found);
  }
  return found;
}
