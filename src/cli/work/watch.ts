/** `situ watch`: what happens to the rows of a table, for people and pipes: JSON in either case. */

import { SituError } from "../../runtime/errors.ts";
import { didYouMean } from "../../runtime/nearest.ts";
import { EXIT_OK, UsageError } from "../failures.ts";
import { toJson } from "../screen.ts";
import type { Run } from "./context.ts";
import { openStored } from "./stores.ts";

export const runWatch: Run<"watch"> = async (values, { screen, signal }) => {
  const { path, table: name, since, limit = Number.POSITIVE_INFINITY, stop } = values;
  if (stop && (since !== undefined || values.limit !== undefined)) {
    throw new UsageError("--stop goes with neither --since nor --limit");
  }
  const { db, tables } = await openStored(path, screen);
  await using _ = db;
  const table = tables.get(name);
  if (table === undefined) {
    const hint = didYouMean(name, [...tables.keys()], "");
    throw new SituError("SITU_UNKNOWN_TABLE", `the store has no table ${name}${hint}`);
  }
  if (stop) {
    const was = db.unwatch(table);
    screen.json({ table: name, wasRecording: was });
    screen.line(was ? `changes of ${name} are no longer recorded` : `${name} was not watched`);
    return EXIT_OK;
  }
  let told = 0;
  try {
    for await (const change of db.watch(table, {
      signal,
      ...(since === undefined ? {} : { from: since }),
    })) {
      process.stdout.write(`${toJson(change)}\n`);
      await screen.drained();
      if (++told >= limit) break;
    }
  } catch (error) {
    // A signal is how it ends.
    if (!signal.aborted) throw error;
  }
  return EXIT_OK;
};
