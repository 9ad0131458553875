/**
 * The text format of Prometheus, version 0.0.4: families of samples, each with HELP and TYPE before
 * its first sample and its samples together. Knows no store.
 * https://prometheus.io/docs/instrumenting/exposition_formats/
 */

import { BUCKET_ENDS_US, type Histogram } from "../../engine/metrics.ts";

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export type FamilyType = "counter" | "gauge" | "histogram";
export type Labels = Readonly<Record<string, string>>;

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

export class PrometheusText {
  #text = "";
  readonly #families = new Set<string>();

  toString(): string {
    return this.#text;
  }

  /** A family of one sample, without labels. */
  one(name: string, type: "counter" | "gauge", help: string, value: number): void {
    this.#begin(name, type, help);
    this.#sample(name, "", value);
  }

  /** A family with a sample for each value of one label. */
  many(
    name: string,
    type: "counter" | "gauge",
    help: string,
    label: string,
    values: Iterable<readonly [string, number]>,
  ): void {
    this.#begin(name, type, help);
    for (const [value, sample] of values) this.#sample(name, labelled({ [label]: value }), sample);
  }

  /** Durations in seconds; buckets are cumulative. */
  histogram(
    name: string,
    help: string,
    series: Iterable<{ readonly labels: Labels; readonly histogram: Histogram }>,
  ): void {
    this.#begin(name, "histogram", help);
    for (const { labels, histogram } of series) {
      let sum = 0;
      for (const [i, bucket] of histogram.buckets.entries()) {
        sum += bucket;
        const le = formatNumber(BUCKET_ENDS_US[i] / 1e6);
        this.#sample(`${name}_bucket`, labelled({ ...labels, le }), sum);
      }
      this.#sample(`${name}_sum`, labelled(labels), histogram.sumMs / 1e3);
      this.#sample(`${name}_count`, labelled(labels), histogram.count);
    }
  }

  #begin(name: string, type: FamilyType, help: string): void {
    if (!NAME.test(name)) throw new RangeError(`${name} is not a valid metric name`);
    if (this.#families.has(name)) throw new RangeError(`${name} is given twice`);
    this.#families.add(name);
    this.#text += `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`;
  }

  #sample(name: string, labels: string, value: number): void {
    this.#text += `${name}${labels} ${formatNumber(value)}\n`;
  }
}

function labelled(labels: Labels): string {
  const pairs: string[] = [];
  for (const [name, value] of Object.entries(labels)) {
    if (!LABEL.test(name)) throw new RangeError(`${name} is not a valid label name`);
    pairs.push(`${name}="${escapeLabel(value)}"`);
  }
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

export function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

export function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}

/** As Go's ParseFloat reads it. */
export function formatNumber(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  return value === Number.NEGATIVE_INFINITY ? "-Inf" : String(value);
}
