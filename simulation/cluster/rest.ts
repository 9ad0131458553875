/**
 * What must hold in a cluster at rest, when all faults are healed and all workers are done: nothing is
 * prepared, no object is locked, no record waits to be applied, every backup has what its primary
 * has and nobody has what he should not have, and in each store the indexes agree with the rows.
 */

import { runReadOnly } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { wordOf } from "../../src/memory/address.ts";
import { BLOCK_CELLS, BlockTable } from "../../src/memory/blocks.ts";
import {
  ALLOCATED,
  ARRAY,
  ARRAY_HEADER_WORDS,
  ELEMENT_COUNT,
  ELEMENT_WORDS,
  HEADER_WORDS,
  INCARNATION,
  LOCK,
} from "../../src/memory/object.ts";
import type { StoreMemory } from "../../src/memory/store-memory.ts";
import { keyText, RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import { SCAN_BATCH_ROWS } from "../../src/runtime/limits.ts";
import type { RowValues } from "../../src/tables/indexes/structure.ts";
import type { Placement } from "../../src/tables/partitions.ts";
import { tableId } from "../../src/tables/partitions.ts";
import type { Table } from "../../src/tables/table.ts";
import { verifyTables } from "../../src/tools/tables/verify.ts";
import type { SimulatedNode } from "./sim-node.ts";

const MOST_TOLD = 5;
const SHOWN = 60;

/** Of the nodes' own state; cheap, and possible at any moment. */
export function leftOvers(nodes: readonly SimulatedNode[]): string[] {
  const problems: string[] = [];
  for (const { id, service, executor, running } of nodes) {
    const { participant, backup, coordinator } = service;
    const told = (what: string, count: number): void => {
      if (count !== 0) problems.push(`node ${id} at rest: ${count} ${what}`);
    };
    told("transactions are prepared", participant.prepared);
    told("records wait to be applied", backup?.logged ?? 0);
    told("transactions of its coordinator are not over", coordinator.open);
    told("coroutines run", running);
    told("objects are locked", lockedObjects(executor.memory));
  }
  return problems;
}

/** All lock words of a store. */
export function lockedObjects(memory: StoreMemory): number {
  const blocks = new BlockTable(memory);
  let locked = 0;
  for (let block = 0; block < blocks.count; block++) {
    const sizeClass = blocks.classOf(block);
    if (sizeClass < 0) continue;
    const { i32 } = memory.region(blocks.regionIdOf(block));
    for (let index = 0; index < BLOCK_CELLS[sizeClass]; index++) {
      const word = wordOf(blocks.cellAt(block, index, sizeClass));
      if (i32[word + LOCK] !== 0) locked++;
      if ((i32[word + INCARNATION] & (ARRAY | ALLOCATED)) !== (ARRAY | ALLOCATED)) continue;
      const stride = HEADER_WORDS + i32[word + ELEMENT_WORDS];
      for (let element = 0; element < i32[word + ELEMENT_COUNT]; element++) {
        if (i32[word + ARRAY_HEADER_WORDS + element * stride + LOCK] !== 0) locked++;
      }
    }
  }
  return locked;
}

/** All rows that a node has, by the text of their keys. */
export function rowsOf(
  { executor, tables }: SimulatedNode,
  remote: RemoteTable,
): Map<string, RowValues> {
  const { rows: store } = tables.byId(tableId(remote.table.name)).table;
  return runReadOnly(
    executor,
    new Transaction(executor),
    (tx) => {
      const all = new Map<string, RowValues>();
      const cursor = store.cursor({ from: undefined, to: undefined }, false);
      for (const rows: RowValues[] = []; cursor.next(tx, rows, SCAN_BATCH_ROWS); ) {
        for (const row of rows) all.set(keyText(remote.keyOf(row)), row);
      }
      return all;
    },
    undefined,
  );
}

/** The rows of a table as their primaries have them. */
export function primaryRows(
  nodes: readonly SimulatedNode[],
  table: Table,
  placement: Placement,
): Map<string, RowValues> {
  const remote = new RemoteTable(table, placement);
  const all = new Map<string, RowValues>();
  for (const node of nodes) {
    for (const [key, row] of rowsOf(node, remote)) {
      if (remote.primaryOf(remote.partitionOf(remote.keyOf(row))) === node.id) all.set(key, row);
    }
  }
  return all;
}

/** Row by row: primary and backups have the same, and nobody else has anything. */
export function disagreements(
  nodes: readonly SimulatedNode[],
  tables: readonly Table[],
  placement: Placement,
): string[] {
  const problems: string[] = [];
  for (const table of tables) {
    const remote = new RemoteTable(table, placement);
    const copies = new Map(nodes.map((node) => [node.id, rowsOf(node, remote)]));
    const keys = new Map<string, unknown>();
    for (const rows of copies.values()) {
      for (const [text, row] of rows) keys.set(text, remote.keyOf(row));
    }
    const found: string[] = [];
    for (const [text, key] of keys) {
      const partition = remote.partitionOf(key);
      const primary = placement.primaryOf(partition);
      const backups = placement.backupsOf(partition);
      const wanted = textOf(copies.get(primary)?.get(text));
      const filling = placement.fillingOf(partition);
      for (const { id } of nodes) {
        // What it lacks is copied later.
        if (filling.includes(id)) continue;
        const has = textOf(copies.get(id)?.get(text));
        if (id === primary || has === (backups.includes(id) ? wanted : ABSENT)) continue;
        const role = backups.includes(id) ? "a backup" : "no replica of it";
        found.push(
          `table ${table.name}, key ${text}: node ${primary} has ${shown(wanted)}, ` +
            `node ${id}, ${role}, has ${shown(has)}`,
        );
      }
    }
    problems.push(...found.slice(0, MOST_TOLD));
    if (found.length > MOST_TOLD) problems.push(`table ${table.name}: ${found.length} of these`);
  }
  return problems;
}

const ABSENT = "nothing";

/** Long lists differ at their ends. */
function shown(text: string): string {
  return text.length <= 2 * SHOWN ? text : `${text.slice(0, SHOWN)}…${text.slice(-SHOWN)}`;
}

function textOf(row: RowValues | undefined): string {
  if (row === undefined) return ABSENT;
  return JSON.stringify(row, (_, value: unknown) => {
    if (typeof value === "bigint") return `${value}n`;
    return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value;
  });
}

/** The structure of every store, and its indexes against its rows. */
export async function unsound(nodes: readonly SimulatedNode[]): Promise<string[]> {
  const problems: string[] = [];
  for (const { id, executor } of nodes) {
    const verified = await verifyTables(executor);
    problems.push(...verified.problems.slice(0, MOST_TOLD).map((each) => `node ${id}: ${each}`));
  }
  return problems;
}
