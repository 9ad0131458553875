/** Writes all metrics of the table, as they are now, in the format of Prometheus. */

import type { LocalDatabase as Database } from "../../database/local/local-database.ts";
import type { Histogram } from "../../engine/metrics.ts";
import { MAX_COMMANDS } from "../../runtime/limits.ts";
import { COUNTER, type GatewayCounter } from "./command-metrics.ts";
import { type Figure, METRICS, type Metric, type Reading } from "./metric-table.ts";
import { NODE_METRICS, type NodeFigures } from "./node-metrics.ts";
import type { ProcessFigures } from "./process-figures.ts";
import { PrometheusText } from "./prometheus.ts";

type Written = Pick<Metric, "name" | "help" | "type" | "label">;

export function writeMetrics(
  database: Database,
  commandNames: readonly string[],
  process: ProcessFigures,
  node?: NodeFigures,
): string {
  if (commandNames.length > MAX_COMMANDS) {
    throw new RangeError(`${commandNames.length} commands, but there is room for ${MAX_COMMANDS}`);
  }
  const { metrics } = database;
  const reading: Reading = {
    stats: database.stats(),
    sums: metrics.sums(),
    gauges: metrics.gauges(),
    process,
    commandNames,
  };
  const text = new PrometheusText();
  for (const metric of METRICS) write(text, metric, figureOf(metric, reading));
  if (node !== undefined) for (const metric of NODE_METRICS) write(text, metric, metric.of(node));
  return text.toString();
}

function figureOf({ counter, read }: Metric, reading: Reading): Figure {
  if (read !== undefined) return read(reading);
  return reading.sums.at(COUNTER[counter as GatewayCounter]);
}

function write(text: PrometheusText, metric: Written, figure: Figure): void {
  const { name, help, type, label = "" } = metric;
  if (figure === undefined) return;
  if (type === "histogram") {
    const series = isHistogram(figure)
      ? [{ labels: {}, histogram: figure }]
      : Object.entries(figure).map(([value, histogram]) => ({
          labels: { [label]: value },
          histogram: histogram as Histogram,
        }));
    text.histogram(name, help, series);
  } else if (typeof figure === "number") {
    text.one(name, type, help, figure);
  } else {
    text.many(name, type, help, label, Object.entries(figure) as [string, number][]);
  }
}

function isHistogram(figure: Figure): figure is Histogram {
  return typeof figure === "object" && Array.isArray(figure.buckets);
}
