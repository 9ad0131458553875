/** What a statement about rows comes to, before it is shown. */

import type { Table } from "../../../tables/table.ts";
import { toJson } from "../../screen.ts";
import type { Row, Target } from "./target.ts";

export type Outcome =
  | { readonly kind: "row"; readonly table: Table; readonly row: Row | undefined }
  | {
      readonly kind: "rows";
      readonly table: Table;
      readonly rows: AsyncIterable<Row> | Iterable<Row>;
      /** Rows to show if nobody has said how many: one more was asked for, to know of it. */
      readonly most: number;
    }
  | { readonly kind: "count"; readonly count: number }
  | { readonly kind: "done"; readonly did: string; readonly text: string };

/** A statement about rows that has been understood: it can be carried out, also again. */
export interface DataStatement {
  readonly line: string;
  carryOut(target: Target): Promise<Outcome>;
}

/** The same with all rows read: inside a transaction they are needed again. */
export async function gathered(outcome: Outcome): Promise<Outcome> {
  if (outcome.kind !== "rows") return outcome;
  const rows: Row[] = [];
  for await (const row of outcome.rows) rows.push(row);
  return { ...outcome, rows };
}

/** What the user has seen of it: two outcomes that are told alike are the same. */
export function toldAs(outcome: Outcome): string {
  switch (outcome.kind) {
    case "row":
      return toJson(outcome.row ?? null);
    case "rows":
      return toJson([...(outcome.rows as Iterable<Row>)]);
    case "count":
      return String(outcome.count);
    case "done":
      return outcome.text;
  }
}
