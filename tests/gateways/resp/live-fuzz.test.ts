/** A gateway under clients at random (live-fuzz.ts): it answers each that keeps to the protocol. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { destroy } from "../../../src/database/open.ts";
import type { GatewayOptions } from "../../../src/gateways/gateway-options.ts";
import { COMMANDS } from "../../../src/gateways/redis/commands/command-table.ts";
import { serve } from "../../../src/gateways/serve.ts";
import { fuzzLive, type LiveReport } from "./live-fuzz.ts";

const CLIENTS = 6;
const PIPELINES = 25;

async function fuzzed(seed: number, rest: Partial<GatewayOptions>): Promise<LiveReport> {
  const folder = mkdtempSync(join(tmpdir(), "situ-live-fuzz-"));
  const failures: Error[] = [];
  const options = { path: join(folder, "store"), port: 0, memoryBytes: 64 * 2 ** 20, ...rest };
  try {
    const gateway = await serve(options, (error) => failures.push(error));
    try {
      const { port } = gateway;
      const work = { port, seed, clients: CLIENTS, pipelines: PIPELINES, commands: COMMANDS };
      return await fuzzLive(work);
    } finally {
      await gateway.close();
      // What the gateway says is nearer to the cause than what its clients see.
      expect(failures).toEqual([]);
    }
  } finally {
    await destroy(options.path);
    rmSync(folder, { recursive: true, force: true });
  }
}

test.each<[string, number, Partial<GatewayOptions>]>([
  ["one thread", 11, {}],
  ["two threads", 12, { threads: 2 }],
  ["replies that wait for the disk", 13, { durability: "sync" }],
])("clients that keep to the protocol get all replies: %s", async (_, seed, options) => {
  const report = await fuzzed(seed, options);
  expect(report.replies).toBeGreaterThan(CLIENTS * PIPELINES * 10);
  expect(report.errors).toBeLessThan(report.replies);
  expect(report.brokenOff).toBeGreaterThan(10);
  expect(report.garbage).toBeGreaterThan(10);
});
