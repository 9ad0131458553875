/**
 * A process that ends, or stops, itself at a given atomic step. As `victim` the steps are those of
 * one commit; as `recoverer` those of opening the store, which recovers whoever died in it.
 */

import "../helpers/engine-all-atomics.ts";

import { hookAtomics, type When } from "../helpers/engine-atomics.ts";
import { openStore, playRound } from "./crash-store.ts";

export interface CrashOrder {
  readonly path: string;
  readonly role: "victim" | "recoverer";
  /** Counted from 1. */
  readonly step: number;
  readonly when: When;
  readonly signal: "SIGKILL" | "SIGSTOP";
  readonly round: number;
}

const order = JSON.parse(process.argv[2]) as CrashOrder;
let counting = order.role === "recoverer";
let steps = 0;

function strike(when: When): void {
  if (!counting) return;
  if (when === "before") steps++;
  if (steps !== order.step || when !== order.when) return;
  // A signal to oneself has arrived when the call returns: nothing runs in between.
  process.kill(process.pid, order.signal);
}

hookAtomics({ before: () => strike("before"), after: () => strike("after") });

const db = await openStore(order.path);
if (order.role === "victim") {
  db.transactSync((tx) => {
    playRound(tx, order.round);
    counting = true;
  });
}
counting = false;
await db.close();
console.log(JSON.stringify({ steps }));
