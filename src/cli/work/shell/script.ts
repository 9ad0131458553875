/** Statements from --execute or from a pipe: they are run as they come, up to the first error. */

import { createInterface } from "node:readline";
import { SituError } from "../../../runtime/errors.ts";
import { EXIT_OK } from "../../failures.ts";
import { runLine } from "./run.ts";
import type { ShellSession } from "./session.ts";
import { splitStatements } from "./words.ts";

export async function runScript(
  lines: AsyncIterable<string> | Iterable<string>,
  session: ShellSession,
  signal: AbortSignal,
): Promise<number> {
  let begun = "";
  let lost: unknown;
  session.onLost = (error) => {
    lost = error;
  };
  for await (const line of lines) {
    const { statements, rest } = splitStatements(`${begun}${line}\n`);
    begun = rest;
    for (const statement of statements) {
      signal.throwIfAborted();
      if (lost !== undefined) throw lost;
      if ((await runLine(statement, session, signal)) === "exit") return ended(session);
    }
  }
  signal.throwIfAborted();
  if (begun.trim() !== "") {
    throw new SituError("SITU_TYPE", `a bracket or quote is not closed: ${begun.trim()}`);
  }
  return ended(session);
}

/** A script that forgets its commit has not done what it was written for. */
function ended(session: ShellSession): number {
  if (!session.isInTransaction) return EXIT_OK;
  throw new SituError("SITU_ABORTED", "the script ended inside a transaction: it was rolled back");
}

/** The lines of stdin, until it ends or the signal comes. */
export function linesOfStdin(signal: AbortSignal): AsyncIterable<string> {
  return createInterface({ input: process.stdin, terminal: false, signal });
}
