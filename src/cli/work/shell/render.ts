/** Shows what statements came to: tables for people, JSON for programs. */

import { counted, shownCount } from "../../../runtime/units.ts";
import type { Table } from "../../../tables/table.ts";
import type { Screen } from "../../screen.ts";
import {
  type Column,
  columnWidths,
  renderRecord,
  renderTable,
  tableHead,
  tableLine,
} from "../../text-table.ts";
import type { Outcome } from "./outcome.ts";
import { cellsOf, columnsOf, fieldNames, shownValue } from "./show.ts";
import type { Row } from "./target.ts";

/** Rows that decide on the widths of columns, and that are shown at a time. */
const PAGE_ROWS = 500;

export async function showOutcome(
  screen: Screen,
  outcome: Outcome,
  signal: AbortSignal,
): Promise<void> {
  switch (outcome.kind) {
    case "row":
      screen.json(outcome.row ?? null);
      if (outcome.row === undefined) screen.line(screen.dim("no such row"));
      else showRow(screen, outcome.table, outcome.row);
      return;
    case "rows":
      return showRows(screen, outcome, signal);
    case "count":
      screen.json({ count: outcome.count });
      screen.line(shownCount(outcome.count));
      return;
    case "done":
      screen.json({ did: outcome.did });
      screen.line(screen.dim(outcome.text));
  }
}

function showRow(screen: Screen, table: Table, row: Row): void {
  const fields = fieldNames(table).map((name) => [name, shownValue(row[name])] as const);
  for (const line of renderRecord(fields, screen.columns, screen.dim)) screen.line(line);
}

async function showRows(
  screen: Screen,
  { table, rows, most }: Extract<Outcome, { kind: "rows" }>,
  signal: AbortSignal,
): Promise<void> {
  const pages = new Pages(screen, columnsOf(table));
  let shown = 0;
  let hasMore = false;
  for await (const row of rows) {
    signal.throwIfAborted();
    if (shown === most) {
      hasMore = true;
      break;
    }
    shown++;
    screen.json(row);
    if (!screen.isJson) pages.add(cellsOf(table, row));
    await screen.drained();
  }
  pages.end();
  const more = hasMore
    ? `the first ${counted(shown, "row")}; use limit N for more`
    : counted(shown, "row");
  screen.line(screen.dim(`(${more})`));
}

/** Rows of any number as one table: the first page decides how wide the columns are. */
class Pages {
  readonly #screen: Screen;
  readonly #columns: readonly Column[];
  #page: string[][] = [];
  #widths: number[] | undefined;
  #isFirst = true;

  constructor(screen: Screen, columns: readonly Column[]) {
    this.#screen = screen;
    this.#columns = columns;
  }

  add(cells: string[]): void {
    this.#page.push(cells);
    if (this.#page.length >= PAGE_ROWS) this.#flush();
  }

  end(): void {
    if (this.#page.length > 0) this.#flush();
  }

  #flush(): void {
    const { columns, dim } = this.#screen;
    if (this.#isFirst) {
      this.#isFirst = false;
      this.#widths = columnWidths(this.#columns, this.#page, columns);
      const head = this.#widths === undefined ? [] : tableHead(this.#columns, this.#widths, dim);
      for (const line of head) this.#screen.line(line);
    }
    const lines =
      this.#widths === undefined
        ? renderTable(this.#columns, this.#page, columns, dim)
        : this.#page.map((row) => tableLine(this.#columns, this.#widths!, row));
    for (const line of lines) this.#screen.line(line);
    this.#page = [];
  }
}
