/**
 * Reads the catalogue (catalogue.ts tells its layout) in any state, sound or not: what cannot be
 * read is told, and the other tables are read all the same.
 */

import { classFor, mayLieIn } from "../../engine/cells.ts";
import { type Address, addressOf } from "../../memory/address.ts";
import { CATALOGUE_REGION, CATALOGUE_WORD } from "../../memory/control.ts";
import { Views } from "../../memory/views.ts";
import { MAX_CELL_BYTES, MAX_SCHEMA_BYTES, MAX_TABLES } from "../../runtime/limits.ts";
import { ENTRY_SCHEMA, ROOT_TABLES, ROOT_WORDS } from "../../tables/catalogue.ts";
import type { StoredSchema } from "../../tables/schema.ts";
import type { Problems } from "../structures/check.ts";
import { ObjectReader } from "../structures/reader.ts";
import type { SeenCells } from "../structures/seen-cells.ts";
import { partsOf, type TableParts } from "./parts.ts";
import type { ToolRun } from "./tool-run.ts";

/** All tables of the store that can be made sense of; with `only`, those of that name. */
export function readTables(
  tool: ToolRun,
  seen: SeenCells,
  problems: Problems,
  only?: string,
): TableParts[] {
  const { control } = tool.executor.memory;
  const owner = seen.addOwner("the catalogue");
  const reader = new ObjectReader(tool.executor, tool.run, seen, owner, problems);
  const root = new Views(new ArrayBuffer(ROOT_WORDS * 4));
  const place = "its root";
  const [regionId, word] = [control.i32[CATALOGUE_REGION] - 1, control.i32[CATALOGUE_WORD]];
  const expected = { sizeClass: classFor(ROOT_WORDS * 4), incarnation: undefined };
  if (!reader.readCell(place, regionId, word, expected, ROOT_WORDS, root)) return [];
  const count = root.i32[0];
  if (count < 0 || count > MAX_TABLES) {
    problems.add(place, `it has ${count} tables, at most ${MAX_TABLES} are possible`);
    return [];
  }
  const tables: TableParts[] = [];
  const names = new Set<string>();
  for (let position = 0; position < MAX_TABLES; position++) {
    const at = ROOT_TABLES + 2 * position;
    const [regionId, word] = [root.i32[at] - 1, root.i32[at + 1]];
    const where = `entry ${position}`;
    if (position >= count) {
      if (regionId !== -1 || word !== 0) problems.add(where, `it is behind the last of ${count}`);
      continue;
    }
    const found = readEntry(reader, where, regionId, word, only);
    // Of a table that was dropped only its place is left, and what is being freed.
    if (found === undefined || found.schema.state === "dropped") continue;
    const { name } = found.table;
    if (names.has(name)) problems.add(where, `another table is called ${name}, too`);
    names.add(name);
    tables.push(found);
  }
  return tables;
}

function readEntry(
  reader: ObjectReader,
  where: string,
  regionId: number,
  word: number,
  only: string | undefined,
): TableParts | undefined {
  const { problems } = reader;
  const expected = { sizeClass: -1, incarnation: undefined };
  if (!reader.readCell(where, regionId, word, expected, -1, entry)) return undefined;
  const [rootRegion, rootWord, bytes] = entry.i32;
  if (bytes < 2 || bytes > MAX_SCHEMA_BYTES) {
    problems.add(where, `its schema has ${bytes} bytes, at most ${MAX_SCHEMA_BYTES} are possible`);
    return undefined;
  }
  if (!mayLieIn(classFor(ENTRY_SCHEMA * 4 + bytes), reader.sizeClass)) {
    problems.add(where, `its schema of ${bytes} bytes lies in a cell of another size`);
    return undefined;
  }
  const start = ENTRY_SCHEMA * 4;
  try {
    const text = entry.bytes.toString("utf8", start, start + bytes);
    const schema = JSON.parse(text) as StoredSchema;
    if (only !== undefined && schema?.name !== only) return undefined;
    const parts = partsOf(schema, rootOf(rootRegion, rootWord));
    const rootless = [...parts.indexes, ...parts.leftovers].find(
      ({ index, parts: each }) => index.roots.length !== each.length,
    );
    if (rootless === undefined) return parts;
    problems.add(where, `index ${rootless.index.name} has ${rootless.index.roots.length} roots`);
  } catch (error) {
    problems.add(where, error instanceof Error ? error.message : String(error));
  }
  return undefined;
}

function rootOf(region: number, word: number): Address {
  return addressOf(region - 1, word);
}

/** Where the entry that is being read lies. */
const entry = new Views(new ArrayBuffer(MAX_CELL_BYTES));
