/** dump and load: thin over src/transfer/, with a line that says how far they are. */

import { once } from "node:events";
import { counted, shownSize } from "../../runtime/units.ts";
import { dump, noTable } from "../../transfer/dump.ts";
import { type DumpFormat, dumpTable } from "../../transfer/dump-table.ts";
import { load } from "../../transfer/load.ts";
import { openStored } from "../../transfer/stored-tables.ts";
import { EXIT_OK, UsageError } from "../failures.ts";
import type { Context, Run } from "./context.ts";
import { watched } from "./watched.ts";

export const runDump: Run<"dump"> = async ({ path, to, table, format = "jsonl" }, context) => {
  if (to === undefined) {
    if (table !== undefined) return printTable(path, table, format, context);
    throw new UsageError("say where to: --to DIR for all tables, or --table NAME to print one");
  }
  const dumped = await watched(context, "dumping", (options) =>
    dump(path, to, { ...options, format, ...(table === undefined ? {} : { tables: [table] }) }),
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
  path: string,
  name: string,
  format: DumpFormat,
  { signal }: Context,
): Promise<number> {
  const { db, tables } = await openStored({ path });
  await using _ = db;
  const table = tables.get(name) ?? noTable(name, path);
  for await (const piece of dumpTable(db, table, { format, signal })) {
    if (!process.stdout.write(piece)) await once(process.stdout, "drain");
  }
  return EXIT_OK;
}

export const runLoad: Run<"load"> = async (values, context) => {
  const { from, path, table, format, onConflict, memoryBytes, memoryDir } = values;
  const given = { table, format, onConflict, memoryBytes, memoryDir };
  const known = Object.entries(given).filter(([, value]) => value !== undefined);
  const loaded = await watched(context, "loading", (options) =>
    load(from, path, { ...options, ...Object.fromEntries(known) }),
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
