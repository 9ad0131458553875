/**
 * A process that ends, or stops, itself at a given atomic step. As `victim` the steps are those of
 * one commit; as `recoverer` those of opening the store, which recovers whoever died in it.
 */

import "../helpers/engine-all-atomics.ts";

import { localDatabase } from "../../src/database/local/local-database.ts";
import { phaseOf, STATUS } from "../../src/engine/slot.ts";
import type { Database } from "../../src/index.ts";
import { hookAtomics, type When } from "../helpers/engine-atomics.ts";
import { openStore, playRound } from "./crash-store.ts";

export interface CrashOrder {
  readonly path: string;
  readonly role: "victim" | "recoverer";
  /** Counted from 1; within the phase, if one is given. */
  readonly step: number;
  /** Of the commit. What comes before it differs: the body is run again if the log is late. */
  readonly phase?: number;
  readonly when: When;
  readonly signal: "SIGKILL" | "SIGSTOP";
  readonly round: number;
}

/** What it says when it has lived to its end. */
export interface CrashSteps {
  readonly steps: number;
  /** The phase that each step of the commit left it in; not for a recoverer. */
  readonly phases: readonly number[];
}

const order = JSON.parse(process.argv[2]) as CrashOrder;
let counting = order.role === "recoverer";
let steps = 0;
let stepsInPhase = 0;
let db: Database | undefined;
const phases: number[] = [];

/** Read without an atomic. */
function phase(open: Database): number {
  const { executor } = localDatabase(open);
  const { control } = executor.memory;
  return phaseOf(control.i32[control.slotAt(executor.slot) + STATUS]);
}

function strike(when: When): void {
  if (!counting) return;
  if (when === "before") steps++;
  else if (db !== undefined) phases.push(phase(db));
  if (order.phase !== undefined) {
    if (when === "before" || phases.at(-1) !== order.phase || ++stepsInPhase !== order.step) return;
    process.kill(process.pid, order.signal);
    return;
  }
  if (steps !== order.step || when !== order.when) return;
  // A signal to oneself has arrived when the call returns: nothing runs in between.
  process.kill(process.pid, order.signal);
}

hookAtomics({ before: () => strike("before"), after: () => strike("after") });

db = await openStore(order.path);
if (order.role === "victim") {
  db.transactSync((tx) => {
    playRound(tx, order.round);
    counting = true;
  });
}
counting = false;
await db.close();
console.log(JSON.stringify({ steps, phases } satisfies CrashSteps));
