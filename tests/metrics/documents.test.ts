/** docs/METRICS.md names the metrics that there are, and its example does what it says. */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { startMetrics } from "../../src/gateways/metrics/endpoint.ts";
import { publishCommand } from "../../src/runtime/diagnostics.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { temporaryStores } from "../helpers/store.ts";
import { parse } from "./prometheus-parser.ts";

const stores = temporaryStores();
const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
const page = readFileSync(new URL("../../docs/METRICS.md", import.meta.url), "utf8");

it("the page names exactly the metrics that the endpoint gives, and their labels' values", async () => {
  const database = await stores.open({ tables: [Cell], durability: "lazy" });
  const endpoint = await startMetrics({ database, commandNames: ["get"] });
  stores.later(() => endpoint.close());
  const response = await fetch(`http://127.0.0.1:${endpoint.port}/metrics`);
  const families = parse(await response.text());
  const named = [...page.matchAll(/^\| `((?:situ|process|nodejs)_[a-z0-9_]+)` \|/gm)].map(
    ([, name]) => name,
  );
  expect(named.length).toBeGreaterThan(40);
  expect([...named].sort()).toEqual([...families.keys()].sort());

  for (const { name, samples } of families.values()) {
    for (const { labels } of samples) {
      for (const [label, value] of Object.entries(labels)) {
        if (label === "le" || label === "command") continue;
        expect(page, `${name} ${label}`).toContain(`\`${value}\``);
      }
    }
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
