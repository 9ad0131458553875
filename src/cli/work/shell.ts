/** `situ shell`: a prompt on a store, or statements from a script. */

import type { Run } from "./context.ts";
import { Prompt } from "./shell/prompt.ts";
import { linesOfStdin, runScript } from "./shell/script.ts";
import { ShellSession } from "./shell/session.ts";

/** Rows that a person wants to see of a table, if he has not said how many. */
const PROMPT_ROWS = 100;

export const runShell: Run<"shell"> = async (values, { screen, signal }) => {
  const { path, execute, limit, transactionTime } = values;
  const isPrompt = execute === undefined && process.stdin.isTTY === true;
  const mostRows = limit ?? (isPrompt ? PROMPT_ROWS : Number.POSITIVE_INFINITY);
  const session = await ShellSession.open({
    path,
    screen,
    mostRows,
    transactionMs: transactionTime,
  });
  try {
    if (isPrompt) return await new Prompt(session, signal).run();
    const lines = execute === undefined ? linesOfStdin(signal) : execute.split("\n");
    return await runScript(lines, session, signal);
  } finally {
    await session.close();
  }
};
