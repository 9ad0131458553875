/**
 * verify, backup and restore: thin over the tools of stores, with a line that says how far they
 * are.
 */

import { existsSync } from "node:fs";
import { backup, restore, verify } from "../../database/store-tools.ts";
import { nowMs } from "../../runtime/clock.ts";
import { counted, shownMs, shownSize } from "../../runtime/units.ts";
import type { Copied } from "../../tools/files/copy.ts";
import { existingStore } from "../../transfer/stored-tables.ts";
import { EXIT_FAULTS, EXIT_OK, UsageError } from "../failures.ts";
import type { Context, Run } from "./context.ts";
import { watched } from "./watched.ts";

export const runVerify: Run<"verify"> = async ({ path }, context) => {
  const { screen } = context;
  const startMs = nowMs();
  const verified = await watched(context, "verifying", (options) => verify(path, options));
  const { isSound, files, memory, problems } = verified;
  screen.json({ path, ...verified });
  if (files !== undefined) {
    const parts = [
      counted(files.segments, "segment"),
      counted(files.records, "record"),
      `${shownSize(files.logBytes)} of log`,
      `${counted(files.checkpoints.length, "checkpoint")} of ${shownSize(files.checkpointBytes)}`,
    ];
    screen.line(`files   ${parts.join(", ")}`);
    if (files.cut !== undefined) {
      const { file, offset } = files.cut;
      screen.line(`        a write was cut short, probably by a crash: ${file}, byte ${offset}`);
    }
    for (const { file, offset, what } of files.aside) {
      screen.line(`        not needed, but damaged: ${file}, byte ${offset}: ${what}`);
    }
  }
  for (const table of memory?.tables ?? []) {
    const indexes = table.indexes.map(
      ({ name, entries }) => `${name} ${counted(entries, "entry", "entries")}`,
    );
    const parts = [counted(table.rows, "row"), ...indexes];
    screen.line(`table   ${table.name}: ${parts.join("; ")}`);
  }
  for (const problem of problems) screen.line(screen.red(`fault   ${problem}`));
  const took = shownMs(nowMs() - startMs);
  screen.line(
    isSound
      ? screen.green(`sound   ${path} (${took})`)
      : screen.red(`faults  ${path} has ${counted(problems.length, "fault")} (${took})`),
  );
  return isSound ? EXIT_OK : EXIT_FAULTS;
};

export const runBackup: Run<"backup"> = async ({ path, to }, context) => {
  existingStore(path);
  const copied = await watched(context, "copying", (options) => backup(path, to, options));
  return tellCopied(context, `copied ${path} to ${to}`, copied, { path, to });
};

export const runRestore: Run<"restore"> = async ({ from, path, at, memoryDir }, context) => {
  if (!existsSync(from)) throw new UsageError(`cannot restore: ${from} does not exist`);
  const copied = await watched(context, "restoring", (options) =>
    restore(from, path, {
      ...options,
      ...(at === undefined ? {} : { to: at }),
      ...(memoryDir === undefined ? {} : { memoryDir }),
    }),
  );
  return tellCopied(context, `restored ${path} from ${from}`, copied, { from, path });
};

function tellCopied({ screen }: Context, what: string, copied: Copied, more: object): number {
  const { checkpoints, segments, bytes, closedMs, damage } = copied;
  // A store in which nothing was ever committed has no such moment.
  const closedAt = closedMs > 0 ? new Date(closedMs).toISOString() : null;
  screen.json({ ...more, ...copied, closedAt });
  screen.line(what);
  const files = [counted(checkpoints.length, "checkpoint"), counted(segments.length, "segment")];
  screen.line(
    `  ${shownSize(bytes)} in ${files.join(", ")}${closedAt === null ? "" : `, as of ${closedAt}`}`,
  );
  for (const { file, offset, what: fault } of damage) {
    screen.line(
      screen.yellow(`  an older checkpoint is used instead of ${file}: byte ${offset}: ${fault}`),
    );
  }
  return EXIT_OK;
}
