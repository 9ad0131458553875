// A figure is a number with a bar. It is measured, or the report says why it is not.
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

/** A figure that is counted or computed: no rounds, no spread. */
export function counted(name: string, bar: Bar, value: number, unit: string): Figure {
  return { name, ratio: value, bar, met: meets(bar, value), unit };
}

export function missingFigure(name: string, bar: Bar, missing: string): Figure {
  return { name, bar, missing };
}

function compared(
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

function meets(bar: Bar, value: number): boolean {
  return "atLeast" in bar ? value >= bar.atLeast : value <= bar.atMost;
}
