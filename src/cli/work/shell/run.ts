/** Carries out one statement and shows what it came to. */

import { SituError } from "../../../runtime/errors.ts";
import { counted } from "../../../runtime/units.ts";
import { describeIndex } from "../../../tables/indexes/definition.ts";
import type { Table } from "../../../tables/table.ts";
import { ProgressLine } from "../../progress.ts";
import { renderRecord, renderTable } from "../../text-table.ts";
import { showInspectedTable, showStats } from "../inspect.ts";
import { showOutcome } from "./render.ts";
import type { ShellSession } from "./session.ts";
import { fieldNames } from "./show.ts";
import {
  dataStatement,
  expectWords,
  STATEMENT_NAMES,
  STATEMENTS,
  type StatementName,
  type Typed,
  typed,
  VALUES_HELP,
} from "./statements.ts";

/** Whether the shell goes on. */
export type Verdict = "go on" | "exit";

export async function runLine(
  line: string,
  session: ShellSession,
  signal: AbortSignal,
): Promise<Verdict> {
  const given = typed(line);
  if (given.name === "exit") return "exit";
  const data = await dataStatement(given, session);
  if (data !== undefined) {
    const outcome = await session.carryOut(data);
    await showOutcome(session.options.screen, outcome, signal);
  } else await OTHERS[given.name as OtherName](given, session, signal);
  return "go on";
}

type DataName = "get" | "scan" | "count" | "insert" | "put" | "update" | "delete";
type OtherName = Exclude<StatementName, DataName | "exit">;
type Other = (given: Typed, session: ShellSession, signal: AbortSignal) => Promise<void> | void;

const OTHERS: Readonly<Record<OtherName, Other>> = {
  tables(given, session) {
    expectWords(given, 0);
    const { screen } = session.options;
    const { tables } = session.db.stats();
    screen.json(tables);
    if (tables.length === 0) screen.line(screen.dim("no tables"));
    if (tables.length === 0) return;
    const rows = tables.map(({ name, key, fields, ordered, indexes }) => [
      name,
      key.join(", "),
      ordered ? "ordered" : "hashed",
      `${Object.keys(fields).length}`,
      indexes.map((index) => index.name).join(", "),
    ]);
    const columns = [
      { head: "table" },
      { head: "key" },
      { head: "kind" },
      { head: "fields", isRight: true },
      { head: "indexes" },
    ];
    for (const each of renderTable(columns, rows, screen.columns, screen.dim)) screen.line(each);
  },

  async describe(given, session) {
    expectWords(given, 1);
    const { screen } = session.options;
    const table = await session.table(given.words[0]?.text);
    const { name, ordered, layout } = table;
    const { key, fields } = shapeOf(table);
    screen.json({ name, key: table.key, ordered, fields, indexes: table.indexes });
    const rows = Object.entries(fields).map(([field, kind]) => [
      field,
      kind,
      key.includes(field) ? `key${key.length > 1 ? ` ${key.indexOf(field) + 1}` : ""}` : "",
    ]);
    const columns = [{ head: "field" }, { head: "type" }, { head: "" }];
    for (const each of renderTable(columns, rows, screen.columns, screen.dim)) screen.line(each);
    const kind = ordered ? "ordered by its key" : `hashed by its key (${layout})`;
    screen.line(screen.dim(`(${kind})`));
    for (const index of table.indexes) {
      screen.line(`index ${index.name}: ${describeIndex(index)}`);
    }
  },

  begin(given, session) {
    expectWords(given, 0);
    session.begin();
    done(session, "begin", "transaction open: end it with commit or rollback");
  },

  async commit(given, session) {
    expectWords(given, 0);
    const statements = await session.finish("commit");
    done(session, "commit", `committed (${counted(statements, "statement")})`);
  },

  async rollback(given, session) {
    expectWords(given, 0);
    await session.finish("rollback");
    done(session, "rollback", "rolled back");
  },

  async repeat(given, session, signal) {
    expectWords(given, 0);
    const { lost } = session;
    if (lost.length === 0) {
      throw new SituError("SITU_CLOSED", "there is no transaction to repeat");
    }
    session.begin();
    for (const line of lost) {
      session.options.screen.line(session.options.screen.dim(`· ${line}`));
      await runLine(line, session, signal);
    }
    done(session, "begin", "transaction open again: end it with commit or rollback");
  },

  stats(given, session) {
    expectWords(given, 0);
    const stats = session.db.stats();
    session.options.screen.json(stats);
    if (!session.options.screen.isJson) showStats(session.options.screen, stats);
  },

  async inspect(given, session) {
    expectWords(given, 1);
    const { name } = await session.table(given.words[0]?.text);
    const found = await session.db.inspect(name);
    session.options.screen.json(found);
    if (!session.options.screen.isJson) showInspectedTable(session.options.screen, found);
  },

  async verify(given, session, signal) {
    expectWords(given, 0);
    const { screen } = session.options;
    const line = new ProgressLine(screen, "verifying");
    const found = await session.db
      .verify({ signal, onProgress: line.show })
      .finally(() => line.clear());
    screen.json(found);
    for (const { name, rows } of found.tables) screen.line(`${name}: ${counted(rows, "row")}`);
    if (found.problemCount === 0) {
      screen.line(screen.green("sound"));
      return;
    }
    for (const problem of found.problems) screen.line(screen.red(problem));
    throw new SituError("SITU_CORRUPT", `${counted(found.problemCount, "fault")} found`);
  },

  help(given, session) {
    expectWords(given, 1);
    const { screen } = session.options;
    const asked = given.words[0]?.text;
    const names = STATEMENT_NAMES.filter((name) => asked === undefined || name === asked);
    if (names.length === 0) typed(asked!);
    screen.json(
      names.map((name) => ({ name, usage: STATEMENTS[name][0], what: STATEMENTS[name][1] })),
    );
    const lines = names.map((name) => STATEMENTS[name]);
    for (const each of renderRecord(lines, Math.max(screen.columns, 120))) screen.line(each);
    if (asked === undefined) for (const each of ["", ...VALUES_HELP]) screen.line(each);
  },
};

function done({ options: { screen } }: ShellSession, did: string, text: string): void {
  screen.json({ did });
  screen.line(screen.dim(text));
}

function shapeOf(table: Table): { key: readonly string[]; fields: Record<string, string> } {
  const fields: Record<string, string> = {};
  for (const name of fieldNames(table)) {
    const { kind, max } = table.fields[name];
    fields[name] = max === undefined ? kind : `${kind}(${max})`;
  }
  return { key: table.key, fields };
}
