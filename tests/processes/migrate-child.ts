/**
 * Migrates the table of the crash tests, and kills itself at a step of that. The steps of a migration
 * that others can see are commits, which have crash tests of their own, and announcements; so it dies
 * before or after the commit point of each commit, and before or after each announcement.
 */

import "../helpers/engine-all-atomics.ts";

import { localDatabase } from "../../src/database/local/local-database.ts";
import { COMMITTED, phaseOf, STATUS } from "../../src/engine/slot.ts";
import { SCHEMA_GENERATION } from "../../src/memory/control.ts";
import { hookAtomics, type When } from "../helpers/engine-atomics.ts";
import { type Direction, migrateItems, openItems } from "./migrate-store.ts";

export interface MigrateOrder {
  readonly path: string;
  readonly direction: Direction;
  /** Counted from 1; with 0 it lives. */
  readonly step: number;
  readonly when: When;
}

const { path, direction, step, when } = JSON.parse(process.argv[2]) as MigrateOrder;
const db = await openItems(path, { tables: [] });
const { executor } = localDatabase(db);
const { control } = executor.memory;
const statusAt = control.slotAt(executor.slot) + STATUS;
let steps = 0;

function strike(at: When, index: number, value: number | bigint, array: unknown): void {
  if (array !== control.i32) return;
  const isCommit = index === statusAt && phaseOf(Number(value)) === COMMITTED;
  if (!isCommit && index !== SCHEMA_GENERATION) return;
  if (at === "before") steps++;
  // A signal to oneself has arrived when the call returns: nothing runs in between.
  if (steps === step && at === when) process.kill(process.pid, "SIGKILL");
}

hookAtomics({
  before: ({ index, value, array }) => strike("before", index, value, array),
  after: ({ index, value, array }) => strike("after", index, value, array),
});
await migrateItems(db, direction);
// What is left behind is freed in the background.
while (localDatabase(db).isClearing) {
  await new Promise((resolve) => setTimeout(resolve, 1));
}
await db.close();
console.log(JSON.stringify({ steps }));
