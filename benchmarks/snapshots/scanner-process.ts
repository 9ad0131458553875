// The process beside the writer. It scans the accounts in a snapshot, again and again; or scans
// memory of its own, which shows what the machine itself takes from the writer; or takes snapshots
// and closes them.
import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import { serve, taskOf } from "../harness/process-side.ts";
import { sink } from "../harness/sink.ts";
import { monotonicNs } from "../harness/timed-run.ts";
import { totalOf } from "../memory/rows.ts";
import { Account, type StorePlace } from "../memory/situ.ts";
import { bareScan } from "./ranges.ts";
import { openSnapshotBank } from "./situ.ts";

export interface ScannerTask extends StorePlace {
  readonly rows: number;
}

/** In one snapshot, in a new one for each pass, or in memory of its own. */
export type ScanKind = "one-snapshot" | "new-snapshots" | "bare";

export type ToScanner =
  | { readonly kind: ScanKind; readonly ms: number }
  | { readonly kind: "take"; readonly samples: number; readonly ms: number };

export type FromScanner =
  | { readonly kind: "scanning"; readonly startNs: number }
  | { readonly kind: "scanned"; readonly passes: number; readonly endNs: number }
  | {
      readonly kind: "taken";
      readonly startNs: number;
      readonly endNs: number;
      readonly nanoseconds: readonly number[];
    };

type Answer = (message: FromScanner) => void;

/** Between snapshots, so long that the writer is at full speed when the next one is taken. */
const shortestPauseNs = 100_000;
const warmUpSamples = 500;

const task = taskOf<ScannerTask>();
const db = await openSnapshotBank(task);
const total = Number(totalOf(task.rows));
const bare = bareScan(task.rows);

async function scan(kind: ScanKind, ms: number, answer: Answer): Promise<void> {
  let snapshot = kind === "bare" ? undefined : db.snapshot();
  const startNs = monotonicNs();
  answer({ kind: "scanning", startNs });
  const deadlineNs = startNs + ms * 1e6;
  let passes = 0;
  let endNs = startNs;
  while (endNs < deadlineNs) {
    if (snapshot === undefined) sink.value = bare.run(1);
    else checkSum(snapshot);
    passes++;
    if (kind === "new-snapshots") {
      snapshot?.close();
      snapshot = db.snapshot();
    }
    endNs = monotonicNs();
    // What every process does between two pieces of work, and where versions are looked after.
    await turnOfTheLoop();
  }
  snapshot?.close();
  answer({ kind: "scanned", passes, endNs });
}

/** As numbers: the sum of a million balances is far below 2^53. */
function checkSum(snapshot: ReturnType<typeof db.snapshot>): void {
  let count = 0;
  let sum = 0;
  for (const row of snapshot.scan(Account)) {
    count++;
    sum += Number(row.balance);
  }
  if (count === task.rows && sum === total) return;
  throw new Error(`a snapshot has ${count} rows that add up to ${sum}, not ${total}`);
}

/** As many as wanted, or as many as the time allows. */
function take(samples: number, ms: number): FromScanner {
  const nanoseconds: number[] = [];
  const startNs = monotonicNs();
  const deadlineNs = startNs + ms * 1e6;
  for (let sample = -warmUpSamples; sample < samples && monotonicNs() < deadlineNs; sample++) {
    // Pauses of several lengths, so as not to fall in step with the writer.
    pause(shortestPauseNs + (sample & 7) * 30_000);
    const before = monotonicNs();
    const snapshot = db.snapshot();
    const after = monotonicNs();
    snapshot.close();
    if (sample >= 0) nanoseconds.push(after - before);
  }
  return { kind: "taken", startNs, endNs: monotonicNs(), nanoseconds };
}

/** Awake, as a process that works is. */
function pause(ns: number): void {
  const end = monotonicNs() + ns;
  while (monotonicNs() < end);
}

serve<ToScanner, FromScanner>({
  handle(message, answer) {
    if (message.kind === "take") return answer(take(message.samples, message.ms));
    return scan(message.kind, message.ms, answer);
  },
  close: () => db.close(),
});
