/** dump and load: thin over src/transfer/, with a line that says how far they are. */

import { once } from "node:events";
import type { ConnectOptions } from "../../database/remote/connect-options.ts";
import { counted, shownSize } from "../../runtime/units.ts";
import { dump, noTable } from "../../transfer/dump.ts";
import { type DumpFormat, dumpTable } from "../../transfer/dump-table.ts";
import { load } from "../../transfer/load.ts";
import { openCluster, openStored } from "../../transfer/stored-tables.ts";
import { EXIT_OK, UsageError } from "../failures.ts";
import { connectionOf } from "./cluster-connection.ts";
import type { Context, Run } from "./context.ts";
import { watched } from "./watched.ts";

/** A dump of a cluster may take long; each of its requests may not. */
const ANSWER_MS = 5_000;

/** The path of a store, or where a cluster is. */
function placeOf(
  values: Omit<Parameters<typeof connectionOf>[0], "connect"> & {
    readonly path: string | undefined;
    readonly connect: string | undefined;
  },
): { readonly place: string | ConnectOptions; readonly name: string } {
  const { path, connect } = values;
  if (path !== undefined && connect === undefined) return { place: path, name: path };
  if (connect === undefined || path !== undefined) {
    throw new UsageError("say which: --path DIR for a store, or --connect HOST:PORT for a cluster");
  }
  return { place: connectionOf({ ...values, connect }, ANSWER_MS), name: connect };
}

export const runDump: Run<"dump"> = async (values, context) => {
  const { to, table, format = "jsonl" } = values;
  const { place, name: path } = placeOf(values);
  if (to === undefined) {
    if (table !== undefined) return printTable(place, table, format, context);
    throw new UsageError("say where to: --to DIR for all tables, or --table NAME to print one");
  }
  const dumped = await watched(context, "dumping", (options) =>
    dump(place, to, { ...options, format, ...(table === undefined ? {} : { tables: [table] }) }),
  );
  const { screen } = context;
  screen.json({ path, to, ...dumped });
  for (const { name, rows, bytes, file } of dumped.tables) {
    screen.line(`${name}: ${counted(rows, "row")}, ${shownSize(bytes)} in ${file}`);
  }
  for (const { name, rows, bytes, file } of dumped.graphs) {
    screen.line(`graph ${name}: ${counted(rows, "line")}, ${shownSize(bytes)} in ${file}`);
  }
  screen.line(`dumped ${path} to ${to}`);
  return EXIT_OK;
};

/** Only rows on stdout, whatever reads them. */
async function printTable(
  place: string | ConnectOptions,
  name: string,
  format: DumpFormat,
  { signal }: Context,
): Promise<number> {
  const isStore = typeof place === "string";
  const { db, tables } = isStore ? await openStored({ path: place }) : await openCluster(place);
  await using _ = db;
  const table = tables.get(name) ?? noTable(name, isStore ? place : "the cluster");
  for await (const piece of dumpTable(db, table, { format, signal })) {
    if (!process.stdout.write(piece)) await once(process.stdout, "drain");
  }
  return EXIT_OK;
}

export const runLoad: Run<"load"> = async (values, context) => {
  const { from, table, format, onConflict, memoryBytes, memoryDir } = values;
  const { place, name: path } = placeOf(values);
  const given = { table, format, onConflict, memoryBytes, memoryDir };
  const known = Object.entries(given).filter(([, value]) => value !== undefined);
  const loaded = await watched(context, "loading", (options) =>
    load(from, place, { ...options, ...Object.fromEntries(known) }),
  );
  const { screen } = context;
  screen.json({ from, path, ...loaded });
  for (const { name, rows, skipped } of loaded.tables) {
    const more = skipped === 0 ? "" : `, ${counted(skipped, "row")} skipped`;
    screen.line(`${name}: ${counted(rows, "row")}${more}`);
  }
  for (const { name, rows, skipped } of loaded.graphs) {
    const more = skipped === 0 ? "" : `, ${skipped} skipped`;
    screen.line(`graph ${name}: ${counted(rows, "object and edge", "objects and edges")}${more}`);
  }
  screen.line(`loaded ${from} into ${path}`);
  return EXIT_OK;
};
