/** A process that holds snapshots and does not let go of them, and one that writes against it. */

import { SituError, type Snapshot } from "../../src/index.ts";
import { orderOf, report, said, turn } from "../helpers/process-child.ts";
import { audit, auditAll, openBank, TABLES } from "./snapshot-store.ts";

export interface HolderOrder {
  readonly path: string;
  /**
   * - "hold": takes snapshots, reads, waits for a word, reads again;
   * - "hoard": takes more and more of them, until some were released;
   * - "rewrite": changes every row, again and again, until its input ends.
   */
  readonly role: "hold" | "hoard" | "rewrite";
  readonly snapshots: number;
  readonly maxSnapshotMs: number;
}

export interface HolderReport {
  /** What each snapshot said in the end: what it had said before, or a code. */
  readonly said: readonly string[];
  readonly taken: number;
}

const MOST_ROUNDS = 500;
const { path, role, snapshots, maxSnapshotMs } = orderOf<HolderOrder>();
const db = await openBank(path, maxSnapshotMs);

/** What a snapshot says now: the same as before, "CHANGED", or the code of an error. */
function ask(snapshot: Snapshot, before: string): string {
  try {
    return auditAll(snapshot) === before ? "same" : "CHANGED";
  } catch (error) {
    return error instanceof SituError ? error.code : String(error);
  }
}

async function hold(): Promise<HolderReport> {
  const taken = Array.from({ length: snapshots }, () => {
    const snapshot = db.snapshot();
    return { snapshot, before: auditAll(snapshot) };
  });
  await said("holds");
  return {
    said: taken.map(({ snapshot, before }) => ask(snapshot, before)),
    taken: taken.length,
  };
}

async function hoard(): Promise<HolderReport> {
  const held: { snapshot: Snapshot; before: string }[] = [];
  const released: string[] = [];
  for (let round = 0; round < MOST_ROUNDS && released.length < snapshots; round++) {
    const snapshot = db.snapshot();
    try {
      held.push({ snapshot, before: audit(snapshot, "scan") });
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      released.push(error.code);
    }
    // The oldest goes first, so whoever asks it learns of a release.
    const oldest = held[0];
    const now = oldest === undefined ? "same" : ask(oldest.snapshot, oldest.before);
    if (now !== "same") {
      released.push(now);
      held.shift();
    }
    await turn();
  }
  return { said: released, taken: held.length + released.length };
}

async function rewrite(): Promise<HolderReport> {
  let isOver = false;
  process.stdin.on("close", () => {
    isOver = true;
  });
  process.stdin.resume();
  let rounds = 0;
  for (; !isOver; rounds++) {
    const accounts = TABLES[rounds % TABLES.length];
    db.transactSync((tx) => {
      for (const row of tx.scan(accounts).toArray()) {
        tx.put(accounts, { ...row, memo: `round ${rounds} `.repeat(30) });
      }
    });
    await turn();
  }
  return { said: [], taken: rounds };
}

process.stdout.write("ready\n");
const roles = { hold, hoard, rewrite };
const result = await roles[role]();
await db.close();
report(result);
process.stdin.destroy();
