/** `situ shell`: looking at a store and changing it, by hand or from a script. */

import { COMMON, command } from "../command.ts";
import { defaulted, duration, path, required, text, whole } from "../option-kinds.ts";

const MOST_ROWS = 1_000_000_000;

export const SHELL = command({
  summary: "an interactive prompt on a store: get, put, scan, transactions",
  synopsis: "--path DIR [--execute LINES]",
  about: [
    "Works on any store: the tables are read from it. With --execute, or",
    "when stdin is not a terminal, it runs the statements and exits; the first error ends it with",
    "exit code 1. Type help for the statements. The history is in ~/.situ_history, or in the file",
    "that SITU_HISTORY names (empty: none).",
  ],
  options: {
    path: required(path("DIR", "the store's folder")),
    execute: text("LINES", "runs these statements, separated by ; or newlines, and exits"),
    limit: whole(
      1,
      MOST_ROWS,
      "rows that a scan shows by default (100 at a prompt, otherwise all)",
    ),
    transactionTime: defaulted(5 * 60e3, duration("how long a transaction may stay open (5min)")),
    ...COMMON,
  },
  examples: [
    ["situ shell --path ./bank", "then: tables; describe account; get account 7"],
    ['situ shell --path ./bank --execute "scan account from 10 to 20"', "one statement"],
    ["situ shell --path ./bank --json < lines.txt", "statements from a file, results as JSON"],
  ],
});
