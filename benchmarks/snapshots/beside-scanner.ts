// A writer and a scanner, each in its own process. In every round the writer runs with the scanner
// idle, and with the scanner doing each of the things that it can do.
import { setTimeout as sleep } from "node:timers/promises";
import type { BenchOptions } from "../harness/bench-options.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import type { Progress } from "../harness/progress.ts";
import { perSecond, type TimedRun, waitedPart } from "../harness/timed-run.ts";
import type { Bank, StorePlace } from "../memory/situ.ts";
import { startTransferProcess, type TransferProcess } from "../memory/two-processes.ts";
import type { FromScanner, ScanKind, ScannerTask, ToScanner } from "./scanner-process.ts";

type Scanner = MeasuringProcess<ToScanner, FromScanner>;
export type Beside = "idle" | ScanKind;

interface Turn {
  readonly writer: TimedRun;
  readonly passesPerSecond: number;
}

export interface BesideScanner {
  /** Transfers per second, one entry per round. */
  readonly transfers: Readonly<Record<Beside, number[]>>;
  /** Passes over all rows per second, one entry per round. */
  readonly passes: Readonly<Record<Beside, number[]>>;
  /** Conflicts in the rounds with snapshots. */
  readonly conflicts: number;
  readonly versionsKept: number;
  readonly versionsMoved: number;
  /** The part of its turn in which the writer waited for a processor, one entry per round. */
  readonly waited: Readonly<Record<Beside, number[]>>;
  /** Turns that were measured again because of that. */
  readonly repeated: number;
  /** Times to take a snapshot while the writer runs. */
  readonly snapshotNs: readonly number[];
  /** Transfers per second meanwhile. */
  readonly whileTaking: number;
}

/** The scanner is told a little more, so that it begins before the writer and ends after it. */
const marginMs = 150;
/** Between turns: versions of the last snapshot are collected, in the writer's process too. */
const restMs = 150;
/** With more than this part of a turn lost to other programs, it says nothing about Situ. */
const mostWaited = 0.05;

export async function measureBesideScanner(
  db: Bank,
  place: StorePlace,
  rows: number,
  { quick, rounds, roundMs, seed }: BenchOptions,
  progress: Progress,
): Promise<BesideScanner> {
  progress.show("starting a writer and a scanner");
  const [writer, scanner] = await Promise.all([
    startTransferProcess({ ...place, first: 0, rows, seed }),
    startScanner({ ...place, rows }),
  ]);
  const transfers = perBeside();
  const passes = perBeside();
  const waited = perBeside();
  const counts = { conflicts: 0, versionsKept: 0, versionsMoved: 0, repeated: 0 };
  const mostRepeats = 2 * rounds;

  const runTurn = async (beside: Beside): Promise<Turn> => {
    const before = db.stats().counters;
    const turn = await runBeside(writer, scanner, beside, 4 * roundMs);
    const after = db.stats().counters;
    if (beside === "one-snapshot" || beside === "new-snapshots") {
      for (const name of ["conflicts", "versionsKept", "versionsMoved"] as const) {
        counts[name] += after[name] - before[name];
      }
    }
    await sleep(restMs);
    if (waitedPart(turn.writer) <= mostWaited || counts.repeated >= mostRepeats) return turn;
    counts.repeated++;
    return runTurn(beside);
  };

  const besides = Object.keys(transfers) as Beside[];
  progress.show("warming up: a writer and a scanner");
  for (const beside of besides) await runBeside(writer, scanner, beside, roundMs);
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < besides.length; turn++) {
      const beside = besides[(turn + round) % besides.length];
      progress.show(`round ${round + 1} of ${rounds}: transfers, scanner ${beside}`);
      const { writer: ran, passesPerSecond } = await runTurn(beside);
      waited[beside].push(waitedPart(ran));
      transfers[beside].push(perSecond(ran));
      passes[beside].push(passesPerSecond);
    }
  }
  progress.show("taking snapshots");
  const taken = await takeSnapshots(writer, scanner, quick ? 2_000 : 10_000);
  await Promise.all([writer.stop(), scanner.stop()]);
  return { transfers, passes, waited, ...counts, ...taken };
}

function perBeside(): Record<Beside, number[]> {
  return { idle: [], "one-snapshot": [], "new-snapshots": [], bare: [] };
}

/** The rounds that other programs left alone, for a comparison of these two; all, if none is. */
export function quietRounds({ waited }: BesideScanner, beside: Beside): number[] {
  const all = waited.idle.map((_, round) => round);
  const quiet = all.filter(
    (round) => waited.idle[round] <= mostWaited && waited[beside][round] <= mostWaited,
  );
  return quiet.length > 0 ? quiet : all;
}

function startScanner(task: ScannerTask): Promise<Scanner> {
  return MeasuringProcess.start(new URL("./scanner-process.js", import.meta.url), task);
}

async function runBeside(
  writer: TransferProcess,
  scanner: Scanner,
  beside: Beside,
  ms: number,
): Promise<Turn> {
  if (beside === "idle") {
    return { writer: await writer.ask({ work: "situ", ms }), passesPerSecond: 0 };
  }
  const started = await scanner.ask({ kind: beside, ms: ms + marginMs });
  const ran = await writer.ask({ work: "situ", ms });
  const ended = await scanner.reply();
  if (started.kind !== "scanning" || ended.kind !== "scanned") throw outOfStep();
  if (started.startNs > ran.startNs || ended.endNs < ran.endNs) throw outOfStep();
  const passesPerSecond = (ended.passes * 1e9) / (ended.endNs - started.startNs);
  return { writer: ran, passesPerSecond };
}

async function takeSnapshots(
  writer: TransferProcess,
  scanner: Scanner,
  samples: number,
): Promise<Pick<BesideScanner, "snapshotNs" | "whileTaking">> {
  // A pause lasts 0.2 ms on average.
  const ms = samples * 0.5;
  const writing = writer.ask({ work: "situ", ms: ms + 2 * marginMs });
  await sleep(marginMs);
  const taken = await scanner.ask({ kind: "take", samples, ms });
  const ran = await writing;
  if (taken.kind !== "taken" || taken.startNs < ran.startNs || taken.endNs > ran.endNs) {
    throw outOfStep();
  }
  return { snapshotNs: taken.nanoseconds, whileTaking: perSecond(ran) };
}

function outOfStep(): Error {
  return new Error("the writer and the scanner did not run at the same time");
}
