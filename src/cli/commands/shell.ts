/** `situ shell`: looking at a store and changing it, by hand or from a script. */

import { COMMON, command } from "../command.ts";
import { defaulted, duration, path, required, text, whole } from "../option-kinds.ts";

const MOST_ROWS = 1_000_000_000;

export const SHELL = command({
  summary: "an interactive prompt on a store: get, put, scan, transactions",
  synopsis: "--path DIR [--execute LINES]",
  about: [
    "Works on any store: it makes the tables from the schemas that are there. With --execute, or",
    "with lines from a pipe, it runs them and ends, at the first error with exit code 1. Type help",
    "for the statements. The history is in ~/.situ_history, or where SITU_HISTORY says (empty: in no",
    "file).",
  ],
  options: {
    path: required(path("DIR", "the folder of the store")),
    execute: text("LINES", "runs these statements, separated by ; or new lines, and ends"),
    limit: whole(1, MOST_ROWS, "rows of a scan without a limit (100 at a prompt, else all)"),
    transactionTime: defaulted(
      5 * 60e3,
      duration("how long a transaction may stay open between begin and commit (5min)"),
    ),
    ...COMMON,
  },
  examples: [
    ["situ shell --path ./bank", "then: tables; describe account; get account 7"],
    ['situ shell --path ./bank --execute "scan account from 10 to 20"', "one statement"],
    ["situ shell --path ./bank --json < lines.txt", "statements from a file, results as JSON"],
  ],
});
