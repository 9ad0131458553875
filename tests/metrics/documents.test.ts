/** docs/METRICS.md and the endpoint have the metrics of the table; the page's example does what it says. */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { startMetrics } from "../../src/gateways/metrics/endpoint.ts";
import { METRICS, type Metric } from "../../src/gateways/metrics/metric-table.ts";
import { publishCommand } from "../../src/runtime/diagnostics.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { temporaryStores } from "../helpers/store.ts";
import { withTables } from "./page.ts";
import { parse } from "./prometheus-parser.ts";

const stores = temporaryStores();
const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
const page = readFileSync(new URL("../../docs/METRICS.md", import.meta.url), "utf8");

it("the page has the tables of the metrics (`vitest -u` writes them)", async () => {
  await expect(withTables(page)).toMatchFileSnapshot("../../docs/METRICS.md");
});

it("a planted difference is found", () => {
  const changed = page.replace(/^\| `situ_tables`.*\n/m, "");
  expect(changed).not.toBe(page);
  expect(withTables(changed)).toBe(page);
});

it("the endpoint gives all metrics of the table, with their labels", async () => {
  const database = await stores.open({ tables: [Cell], durability: "lazy" });
  const endpoint = await startMetrics({ database, commandNames: ["get"] });
  stores.later(() => endpoint.close());
  const response = await fetch(`http://127.0.0.1:${endpoint.port}/metrics`);
  const families = parse(await response.text());
  expect([...families.keys()]).toEqual(METRICS.map(({ name }) => name));

  for (const { name, type, unit, label, values } of METRICS as readonly Metric[]) {
    const { samples, ...family } = families.get(name)!;
    expect(family).toMatchObject({ type });
    const found = samples.flatMap(({ labels }) => (label === undefined ? [] : labels[label]));
    if (values !== undefined) expect(new Set(found), name).toEqual(new Set(values));
    expect(name.endsWith("_total"), name).toBe(type === "counter");
    if (unit !== undefined) expect(name.replace(/_total$/, "")).toMatch(new RegExp(`_${unit}$`));
    else expect(name).not.toMatch(/_(seconds|bytes)(_total)?$/);
  }
});

it("the example turns events into spans", async () => {
  const code = /```js\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
  expect(code.trim().split("\n").length).toBeLessThanOrEqual(16);
  const spans: { name: string; options: Record<string, unknown>; status: unknown; end: number }[] =
    [];
  const trace = {
    getTracer: (): unknown => ({
      startSpan: (name: string, options: Record<string, unknown>) => {
        const span = { name, options, status: undefined as unknown, end: 0 };
        spans.push(span);
        return {
          setStatus: (status: unknown) => {
            span.status = status;
          },
          end: (at: number) => {
            span.end = at;
          },
        };
      },
    }),
  };
  const listening = (channel: string, listener: Parameters<typeof subscribe>[1]): void => {
    subscribe(channel, listener);
    stores.later(() => unsubscribe(channel, listener));
  };
  const body = code.replace(/^import .*$/gm, "");
  const run = new Function("subscribe", "trace", "SpanKind", "SpanStatusCode", body);
  run(listening, trace, { CLIENT: 2 }, { ERROR: 2 });

  const db = await stores.open({ tables: [Cell] });
  db.transactSync((tx) => tx.put(Cell, { id: 1, value: 1 }));
  expect(() => db.transactSync((tx) => tx.insert(Cell, { id: 1, value: 1 }))).toThrow();
  publishCommand(db.path, "get", 2, 1, "");
  expect(spans.map(({ name }) => name)).toEqual(["transactSync", "transactSync", "GET"]);
  expect(spans.map(({ status }) => status)).toEqual([undefined, { code: 2 }, undefined]);
  const [committed, , get] = spans;
  expect(committed.options).toMatchObject({
    kind: 2,
    attributes: { "db.system.name": "situ", "situ.transaction.outcome": "committed" },
  });
  expect(get.end - (get.options.startTime as number)).toBeCloseTo(2, 5);
});
