/** A process that removes expired rows, and kills itself before or after a given atomic step of that. */

import "../helpers/engine-all-atomics.ts";

import { localDatabase } from "../../src/database/local/local-database.ts";
import { hookAtomics, type When } from "../helpers/engine-atomics.ts";
import { addRound, openSessions } from "./expiry-store.ts";

export interface SweepOrder {
  readonly path: string;
  /** The rows that it adds first, so that nobody else sweeps them before. */
  readonly round: number;
  /** Counted from 1; 0 for one who lives. */
  readonly step: number;
  readonly when: When;
}

const order = JSON.parse(process.argv[2]) as SweepOrder;
let counting = false;
let steps = 0;

function strike(when: When): void {
  if (!counting) return;
  if (when === "before") steps++;
  if (steps === order.step && when === order.when) process.kill(process.pid, "SIGKILL");
}

hookAtomics({ before: () => strike("before"), after: () => strike("after") });

const db = await openSessions(order.path);
const { expiry } = localDatabase(db);
addRound(db, order.round);
counting = true;
expiry.sweep(60_000);
counting = false;
await db.close();
console.log(JSON.stringify({ steps, swept: expiry.swept }));
