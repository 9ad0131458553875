/**
 * What is in a table: its schema, how many rows it has, how its structures are shaped and how much
 * memory they take. Plain objects that go into JSON as they are. The table is read in one snapshot,
 * as `verifyTables` reads it, so that problems of its structures are told here, too.
 */

import type { Executor } from "../../engine/executor.ts";
import { SituError } from "../../runtime/errors.ts";
import type { IndexDefinition, IndexState, StoredIndex } from "../../tables/indexes/definition.ts";
import { formOf, INDEX_FORMS } from "../../tables/indexes/forms.ts";
import { type MigrationStats, type Schema, statsOfMigration } from "../../tables/schema.ts";
import { Problems } from "../structures/check.ts";
import type { Figures } from "../structures/kinds.ts";
import { SeenCells } from "../structures/seen-cells.ts";
import { checkOf, type IndexParts, type Part } from "./parts.ts";
import { readTables } from "./read-tables.ts";
import { type ToolOptions, ToolRun } from "./tool-run.ts";

const MOST_PROBLEMS = 100;

export interface InspectedIndex extends IndexDefinition {
  readonly state: IndexState;
  readonly entries: number;
  readonly memoryBytes: number;
  /** One, or of a hash index that is not unique three: counts, entries, places. */
  readonly structures: readonly Figures[];
}

export interface InspectedTable {
  readonly schema: Omit<Schema, "indexes">;
  readonly rows: number;
  readonly structure: Figures;
  /** With all indexes. */
  readonly memoryBytes: number;
  readonly indexes: readonly InspectedIndex[];
  /** Structures of indexes that could not be built: they serve the next attempt. */
  readonly leftovers: readonly InspectedIndex[];
  /** The migration of the table, if one is under way; its memory is part of `memoryBytes`. */
  readonly migration?: MigrationStats;
  /** Structures from before a migration that are still to be freed. */
  readonly remains: number;
  readonly problems: readonly string[];
}

export async function inspectTable(
  executor: Executor,
  name: string,
  options: ToolOptions = {},
): Promise<InspectedTable> {
  const tool = new ToolRun(executor, options);
  return await tool.withSnapshot(async () => {
    const seen = new SeenCells(executor.slabs.blocks);
    const problems = new Problems(MOST_PROBLEMS, "the store");
    const tables = readTables(tool, seen, problems.of("the catalogue"));
    const parts = tables.find(({ table }) => table.name === name);
    if (parts === undefined) throw unknownTable(name, problems);
    const look = async (part: Part): Promise<Figures> => {
      tool.subject = part.subject;
      tool.rows = 0;
      return await tool.complete(
        checkOf(tool, part, seen, problems.of(part.subject), () => {
          tool.rows++;
        }),
      );
    };
    const lookAtAll = async (all: readonly IndexParts[]): Promise<InspectedIndex[]> => {
      const found: InspectedIndex[] = [];
      for (const { index, parts: each } of all) {
        const structures: Figures[] = [];
        for (const part of each) structures.push(await look(part));
        found.push(inspectedIndex(index, structures));
      }
      return found;
    };
    const structure = await look(parts.rows);
    const indexes = await lookAtAll(parts.indexes);
    const leftovers = await lookAtAll(parts.leftovers);
    const { name: itsName, fields, key, ordered, layout, successor, remains = [] } = parts.schema;
    const next: { readonly memoryBytes: number }[] = [];
    if (parts.successor !== undefined) {
      next.push(await look(parts.successor.parts.rows));
      next.push(...(await lookAtAll(parts.successor.parts.indexes)));
    }
    return {
      schema: { name: itsName, fields, key, ordered, ...(layout === undefined ? {} : { layout }) },
      rows: structure.rows,
      structure,
      memoryBytes: bytesOf([structure, ...indexes, ...leftovers, ...next]),
      indexes,
      leftovers,
      ...(successor === undefined ? {} : { migration: statsOfMigration(successor) }),
      remains: remains.reduce((sum, { root, schema: { indexes: each } }) => {
        return sum + Number(root !== undefined) + each.length;
      }, 0),
      problems: problems.list,
    };
  });
}

function inspectedIndex(index: StoredIndex, structures: readonly Figures[]): InspectedIndex {
  const { name, on, unique, kind, state } = index;
  const entries = structures[INDEX_FORMS[formOf(index)].entriesPart].rows;
  return { name, on, unique, kind, state, entries, memoryBytes: bytesOf(structures), structures };
}

function bytesOf(parts: readonly { readonly memoryBytes: number }[]): number {
  return parts.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
}

function unknownTable(name: string, problems: Problems): SituError {
  const more = problems.count === 0 ? "" : `; the catalogue is damaged: ${problems.list[0]}`;
  return new SituError("SITU_UNKNOWN_TABLE", `the store has no table ${name}${more}`);
}
