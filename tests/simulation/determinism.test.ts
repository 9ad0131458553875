/** The same seed gives the same trace, byte for byte: in one process, and in another. */

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { type SimulationOptions, simulate } from "../../simulation/cluster/simulate.ts";

const run = promisify(execFile);
const COMMAND = join(import.meta.dirname, "..", "..", "dist", "simulation", "main.js");

const OPTIONS: SimulationOptions = {
  seed: 20,
  nodes: 3,
  workload: "append",
  clients: 6,
  transactions: 20,
  faults: "heavy",
  protocol: "rpc",
};

test.each(["append", "bank", "registers"] as const)(
  "%s: twice in one process",
  async (workload) => {
    for (const protocol of ["rpc", "one-sided"] as const) {
      const options = { ...OPTIONS, workload, protocol };
      const [first, second] = [await simulate(options), await simulate(options)];
      expect(second).toEqual(first);
      expect(first.traceHash).toMatch(/^[0-9a-f]{16}$/);
    }
  },
);

test("another seed gives another trace", async () => {
  const [first, second] = [await simulate(OPTIONS), await simulate({ ...OPTIONS, seed: 21 })];
  expect(second.traceHash).not.toBe(first.traceHash);
});

test("in another process: the command prints the same hash, as its last line", async () => {
  const { traceHash } = await simulate(OPTIONS);
  const { seed, nodes, workload, clients, transactions, faults, protocol } = OPTIONS;
  const args = { seed, nodes, workload, clients, transactions, faults, protocol };
  const { stdout } = await run(process.execPath, [
    COMMAND,
    ...Object.entries(args).flatMap(([name, value]) => [`--${name}`, String(value)]),
  ]);
  expect(stdout.trimEnd().split("\n").at(-1)).toBe(traceHash);
});
