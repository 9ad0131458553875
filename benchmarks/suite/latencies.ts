// Latencies in an HDR histogram: three digits at every magnitude, some kilobytes, and histograms of
// several processes add up.
import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from "hdr-histogram-js";
import type { Latency } from "../report/result.ts";

/** One minute: longer than any run waits. */
const HIGHEST_NS = 60e9;

/** Where the curve of the report has its points; denser towards the end, as HDR plots are. */
const PERCENTS = [
  0, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 92.5, 95, 97.5, 98, 99, 99.25, 99.5, 99.75, 99.9,
  99.95, 99.975, 99.99, 99.995, 99.999, 100,
];

export class Latencies {
  readonly #histogram: Histogram;
  /** Clock readings, fewer than what they stand for. */
  #samples: number;

  constructor(histogram: Histogram, samples: number) {
    this.#histogram = histogram;
    this.#samples = samples;
  }

  /** `weight`: how many transactions this one stands for. */
  record(ms: number, weight = 1): void {
    const nanoseconds = Math.min(Math.max(Math.round(ms * 1e6), 1), HIGHEST_NS);
    this.#samples++;
    if (weight === 1) this.#histogram.recordValue(nanoseconds);
    else this.#histogram.recordValueWithCount(nanoseconds, weight);
  }

  add(other: Latencies): void {
    this.#histogram.add(other.#histogram);
    this.#samples += other.#samples;
  }

  /** As text, to travel between processes. */
  encode(): string {
    return `${this.#samples}:${encodeIntoCompressedBase64(this.#histogram)}`;
  }

  static decode(text: string): Latencies {
    const colon = text.indexOf(":");
    const histogram = decodeFromCompressedBase64(text.slice(colon + 1));
    return new Latencies(histogram, Number(text.slice(0, colon)));
  }

  /** Undefined if nothing was recorded: zeros would look like a very good engine. */
  summary(): Latency | undefined {
    const histogram = this.#histogram;
    if (this.#samples === 0) return undefined;
    // A percentile that fewer than one recorded value stands for would be the maximum again.
    const finest = 100 - 100 / this.#samples;
    return {
      count: this.#samples,
      mean: histogram.mean,
      max: histogram.maxValue,
      percentiles: PERCENTS.filter((percent) => percent <= finest || percent === 100).map(
        (percent) => ({ percent, nanoseconds: histogram.getValueAtPercentile(percent) }),
      ),
    };
  }
}

export function createLatencies(): Latencies {
  const histogram = build({
    bitBucketSize: 32,
    numberOfSignificantValueDigits: 3,
    lowestDiscernibleValue: 1,
    highestTrackableValue: HIGHEST_NS,
  });
  return new Latencies(histogram, 0);
}
