// Where somebody else is better than Situ: computed, so that nobody has to be honest by hand.
import type { EngineName } from "../engines/engine.ts";
import { engineTitle, formatNanoseconds, formatPart, formatRate, formatTimes } from "./format.ts";
import { type MeasuredEntry, peersOf, percentile, situOf, throughputRatio } from "./measures.ts";
import type { Cell, SuiteResult } from "./result.ts";

export const measures = ["throughput", "p50", "p99"] as const;
export type Measure = (typeof measures)[number];

export interface PeerWin {
  readonly cell: Cell;
  readonly peer: EngineName;
  readonly measure: Measure;
  readonly situValue: number;
  readonly peerValue: number;
  /** How many times better the peer is: above 1. */
  readonly times: number;
  /** Some rounds say otherwise. Latencies are of all rounds together, and have no spread. */
  readonly withinSpread: boolean;
  /** In flight per process, of the peer and of Situ, where they differ: it decides latency. */
  readonly inFlight?: readonly [number, number];
}

/** In an open loop both do what is asked of them, unless they cannot: this much is still the same. */
const rateTolerance = 0.01;

export function peerWins({ cells }: Pick<SuiteResult, "cells">): PeerWin[] {
  return cells.flatMap((cell) => {
    const situ = situOf(cell);
    if (situ === undefined) return [];
    return peersOf(cell).flatMap((peer) => [
      ...throughputWin(cell, situ, peer),
      ...latencyWin(cell, situ, peer, "p50", 50),
      ...latencyWin(cell, situ, peer, "p99", 99),
    ]);
  });
}

/**
 * Medians count, as tables show them; and so does the ratio per round, which tables show too. They
 * can disagree when rounds differ much: then either is a win, rather than none.
 */
function throughputWin(cell: Cell, situ: MeasuredEntry, peer: MeasuredEntry): PeerWin[] {
  const least = cell.load.kind === "open" ? 1 + rateTolerance : 1;
  const byMedians = peer.throughput.median / situ.throughput.median;
  const ofSitu = throughputRatio(situ, peer);
  const byRounds = 1 / ofSitu.median;
  if (!(byMedians > least || byRounds > least)) return [];
  return [
    {
      cell,
      peer: peer.engine,
      measure: "throughput",
      situValue: situ.throughput.median,
      peerValue: peer.throughput.median,
      times: byMedians > least ? byMedians : byRounds,
      withinSpread: ofSitu.max >= 1,
    },
  ];
}

function latencyWin(
  cell: Cell,
  situ: MeasuredEntry,
  peer: MeasuredEntry,
  measure: Measure,
  percent: number,
): PeerWin[] {
  const situValue = percentile(situ.latency, percent);
  const peerValue = percentile(peer.latency, percent);
  if (situValue === undefined || peerValue === undefined || !(peerValue < situValue)) return [];
  const [peerInFlight, situInFlight] = [peer.inFlight, situ.inFlight];
  const differ =
    peerInFlight !== undefined && situInFlight !== undefined && peerInFlight !== situInFlight;
  return [
    {
      cell,
      peer: peer.engine,
      measure,
      situValue,
      peerValue,
      times: situValue / peerValue,
      withinSpread: false,
      ...(differ ? { inFlight: [peerInFlight, situInFlight] as const } : {}),
    },
  ];
}

/** Without the title of the cell, which pages show above. */
export function describeWin(result: SuiteResult, win: PeerWin): string {
  const peer = engineTitle(result, win.peer);
  const times = formatTimes(win.times);
  if (win.measure === "throughput") {
    const remark = win.withinSpread ? "; not in every round" : "";
    const values = `${formatRate(win.peerValue)} against ${formatRate(win.situValue)}`;
    const scope = win.peerValue > win.situValue ? "" : "round by round ";
    return `${peer} ${scope}does ${times} the transactions of Situ (${values}${remark}).`;
  }
  const values = `${formatNanoseconds(win.peerValue)} against ${formatNanoseconds(win.situValue)}`;
  const flight =
    win.inFlight === undefined
      ? ""
      : `; ${peer} has ${win.inFlight[0]} in flight per process, Situ ${win.inFlight[1]}`;
  return `${peer} has the shorter ${win.measure} by ${times} (${values}${flight}).`;
}

/** Open loop: how much of what was asked could not be done, as a sentence for each who failed. */
export function fallenBehind(result: SuiteResult, cell: Cell): string[] {
  const { load } = cell;
  if (load.kind !== "open") return [];
  return cell.entries.flatMap(({ engine, throughput, droppedPart = 0 }) => {
    if (throughput === undefined) return [];
    const undone = Math.max(droppedPart, 1 - throughput.median / load.perSecond);
    if (undone <= rateTolerance) return [];
    const title = engineTitle(result, engine);
    return [`${title} could not keep the rate: ${formatPart(undone)} of it was not done.`];
  });
}
