/** The structures of a table, its rows and the parts of its indexes, each with the check for it. */

import type { Address } from "../../memory/address.ts";
import type { StoredIndex } from "../../tables/indexes/definition.ts";
import { keyIn, shownValue } from "../../tables/indexes/entries.ts";
import { formOf, INDEX_FORMS } from "../../tables/indexes/forms.ts";
import { type RowValues, Structure } from "../../tables/indexes/structure.ts";
import type { StoredSuccessor } from "../../tables/migrations/stored.ts";
import type { StoredSchema } from "../../tables/schema.ts";
import type { Table } from "../../tables/table.ts";
import { tableFromSchema } from "../../tables/table-from-schema.ts";
import type { Check, Problems } from "../structures/check.ts";
import { type Figures, STRUCTURE_CHECKS } from "../structures/kinds.ts";
import { ObjectReader } from "../structures/reader.ts";
import type { SeenCells } from "../structures/seen-cells.ts";
import { checkDeviceTable } from "./device-check.ts";
import { rowFaultOf } from "./row-faults.ts";
import type { ToolRun } from "./tool-run.ts";

/** A hidden or declared table as a structure in memory. */
export interface Part {
  /** As in "table accounts" or "index byOwner of table accounts". */
  readonly subject: string;
  readonly structure: Structure<RowValues, unknown>;
  readonly root: Address;
}

export interface IndexParts {
  readonly index: StoredIndex;
  readonly parts: readonly Part[];
}

export interface TableParts {
  readonly table: Table;
  readonly schema: StoredSchema;
  readonly rows: Part;
  readonly indexes: readonly IndexParts[];
  /** Indexes that could not be built: nothing is promised of their entries. */
  readonly leftovers: readonly IndexParts[];
  /** What will take its place, if it is being migrated. */
  readonly successor: SuccessorParts | undefined;
}

/** The table that another one becomes. */
export interface SuccessorParts {
  readonly stored: StoredSuccessor;
  readonly parts: TableParts;
}

export function partsOf(schema: StoredSchema, root: Address, what = "table"): TableParts {
  const table = tableFromSchema(schema);
  const subject = `${what} ${table.name}`;
  const structure = new Structure(table as Table<RowValues>);
  const partsIn = (index: StoredIndex, more: string): IndexParts => {
    const form = INDEX_FORMS[formOf(index)];
    const parts = form.structures(table, index).map((each, part) => ({
      subject: `index ${index.name} of ${subject}${form.parts[part]}${more}`,
      structure: each,
      root: index.roots[part],
    }));
    return { index, parts };
  };
  return {
    table,
    schema,
    rows: { subject, structure, root },
    indexes: schema.indexes.map((index) => partsIn(index, "")),
    leftovers: schema.leftovers.map((index) => partsIn(index, ", which could not be built")),
    successor: schema.successor && successorOf(schema.successor),
  };
}

function successorOf(stored: StoredSuccessor): SuccessorParts {
  const schema = { ...stored.schema, leftovers: [] };
  return { stored, parts: partsOf(schema, stored.root, "the successor of table") };
}

/** The check of one structure; `each` is called with every row that makes sense. */
export function checkOf(
  tool: ToolRun,
  part: Part,
  seen: SeenCells,
  problems: Problems,
  each: (row: RowValues) => void,
): Check<Figures> {
  const { table, codec } = part.structure;
  if (table.storage === "device") {
    return checkDeviceTable(tool, part, seen, problems, each, (hidden, found) =>
      checkOf(tool, hidden, seen, problems.of(hidden.subject), found),
    );
  }
  const owner = seen.addOwner(part.subject);
  const reader = new ObjectReader(tool.executor, tool.run, seen, owner, problems);
  return STRUCTURE_CHECKS[table.layout](
    reader,
    {
      codec,
      fault: rowFaultOf(table),
      showKey: (row: RowValues) => shownValue(keyIn(row, table.key, table.singleKey)),
      each,
    },
    part.root,
  );
}
