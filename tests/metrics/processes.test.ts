/** One endpoint speaks for all processes that have the store open, also for those that died. */

import { afterAll, expect, it } from "vitest";
import { serveMetrics } from "../../src/gateways/metrics/endpoint.ts";
import { endAll } from "../helpers/engine-processes.ts";
import { Talker } from "../helpers/process-group.ts";
import { eventually, temporaryStores } from "../helpers/store.ts";
import type { MetricsOrder } from "./metrics-child.ts";
import { Cell } from "./metrics-store.ts";
import { type Family, parse, sampleOf } from "./prometheus-parser.ts";

const stores = temporaryStores();
afterAll(endAll);

it("two processes commit, a third answers for them; one is killed", async () => {
  const db = await stores.open({ tables: [Cell] });
  db.transactSync((tx) => tx.put(Cell, { id: 0, value: 0 }));
  const endpoint = await serveMetrics(db);
  stores.later(() => endpoint.close());
  const scrape = async (): Promise<Map<string, Family>> => {
    const response = await fetch(`http://127.0.0.1:${endpoint.port}/metrics`);
    return parse(await response.text());
  };
  const commits = (families: Map<string, Family>): number =>
    sampleOf(families, "situ_commits_total", { kind: "read_write" });
  const before = commits(await scrape());

  const order = (id: number): MetricsOrder => ({
    path: db.path,
    id,
    commits: 500 * id,
    clients: id,
  });
  const children = [1, 2].map((id) => new Talker("../metrics/metrics-child", order(id)));
  await Promise.all(children.map((child) => child.hear("ready")));

  const during = await scrape();
  // Splits of the table are commits, too.
  expect(commits(during) - before).toBeGreaterThanOrEqual(1_500);
  expect(commits(during) - before).toBeLessThan(1_600);
  expect(sampleOf(during, "situ_executors")).toBe(3);
  expect(sampleOf(during, "situ_clients")).toBe(3);
  expect(sampleOf(during, "situ_recoveries_total")).toBe(0);
  const timed = sampleOf(during, "situ_transaction_duration_seconds_count", { kind: "sync" });
  expect(timed).toBeGreaterThan(1_500 - 2 * 128);
  expect(timed).toBeLessThanOrEqual(1_501);
  expect(db.metrics.sums().callsOf(1)).toBe(1_500);

  children[0].running.child.kill("SIGKILL");
  await children[0].running.ended;
  await eventually(async () => sampleOf(await scrape(), "situ_executors") === 2);
  const after = await scrape();
  expect(sampleOf(after, "situ_clients")).toBe(2);
  expect(sampleOf(after, "situ_recoveries_total")).toBe(1);
  expect(commits(after)).toBe(commits(during));

  children[1].go();
  expect((await children[1].running.ended).code).toBe(0);
  const end = await scrape();
  expect(sampleOf(end, "situ_clients")).toBe(0);
  expect(commits(end)).toBe(commits(during));
  expect(db.metrics.sums().callsOf(1)).toBe(1_500);
});
