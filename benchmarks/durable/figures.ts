// The bars of the durable bench and how its measurements become figures.
import { compared, type Figure, missingFigure, timesMore } from "../harness/figures.ts";
import type { Peer } from "../harness/peers.ts";
import { formatNanoseconds, formatRate } from "../harness/report.ts";
import { ratiosPerRound, summarize } from "../harness/statistics.ts";
import type { BareFile } from "./bare-process.ts";
import type { CheckpointsMeasured, CheckpointTurn } from "./checkpoints.ts";
import type { InFlightMeasured } from "./in-flight.ts";
import { bytesPerUpdate, type LogBytes, logParts, renderLogParts } from "./log-bytes.ts";
import type { ModesMeasured, Rates } from "./modes.ts";
import type { OneByOneMeasured } from "./one-by-one.ts";
import type { TransferWay } from "./postgres.ts";
import type { RecoveryMeasured } from "./recovery.ts";

const bars = {
  "lazy-vs-none": { atLeast: 0.8 },
  "sync-in-flight-vs-postgres": { atLeast: 5 },
  "sync-one-by-one-vs-fdatasync": { atLeast: 0.85 },
  "sync-one-by-one-p50-vs-sqlite": { atMost: 1 },
  "recovery-vs-postgres": { atLeast: 2 },
} as const;

export interface DurableMeasured {
  readonly modes: ModesMeasured;
  readonly inFlight: InFlightMeasured;
  readonly oneByOne: OneByOneMeasured;
  readonly recovery: RecoveryMeasured;
  readonly logBytes: LogBytes;
  readonly checkpoints: CheckpointsMeasured;
}

export function durableFigures(measured: DurableMeasured, postgres: Peer<unknown>): Figure[] {
  return [
    lazyFigure(measured.modes),
    inFlightFigure(measured.inFlight, postgres),
    oneByOneFigure(measured.oneByOne),
    medianFigure(measured.oneByOne),
    recoveryFigure(measured.recovery, postgres),
  ];
}

function lazyFigure({ one }: ModesMeasured): Figure {
  const name = "lazy-vs-none";
  const lazy = { name: "transfers in lazy", values: one.lazy };
  return timesMore(name, bars[name], lazy, { name: "transfers in none", values: one.none });
}

/** Against pgbench's own way, statement by statement; the notes have the pipelined one, too. */
function inFlightFigure({ situ, postgres: rates }: InFlightMeasured, postgres: Peer<unknown>) {
  const name = "sync-in-flight-vs-postgres";
  if (!postgres.available) return missingFigure(name, bars[name], postgres.missing);
  const way: TransferWay = "one by one";
  return timesMore(
    name,
    bars[name],
    { name: "64 in flight", values: situ },
    { name: `pgbench, 64 clients, statements ${way}`, values: rates[way] },
  );
}

/** Against the faster of the two kinds of file. */
function oneByOneFigure({ situ, bare }: OneByOneMeasured): Figure {
  const name = "sync-one-by-one-vs-fdatasync";
  const file = fastest<BareFile>(bare);
  return timesMore(
    name,
    bars[name],
    { name: "one by one", values: situ },
    { name: `write and fdatasync, ${file} file`, values: bare[file] },
  );
}

/** How many times as long as SQLite's half of the transfers take. */
function medianFigure({ situP50Ns, sqlite }: OneByOneMeasured): Figure {
  const name = "sync-one-by-one-p50-vs-sqlite";
  if (!sqlite.available) return missingFigure(name, bars[name], sqlite.missing);
  const situ = { name: "p50, one by one", values: situP50Ns };
  const peer = { name: "p50, SQLite", values: sqlite.value };
  return compared(name, bars[name], ratiosPerRound(situ.values, peer.values), situ, peer, "ns");
}

function recoveryFigure(recovery: RecoveryMeasured, postgres: Peer<unknown>): Figure {
  const name = "recovery-vs-postgres";
  if (!postgres.available) return missingFigure(name, bars[name], postgres.missing);
  const situ = { name: "open to first get", values: recovery.situ.map(({ ms }) => ms) };
  const values = recovery.postgres.map(({ ms }) => ms);
  const peer = { name: "start to first row", values };
  return compared(name, bars[name], ratiosPerRound(values, situ.values), situ, peer, "ms");
}

export function notesOf(measured: DurableMeasured, postgres: Peer<unknown>): string[] {
  const { modes, inFlight, oneByOne, recovery, logBytes, checkpoints } = measured;
  return [
    ...modesNotes(modes),
    ...inFlightNotes(inFlight, postgres),
    ...oneByOneNotes(oneByOne),
    ...recoveryNotes(recovery),
    checkpointNote("all over the table", checkpoints.all),
    checkpointNote("in a hundredth of the rows", checkpoints.few),
    "",
    ...renderLogParts(logBytes),
  ];
}

function modesNotes({ one, two, logRate, checkpoints, waited }: ModesMeasured): string[] {
  const rates = (name: string, { lazy, none }: Rates): string => {
    const { median, min, max } = summarize(ratiosPerRound(lazy, none));
    return (
      `${name}: lazy ${rate(lazy)}, none ${rate(none)}, ratio ${median.toFixed(2)} ` +
      `(${min.toFixed(2)} .. ${max.toFixed(2)})`
    );
  };
  return [
    `${rates("transfers, one process", one)}; ${mebibytes(middle(logRate))} MiB of log per ` +
      `second, ${checkpoints} checkpoints in the measured turns`,
    `it waited ${percent(middle(waited))} of its time for a processor, ` +
      `${percent(Math.max(...waited))} in the worst turn: what other programs took`,
    rates("transfers, two processes on disjoint rows", two),
  ];
}

function inFlightNotes(inFlight: InFlightMeasured, postgres: Peer<unknown>): string[] {
  const { situ, postgres: rates, perSync } = inFlight;
  const first = `sync, 64 in flight: ${rate(situ)}, ${middle(perSync).toFixed(0)} to a sync`;
  if (!postgres.available) return [first];
  const ways = (Object.keys(rates) as TransferWay[]).map((way) => {
    const times = summarize(ratiosPerRound(situ, rates[way])).median;
    return `statements ${way} ${rate(rates[way])} (${times.toFixed(1)} x)`;
  });
  return [`${first}; postgres with ${ways.join(", ")}`];
}

function oneByOneNotes({ situ, bare, bytes, situP50Ns, sqlite }: OneByOneMeasured): string[] {
  const files = (Object.keys(bare) as BareFile[]).map(
    (file) => `${file} ${microseconds(bare[file])}`,
  );
  return [
    `sync, one by one: ${microseconds(situ)} each; write and fdatasync of the same ${bytes} ` +
      `bytes: ${files.join(", ")}`,
    `sync, one by one, p50: ${formatNanoseconds(middle(situP50Ns))}` +
      (sqlite.available ? `, SQLite ${formatNanoseconds(middle(sqlite.value))}` : ""),
  ];
}

function recoveryNotes(recovery: RecoveryMeasured): string[] {
  const { situ, situFromStartMs, postgres, postgresLogBytes, joined } = recovery;
  const median = <T>(all: readonly T[], part: (one: T) => number): string =>
    middle(all.map(part)).toFixed(0);
  const [{ threads, checkpointBytes, logBytes, transactions }] = situ;
  const lines = [
    `recovery: ${median(situ, ({ ms }) => ms)} ms: ${mebibytes(checkpointBytes)} MiB of checkpoint ` +
      `${median(situ, ({ checkpointMs }) => checkpointMs)} ms, ${mebibytes(logBytes)} MiB of log ` +
      `with ${transactions.toLocaleString("en")} transactions ` +
      `${median(situ, ({ logMs }) => logMs)} ms, ${threads} threads; ` +
      `${middle(situFromStartMs).toFixed(0)} ms with the start of Node`,
    `opening after a crash that left memory: ${joined.ms.toFixed(0)} ms`,
  ];
  if (postgres.length > 0) {
    lines.push(
      `recovery, postgres: ${median(postgres, ({ ms }) => ms)} ms: redo of ` +
        `${mebibytes(postgresLogBytes)} MiB ${median(postgres, ({ redoMs }) => redoMs)} ms, ` +
        `checkpoint at its end ${median(postgres, ({ checkpointMs }) => checkpointMs)} ms`,
    );
  }
  return lines;
}

function checkpointNote(where: string, turns: readonly CheckpointTurn[]): string {
  const kinds = [...new Set(turns.map(({ checkpoint }) => checkpoint.kind))].join(" and ");
  const bytes = middle(turns.map(({ checkpoint }) => checkpoint.bytes));
  const ms = middle(turns.map(({ checkpoint }) => checkpoint.ms));
  const ratios = summarize(turns.map(({ before, beside }) => beside / before));
  return (
    `checkpoint after transfers ${where}: ${kinds}, ${mebibytes(bytes)} MiB, ${ms.toFixed(0)} ms; ` +
    `transfers meanwhile ${ratios.median.toFixed(2)} x (${ratios.min.toFixed(2)} .. ` +
    `${ratios.max.toFixed(2)})`
  );
}

/** For programs: what has no bar. */
export function reportedOf(measured: DurableMeasured) {
  const { modes, inFlight, oneByOne, recovery, logBytes, checkpoints } = measured;
  const turns = (taken: readonly CheckpointTurn[]) => ({
    kind: taken[0].checkpoint.kind,
    bytes: middle(taken.map(({ checkpoint }) => checkpoint.bytes)),
    ms: middle(taken.map(({ checkpoint }) => checkpoint.ms)),
    transfers: middle(taken.map(({ before, beside }) => beside / before)),
  });
  return {
    logBytesPerUpdate: bytesPerUpdate(logBytes.lazy),
    logBytesPerUpdateAlone: bytesPerUpdate(logBytes.sync),
    logParts: logParts(logBytes),
    lazyVsNoneTwoProcesses: summarize(ratiosPerRound(modes.two.lazy, modes.two.none)),
    transfersPerSync: middle(inFlight.perSync),
    bytesPerCommit: oneByOne.bytes,
    joinedMs: recovery.joined.ms,
    recovery: recovery.situ[0],
    checkpoints: { all: turns(checkpoints.all), few: turns(checkpoints.few) },
  };
}

function fastest<Name extends string>(rates: Readonly<Record<Name, readonly number[]>>): Name {
  const names = Object.keys(rates) as Name[];
  return names.sort((left, right) => middle(rates[right]) - middle(rates[left]))[0];
}

function middle(values: readonly number[]): number {
  return summarize(values).median;
}

function rate(perSecond: readonly number[]): string {
  return formatRate(middle(perSecond));
}

function microseconds(perSecond: readonly number[]): string {
  return `${(1e6 / middle(perSecond)).toFixed(0)} µs`;
}

function percent(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}

function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}
