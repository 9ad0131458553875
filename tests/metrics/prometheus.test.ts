/** The writer of Prometheus's text format, against a reader that was written apart from it. */

import { describe, expect, it } from "vitest";
import { BUCKET_ENDS_US } from "../../src/engine/metrics.ts";
import { formatNumber, PrometheusText } from "../../src/gateways/metrics/prometheus.ts";
import { check, fc } from "../helpers/property.ts";
import { parse, parseNumber, sampleOf } from "./prometheus-parser.ts";

describe("text", () => {
  it("is what was meant, whatever is in the labels and the help", () => {
    check(
      fc.property(
        fc.string({ unit: "binary" }).filter((help) => !help.includes("\r")),
        fc.uniqueArray(
          fc.string({ unit: "binary" }).filter((label) => !label.includes("\r")),
          { minLength: 1, maxLength: 5 },
        ),
        fc.double({ noNaN: true }),
        (help, labels, value) => {
          const text = new PrometheusText();
          text.many(
            "a_gauge",
            "gauge",
            help,
            "label",
            labels.map((label) => [label, value]),
          );
          const family = parse(text.toString()).get("a_gauge");
          expect(family?.help).toBe(help);
          expect(family?.samples.map((sample) => sample.labels.label)).toEqual(labels);
          for (const sample of family?.samples ?? []) expect(sample.value === value).toBe(true);
        },
      ),
      500,
    );
  });

  it("numbers come back as they were", () => {
    check(
      fc.property(fc.double({ noNaN: true }), (value) => {
        expect(parseNumber(formatNumber(value)) === value).toBe(true);
      }),
      500,
    );
    expect(formatNumber(Number.POSITIVE_INFINITY)).toBe("+Inf");
  });

  it("histograms are cumulative, in seconds, and end at +Inf", () => {
    const buckets = BUCKET_ENDS_US.map((_, i) => i);
    const count = buckets.reduce((sum, bucket) => sum + bucket);
    const text = new PrometheusText();
    text.histogram("took_seconds", "Help.", [
      { labels: { kind: "a" }, histogram: { buckets, count, sumMs: 1_500 } },
      { labels: { kind: "b" }, histogram: { buckets: buckets.map(() => 0), count: 0, sumMs: 0 } },
    ]);
    const families = parse(text.toString());
    const kind = "a";
    expect(sampleOf(families, "took_seconds_bucket", { kind, le: "0.000001" })).toBe(0);
    expect(sampleOf(families, "took_seconds_bucket", { kind, le: "0.000008" })).toBe(6);
    expect(sampleOf(families, "took_seconds_bucket", { kind, le: "16.777216" })).toBe(300);
    expect(sampleOf(families, "took_seconds_bucket", { kind, le: "+Inf" })).toBe(325);
    expect(sampleOf(families, "took_seconds_sum", { kind })).toBe(1.5);
    expect(sampleOf(families, "took_seconds_count", { kind: "b" })).toBe(0);
  });

  it("a family that comes twice, or a name that is none, is refused", () => {
    const text = new PrometheusText();
    text.one("a_total", "counter", "Help.", 1);
    expect(() => text.one("a_total", "counter", "Help.", 1)).toThrow("twice");
    expect(() => text.one("a-b", "gauge", "Help.", 1)).toThrow("not a valid metric name");
    expect(() => text.many("b", "gauge", "Help.", "a-b", [["x", 1]])).toThrow("label");
  });
});

describe("the reader refuses what is wrong", () => {
  const head = "# HELP a Help.\n# TYPE a gauge\n";
  const histogram = "# HELP h Help.\n# TYPE h histogram\n";
  it.each([
    ["no end", `${head}a 1`],
    ["no number", `${head}a one\n`],
    ["no family", "a 1\n"],
    ["twice", `${head}a 1\na 2\n`],
    ["a label without quotes", `${head}a{b=c} 1\n`],
    ["an escape", `${head}a{b="\\x"} 1\n`],
    ["a counter without _total", "# HELP a Help.\n# TYPE a counter\na 1\n"],
    ["a negative counter", "# HELP a_total H.\n# TYPE a_total counter\na_total -1\n"],
    ["no +Inf", `${histogram}h_bucket{le="1"} 1\nh_sum 1\nh_count 1\n`],
    [
      "not cumulative",
      `${histogram}h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n`,
    ],
    ["another count", `${histogram}h_bucket{le="+Inf"} 1\nh_sum 1\nh_count 2\n`],
  ])("%s", (_, text) => {
    expect(() => parse(text)).toThrow();
  });
});
