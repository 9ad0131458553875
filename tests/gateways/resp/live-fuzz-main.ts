/**
 * A whole gateway under clients at random, for as long as one likes (live-fuzz.ts):
 *
 *   node --expose-gc dist/tests/gateways/resp/live-fuzz-main.js [--rounds 10] [--seed 7]
 *     [--clients 6] [--pipelines 100] [--threads 1] [--durability lazy]
 *
 * Each round has a seed of its own and the same gateway. Fails at the first reply that is missing or
 * malformed, if the gateway reports a fault, and if memory grows from the second round to the last.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ownerOfThis, redirectFolders } from "../../../benchmarks/harness/guard/guard.ts";
import type { DurabilityMode } from "../../../src/attach/settings.ts";
import { destroy } from "../../../src/database/open.ts";
import { COMMANDS } from "../../../src/gateways/redis/commands/command-table.ts";
import { serve } from "../../../src/gateways/serve.ts";
import { nowMs, sleep } from "../../../src/runtime/clock.ts";
import { Random } from "../../../src/runtime/random.ts";
import { fuzzLive } from "./live-fuzz.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "10" },
    seed: { type: "string" },
    clients: { type: "string", default: "6" },
    pipelines: { type: "string", default: "100" },
    threads: { type: "string", default: "1" },
    durability: { type: "string", default: "lazy" },
  },
});
const rounds = Number(values.rounds);
const clients = Number(values.clients);
const pipelines = Number(values.pipelines);
const threads = Number(values.threads);
const durability = values.durability as DurabilityMode;
const first = Number(values.seed ?? 1 + new Random().below(2 ** 30));

/** What is left of connections that are about to go, and what the compiler keeps. */
const LEAK_BYTES = 16 * 2 ** 20;

const { gc } = globalThis;
if (gc === undefined) throw new Error("needs --expose-gc");

async function memoryBytes(): Promise<number> {
  await sleep(200);
  gc?.();
  gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const mebibytes = (size: number): string => `${(size / 2 ** 20).toFixed(1)} MiB`;

redirectFolders(ownerOfThis("fuzz"));
const folder = mkdtempSync(join(tmpdir(), "situ-live-fuzz-"));
const path = join(folder, "store");
try {
  const failures: Error[] = [];
  const memory = { memoryBytes: 64 * 2 ** 20 };
  const options = { path, port: 0, threads, durability, ...memory };
  const gateway = await serve(options, (error) => failures.push(error));
  try {
    let before = 0;
    let after = 0;
    for (let round = 0; round < rounds; round++) {
      const seed = first + round;
      const startMs = nowMs();
      const work = { port: gateway.port, seed, clients, pipelines, commands: COMMANDS };
      const { replies, errors, brokenOff, garbage } = await fuzzLive(work);
      const seconds = ((nowMs() - startMs) / 1e3).toFixed(1);
      after = await memoryBytes();
      if (round === 1) before = after;
      console.log(
        `seed ${seed}: ${seconds} s, ${replies} replies (${errors} errors), ${brokenOff} broken ` +
          `off, ${garbage} babbling; ${mebibytes(after)}`,
      );
      if (failures[0] !== undefined) throw failures[0];
    }
    if (rounds > 1 && after > before + LEAK_BYTES) {
      throw new Error(`memory grew by ${mebibytes(after - before)}`);
    }
  } finally {
    await gateway.close();
  }
} finally {
  await destroy(path);
  rmSync(folder, { recursive: true, force: true });
}
