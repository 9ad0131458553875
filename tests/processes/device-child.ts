/** A process that moves rows to the device, and kills itself before or after a given atomic step of that. */

import "../helpers/engine-all-atomics.ts";

import { hookAtomics, type When } from "../helpers/engine-atomics.ts";
import { moveAll, openItems, workIn, writeRound } from "./device-store.ts";

export interface MoveOrder {
  readonly path: string;
  readonly round: number;
  /** Counted from 1; 0 for one who lives. */
  readonly step: number;
  readonly when: When;
  /** Whether rows are moved while the event loop turns. */
  readonly later: boolean;
}

const order = JSON.parse(process.argv[2]) as MoveOrder;
let counting = false;
let steps = 0;

function strike(when: When): void {
  if (!counting) return;
  if (when === "before") steps++;
  if (steps === order.step && when === order.when) process.kill(process.pid, "SIGKILL");
}

hookAtomics({ before: () => strike("before"), after: () => strike("after") });

const db = await openItems(order.path);
writeRound(db, order.round);
counting = true;
if (order.later) await workIn(db).mover.moveLater(() => false);
moveAll(db);
counting = false;
await db.close();
console.log(JSON.stringify({ steps }));
