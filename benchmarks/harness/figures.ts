// A figure is a number with a bar. It is measured, or the report says why it is not.
import type { Peer } from "./peers.ts";
import { type Timing, timingOf } from "./rounds.ts";
import { ratiosPerRound, type Summary, summarize } from "./statistics.ts";

export type Bar = { readonly atLeast: number } | { readonly atMost: number };

export interface MeasuredFigure {
  readonly name: string;
  readonly ratio: number;
  readonly bar: Bar;
  readonly met: boolean;
  /** What `ratio` counts: "times", "reads per lookup", "percent". */
  readonly unit: string;
  readonly spread?: { readonly min: number; readonly max: number };
  readonly rounds?: number;
  readonly situ?: Side;
  readonly peer?: Side;
  /** By the name of the percentile: "p50", "p99.9", "max". */
  readonly distribution?: Readonly<Record<string, number>>;
}

export interface MissingFigure {
  readonly name: string;
  readonly bar: Bar;
  readonly missing: string;
}

export type Figure = MeasuredFigure | MissingFigure;

export interface Side extends Summary {
  readonly name: string;
  readonly unit: string;
}

export interface Measured {
  readonly name: string;
  readonly values: readonly number[];
}

/** How many times less time Situ takes than the peer: nanoseconds per operation on both sides. */
export function timesFaster(name: string, bar: Bar, situ: Measured, peer: Measured): Figure {
  return compared(name, bar, ratiosPerRound(peer.values, situ.values), situ, peer, "ns");
}

/** How many times more Situ does than the base: operations per second on both sides. */
export function timesMore(name: string, bar: Bar, situ: Measured, base: Measured): Figure {
  return compared(name, bar, ratiosPerRound(situ.values, base.values), situ, base, "per second");
}

/** Someone to compare with, and the name that its timing has. */
export interface Rival {
  readonly peer: Peer<unknown>;
  readonly name: string;
}

/** The same against the fastest of several, unknown as long as one of them was not measured. */
export function timesFasterThanAll(
  name: string,
  bar: Bar,
  timings: readonly Timing[],
  situ: string,
  rivals: readonly Rival[],
): Figure {
  for (const { peer } of rivals) {
    if (!peer.available) return missingFigure(name, bar, peer.missing);
  }
  const [fastest] = rivals
    .map((rival) => measured(timings, rival.name))
    .sort((left, right) => summarize(left.values).median - summarize(right.values).median);
  return timesFaster(name, bar, measured(timings, situ), fastest);
}

export function measured(timings: readonly Timing[], name: string): Measured {
  return { name, values: timingOf(timings, name) };
}

/** A figure that is counted or computed: no rounds, no spread. */
export function counted(name: string, bar: Bar, value: number, unit: string): Figure {
  return { name, ratio: value, bar, met: meets(bar, value), unit };
}

/** A figure that was measured several times: the median counts. */
export function measuredOver(
  name: string,
  bar: Bar,
  values: readonly number[],
  unit: string,
): Figure {
  const { median, min, max } = summarize(values);
  const rounds = values.length;
  return { name, ratio: median, bar, met: meets(bar, median), unit, spread: { min, max }, rounds };
}

export function missingFigure(name: string, bar: Bar, missing: string): Figure {
  return { name, bar, missing };
}

/** A ratio for each round, and what was measured on both sides. */
export function compared(
  name: string,
  bar: Bar,
  ratios: readonly number[],
  situ: Measured,
  peer: Measured,
  unit: string,
): Figure {
  const { median, min, max } = summarize(ratios);
  return {
    name,
    ratio: median,
    bar,
    met: meets(bar, median),
    unit: "times",
    spread: { min, max },
    rounds: ratios.length,
    situ: side(situ, unit),
    peer: side(peer, unit),
  };
}

function side({ name, values }: Measured, unit: string): Side {
  return { name, unit, ...summarize(values) };
}

export function meets(bar: Bar, value: number): boolean {
  return "atLeast" in bar ? value >= bar.atLeast : value <= bar.atMost;
}
