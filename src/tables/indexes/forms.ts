/**
 * The forms of indexes: what an index consists of in memory. Which one it has follows from its
 * definition. As with the kinds of tables (stores/kinds.ts), a new form is a file and a line here, and
 * one in the comparison of indexes with rows (tools/tables/compare-indexes.ts), which the compiler
 * asks for.
 */

import type { Executor } from "../../engine/executor.ts";
import type { Table } from "../table.ts";
import type { IndexDefinition, StoredIndex } from "./definition.ts";
import type { Index } from "./entries.ts";
import { EntryIndex, entryStructures } from "./entry-index.ts";
import { PostingsIndex, postingsStructures } from "./postings-index.ts";
import type { RowValues, Structure } from "./structure.ts";

interface FormOfIndex {
  /** What its structures are called in messages, in the order of its roots. */
  readonly parts: readonly string[];
  /** The one of them that has an entry for each row. */
  readonly entriesPart: number;
  /** The hidden tables that it consists of. */
  structures(table: Table, definition: IndexDefinition): Structure<RowValues, unknown>[];
  open(executor: Executor, table: Table, stored: StoredIndex): Index;
}

export const INDEX_FORMS = {
  entries: {
    parts: [""],
    entriesPart: 0,
    structures: entryStructures,
    open: (executor, table, stored) => new EntryIndex(executor, table, stored),
  },
  postings: {
    parts: [" (counts)", " (entries)", " (places)"],
    entriesPart: 1,
    structures: postingsStructures,
    open: (executor, table, stored) => new PostingsIndex(executor, table, stored),
  },
} satisfies Record<string, FormOfIndex>;

export type IndexForm = keyof typeof INDEX_FORMS;

export function formOf({ kind, unique }: IndexDefinition): IndexForm {
  return kind === "hash" && !unique ? "postings" : "entries";
}

export function structuresOf(
  table: Table,
  definition: IndexDefinition,
): Structure<RowValues, unknown>[] {
  return INDEX_FORMS[formOf(definition)].structures(table, definition);
}

export function openIndex(executor: Executor, table: Table, stored: StoredIndex): Index {
  return INDEX_FORMS[formOf(stored)].open(executor, table, stored);
}
