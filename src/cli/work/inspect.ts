/** `situ inspect`: a store in short, one of its tables, or a file of its log, for people. */

import type { Stats } from "../../database/local/stats.ts";
import { open } from "../../database/open.ts";
import { inspect } from "../../database/store-tools.ts";
import { DEFAULT_TIMEOUT_MS } from "../../runtime/limits.ts";
import { counted, shownCount, shownSize } from "../../runtime/units.ts";
import type { MigrationStats } from "../../tables/schema.ts";
import type { InspectedCheckpoint, InspectedSegment } from "../../tools/files/inspect.ts";
import type { InspectedTable } from "../../tools/tables/inspect.ts";
import { existingStore } from "../../transfer/stored-tables.ts";
import { EXIT_OK, UsageError } from "../failures.ts";
import { ProgressLine } from "../progress.ts";
import { type Screen, toJson } from "../screen.ts";
import { type Column, renderRecord, renderTable } from "../text-table.ts";
import type { Run } from "./context.ts";

export const runInspect: Run<"inspect"> = async (values, { screen, signal }) => {
  const { path, table, file, records } = values;
  existingStore(path);
  if (table !== undefined && file !== undefined) {
    throw new UsageError("give either --table or --file, not both");
  }
  if (records && file === undefined) throw new UsageError("--records needs --file");
  if (file !== undefined) {
    const found = await inspect(path, { file, records });
    screen.json(found);
    showFile(screen, found);
    return EXIT_OK;
  }
  if (table !== undefined) {
    const found = await inspect(path, { table });
    screen.json(found);
    showInspectedTable(screen, found);
    return EXIT_OK;
  }
  const line = new ProgressLine(screen, "recovering");
  await using db = await open({ path, onRecovery: line.show, timeoutMs: DEFAULT_TIMEOUT_MS });
  line.clear();
  const tables: InspectedTable[] = [];
  const stats = db.stats();
  for (const { name } of stats.tables) {
    signal.throwIfAborted();
    tables.push(await db.inspect(name));
  }
  signal.throwIfAborted();
  screen.json({ path, ...stats, tables });
  screen.line(screen.bold(path));
  showTables(screen, tables);
  screen.line();
  showStats(screen, stats);
  return EXIT_OK;
};

const TABLE_COLUMNS: readonly Column[] = [
  { head: "table" },
  { head: "rows", isRight: true },
  { head: "memory", isRight: true },
  { head: "key" },
  { head: "kind" },
  { head: "indexes" },
];

export function showTables(screen: Screen, tables: readonly InspectedTable[]): void {
  if (tables.length === 0) {
    screen.line("no tables");
    return;
  }
  const rows = tables.map(({ schema, rows: count, memoryBytes, indexes }) => [
    schema.name,
    shownCount(count),
    shownSize(memoryBytes),
    schema.key.join(", "),
    schema.ordered ? "ordered" : (schema.layout ?? "hashed"),
    indexes.map(({ name }) => name).join(", "),
  ]);
  for (const each of renderTable(TABLE_COLUMNS, rows, screen.columns, screen.dim))
    screen.line(each);
}

export function showInspectedTable(screen: Screen, found: InspectedTable): void {
  const { schema, rows, structure, memoryBytes, indexes, leftovers, problems } = found;
  const { migration, remains } = found;
  const fields = Object.entries(schema.fields).map(([name, kind]) => `${name} ${kind}`);
  const {
    memoryBytes: own,
    rows: _rows,
    ...shape
  } = structure as { memoryBytes: number; rows: number };
  record(screen, [
    ["table", schema.name],
    ["rows", shownCount(rows)],
    ["memory", `${shownSize(memoryBytes)}, of that ${shownSize(own)} for the rows`],
    ["key", schema.key.join(", ")],
    ["fields", fields.join(", ")],
    ["structure", shapeText(shape)],
    ...indexes.map(
      ({ name, on, unique, kind, state, entries, memoryBytes: bytes }) =>
        [
          `index ${name}`,
          `${unique ? "unique " : ""}${kind} on ${on.join(", ")}: ` +
            `${counted(entries, "entry", "entries")}, ${shownSize(bytes)}` +
            `${state === "ready" ? "" : `, ${state}`}`,
        ] as const,
    ),
    ...leftovers.map(
      ({ name }) => [`left over`, `index ${name}, which could not be built`] as const,
    ),
    ...(migration === undefined ? [] : [["migration", migrationText(migration)] as const]),
    ...(remains === 0
      ? []
      : [["to be freed", `${counted(remains, "structure")} from before a migration`] as const]),
  ]);
  for (const problem of problems) screen.line(screen.red(`fault: ${problem}`));
}

function migrationText({ state, rows, total, pid }: MigrationStats): string {
  return `${state}, ${shownCount(rows)} of ${shownCount(total)} rows copied, by process ${pid}`;
}

/** As "kind btree, levels 2": the figures differ from structure to structure. */
function shapeText(shape: object): string {
  const parts = Object.entries(shape).map(([name, value]) => `${name} ${toJson(value)}`);
  return parts.join(", ").replaceAll('"', "");
}

export function showStats(screen: Screen, stats: Stats): void {
  const { executors, epoch, memory, snapshots, durability, counters } = stats;
  const used = memory.reservedBytes - memory.freeBytes;
  const { writer, lastCheckpoint, mode } = durability;
  const last =
    lastCheckpoint === undefined
      ? ""
      : `, the last with ${shownSize(lastCheckpoint.bytes)} (${lastCheckpoint.kind})`;
  record(screen, [
    [
      "memory",
      `${shownSize(used)} used, ${shownSize(memory.reservedBytes)} taken, ` +
        `${shownSize(memory.limitBytes)} at most`,
    ],
    ["open in", executors.map(({ pid, threadId }) => `${pid}/${threadId}`).join(", ")],
    ["epoch", `${epoch}${mode === "none" ? "" : `, on disk up to ${durability.durableEpoch}`}`],
    [
      "log",
      mode === "none"
        ? "none: the store is lost when the machine restarts"
        : `${durability.state}, ${shownSize(durability.logBytes)} in ` +
          `${counted(durability.records, "record")}` +
          `${writer === undefined ? "" : `, written by ${writer.pid}/${writer.threadId}`}`,
    ],
    ...(mode === "none"
      ? []
      : [["checkpoints", `${shownCount(durability.checkpoints)}${last}`] as const]),
    ["snapshots", `${snapshots.open} open, ${shownSize(snapshots.versionBytes)} of old versions`],
    ...Object.entries(counters).map(([name, value]) => [name, shownCount(value)] as const),
  ]);
}

function showFile(screen: Screen, found: InspectedSegment | InspectedCheckpoint): void {
  if ("batches" in found) showSegment(screen, found);
  else showCheckpoint(screen, found);
  for (const { offset, what } of found.damage) screen.line(screen.red(`byte ${offset}: ${what}`));
}

const BATCH_COLUMNS: readonly Column[] = [
  { head: "byte", isRight: true },
  { head: "bytes", isRight: true },
  { head: "epochs", isRight: true },
  { head: "records", isRight: true },
  { head: "closed at" },
];

function showSegment(screen: Screen, found: InspectedSegment): void {
  const { name, bytes, usedBytes, batches, records, firstEpoch, lastEpoch, end } = found;
  record(screen, [
    ["segment", name],
    ["bytes", `${shownCount(usedBytes)} used of ${shownCount(bytes)}`],
    ["epochs", firstEpoch === null ? "none" : `after ${firstEpoch}, up to ${lastEpoch}`],
    ["holds", `${counted(batches.length, "batch", "batches")}, ${counted(records, "record")}`],
    ["behind it", end],
  ]);
  const rows = batches.map((batch) => [
    shownCount(batch.offset),
    shownCount(batch.bytes),
    `${batch.afterEpoch + 1}–${batch.lastEpoch}`,
    shownCount(batch.records),
    batch.closedAt,
  ]);
  if (rows.length === 0) return;
  screen.line();
  for (const each of renderTable(BATCH_COLUMNS, rows, screen.columns, screen.dim))
    screen.line(each);
  for (const batch of batches) {
    for (const transaction of batch.transactions ?? []) screen.line(JSON.stringify(transaction));
  }
}

const SIZE_COLUMNS: readonly Column[] = [
  { head: "cells of", isRight: true },
  { head: "blocks", isRight: true },
  { head: "bytes", isRight: true },
];

function showCheckpoint(screen: Screen, found: InspectedCheckpoint): void {
  const { name, bytes, kind, startEpoch, endEpoch, logEpoch, closedAt } = found;
  record(screen, [
    ["checkpoint", name],
    ["kind", kind],
    ["bytes", shownCount(bytes)],
    ["epochs", `all up to ${startEpoch}, nothing after ${endEpoch}`],
    ["needs the log", logEpoch === null ? "no" : `up to ${logEpoch}`],
    ["closed at", closedAt],
    [
      "blocks",
      `${shownCount(found.writtenBlocks)} here, ${shownCount(found.otherBlocks)} as before`,
    ],
  ]);
  const rows = found.sizes.map(({ cellBytes, blocks, bytes: each }) => [
    shownSize(cellBytes),
    shownCount(blocks),
    shownCount(each),
  ]);
  screen.line();
  for (const each of renderTable(SIZE_COLUMNS, rows, screen.columns, screen.dim)) screen.line(each);
}

function record(screen: Screen, fields: readonly (readonly [string, string])[]): void {
  for (const each of renderRecord(fields, screen.columns, screen.dim)) screen.line(each);
}
