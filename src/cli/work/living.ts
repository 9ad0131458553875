/** resize, ps, destroy and clean: thin over the database, and over what looks at memory from outside. */

import { createInterface } from "node:readline/promises";
import { destroy, open } from "../../database/open.ts";
import { openers as openersOf } from "../../database/store-tools.ts";
import { DEFAULT_TIMEOUT_MS } from "../../runtime/limits.ts";
import { counted, shownSize } from "../../runtime/units.ts";
import { type FoundMemoryFolder, findMemories, removeOrphans } from "../../tools/doctor/orphans.ts";
import { existingStore } from "../../transfer/stored-tables.ts";
import { EXIT_FAILED, EXIT_OK, UsageError } from "../failures.ts";
import { type Column, renderTable } from "../text-table.ts";
import type { Context, Run } from "./context.ts";

export const runResize: Run<"resize"> = async ({ path, memory: to }, { screen }) => {
  existingStore(path);
  await using db = await open({ path, timeoutMs: DEFAULT_TIMEOUT_MS });
  const before = db.stats().memory.limitBytes;
  const memoryBytes = await db.resize(to);
  screen.json({ path, before, memoryBytes, grows: to === "auto" });
  screen.line(
    to === "auto"
      ? `${path} has ${shownSize(memoryBytes)}, and grows by itself`
      : `${path} has ${shownSize(memoryBytes)} for rows and indexes (it had ${shownSize(before)})`,
  );
  return EXIT_OK;
};

const PS_COLUMNS: readonly Column[] = [
  { head: "pid", isRight: true },
  { head: "thread", isRight: true },
  { head: "slot", isRight: true },
  { head: "since" },
  { head: "role" },
  { head: "state" },
  { head: "command" },
];

export const runPs: Run<"ps"> = async ({ path }, { screen }) => {
  existingStore(path);
  const { isOpen, openers } = await openersOf(path);
  screen.json({ path, isOpen, openers });
  if (openers.length === 0) {
    screen.line(
      isOpen
        ? `a process that is not visible here has ${path} open, in another container perhaps`
        : `no process has ${path} open`,
    );
    return EXIT_OK;
  }
  const rows = openers.map(({ pid, threadId, slot, since, role, state, command }) => [
    String(pid),
    String(threadId),
    String(slot),
    since,
    role,
    state,
    command ?? "(not visible here)",
  ]);
  for (const line of renderTable(PS_COLUMNS, rows, screen.columns, screen.dim)) screen.line(line);
  return EXIT_OK;
};

export const runDestroy: Run<"destroy"> = async ({ path, yes }, context) => {
  existingStore(path);
  const { isOpen } = await openersOf(path);
  if (!isOpen && !yes && !(await isConfirmed(context, path))) {
    context.screen.line("nothing was deleted");
    return EXIT_FAILED;
  }
  // Refuses, with the same names, if somebody has it open.
  await destroy(path);
  context.screen.json({ path, destroyed: true });
  context.screen.line(`deleted the store at ${path}`);
  return EXIT_OK;
};

async function isConfirmed({ screen, signal }: Context, path: string): Promise<boolean> {
  if (screen.isJson || !process.stdin.isTTY || !process.stdout.isTTY) {
    throw new UsageError("give --yes to delete a store without being asked");
  }
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const question = `Delete the store at ${path}, with all of its rows? Type yes: `;
    return (await lines.question(question, { signal })).trim().toLowerCase() === "yes";
  } finally {
    lines.close();
  }
}

export const runClean: Run<"clean"> = async ({ memoryDir, yes, dryRun, unlogged }, { screen }) => {
  const folder = memoryDir ?? process.env.SITU_MEMORY_DIR ?? "/dev/shm";
  if (yes && dryRun) throw new UsageError("give --yes or --dry-run, not both");
  const found = findMemories(folder);
  const orphans = found.filter(({ status }) => status === "orphaned");
  const chosen = orphans.filter(({ hasLog }) => hasLog || unlogged);
  const removed = yes ? removeOrphans(chosen) : [];
  screen.json({ memoryDir: folder, isDryRun: !yes, memories: found, removed });
  for (const each of orphans) screen.line(shownOrphan(each, removed.includes(each.folder)));
  const bytes = chosen.reduce((sum, each) => sum + each.bytes, 0);
  const what = `${counted(chosen.length, "orphaned memory", "orphaned memories")} of ${shownSize(bytes)}`;
  const others = `${counted(found.length - orphans.length, "other store")} in ${folder}`;
  if (chosen.length === 0) screen.line(`nothing to remove; ${others}`);
  else if (yes) screen.line(`removed ${what}; ${others}`);
  else screen.line(`found ${what}; ${others}. Nothing was removed: give --yes to do so`);
  return EXIT_OK;
};

function shownOrphan({ folder, bytes, path, hasLog }: FoundMemoryFolder, isGone: boolean): string {
  const log = hasLog ? "" : ", without a log (--unlogged)";
  return `${isGone ? "removed " : "orphaned"}  ${folder}  ${shownSize(bytes)}  of ${path}${log}`;
}
