/** A process whose device threads update all rows, and that is killed at a step of that. */

import { localDatabase } from "../../src/database/local/local-database.ts";
import type { CrashPoint } from "../../src/tables/device/elements/messages.ts";
import { Item, openItems } from "./device-store.ts";

export interface ChangeDeath {
  readonly path: string;
  readonly crashAt: CrashPoint;
  readonly round: number;
}

const { path, crashAt, round } = JSON.parse(process.argv[2]) as ChangeDeath;
const db = await openItems(path);
localDatabase(db).elements.death = { at: crashAt, of: "process" };
await db.updateWhere(Item, { place: "device", set: { round } });
// A step that is passed after the answer was sent.
await new Promise((resolve) => setTimeout(resolve, 60_000));
