/**
 * Compares a table that is being migrated with its successor, in one snapshot: every row of the
 * successor is what a row of the table becomes, and when it is about to take the table's place, every
 * row of the table has become one.
 */

import { isDeepStrictEqual } from "node:util";
import { Transform } from "../../tables/migrations/transform.ts";
import type { Problems } from "../structures/check.ts";
import { carefully, RowLookup, walk } from "./compare-indexes.ts";
import type { Part, SuccessorParts } from "./parts.ts";
import type { ToolRun } from "./tool-run.ts";

/** For structures that were found sound; `count` is the number of the successor's rows. */
export async function compareSuccessor(
  tool: ToolRun,
  rows: Part,
  { stored, parts }: SuccessorParts,
  count: number,
  problems: Problems,
): Promise<void> {
  const { table } = rows.structure;
  const transform = new Transform(table, parts.table, stored.sources);
  const next = new RowLookup(tool, parts.rows);
  const isComplete = stored.state === "switching";
  let found = 0;
  await walk(tool, rows, Object.keys(table.fields), (row) => {
    const expected = transform.rowOf(row);
    const place = (): string => `row ${next.keyOf(expected)}`;
    carefully(problems, place, () => {
      const there = next.find(expected);
      if (there !== undefined) found++;
      if (there === undefined && isComplete) problems.add(place(), "it was not copied");
      else if (there !== undefined && !isDeepStrictEqual(there, { ...there, ...expected })) {
        problems.add(place(), "it is not what the row of the table becomes");
      }
    });
  });
  if (found !== count) {
    problems.add(undefined, `it has ${count} rows, ${found} of which are in the table`);
  }
}
