/**
 * The decoder under as many inputs as one likes (fuzz.ts):
 *
 *   npm run fuzz -- --inputs 1000000 --seed 7 [--first 402]
 *
 * `--first` begins with that input of the seed. Fails at the first input that breaks a rule, at one
 * that does not come to its end (a second thread watches), and if memory grows: the heap and the
 * buffers outside of it are compared after a garbage collection, between the first tenth and the end.
 */

import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { nowMs } from "../../../src/runtime/clock.ts";
import { Random } from "../../../src/runtime/random.ts";
import { fuzz } from "./fuzz.ts";

const { values } = parseArgs({
  options: {
    inputs: { type: "string", default: "1000000" },
    seed: { type: "string" },
    first: { type: "string", default: "0" },
  },
});
const inputs = Number(values.inputs);
const seed = Number(values.seed ?? 1 + new Random().below(2 ** 30));
const first = Number(values.first);

/** Inputs between two looks at the clock and two signs of life. */
const BATCH = 1_000;
const HANG_MS = 20_000;
/** What the compiler's work and the collector's habits may leave behind. */
const LEAK_BYTES = 4 * 2 ** 20;

const { gc } = globalThis;
if (gc === undefined) throw new Error("needs --expose-gc, as `npm run fuzz` gives it");

function memoryBytes(): number {
  gc?.();
  gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** A thread that ends the process when no batch has come to its end for HANG_MS. */
const WATCH = `
  const { workerData: { done, first, seed, batch, hangMs } } = require("node:worker_threads");
  for (let last = -1; ; ) {
    const batches = Atomics.load(done, 0);
    if (batches < 0) break;
    if (batches === last) {
      const from = first + batches * batch;
      require("node:fs").writeSync(2, \`hangs: seed \${seed}, inputs from \${from} on\\n\`);
      process.kill(process.pid, "SIGKILL");
    }
    last = batches;
    Atomics.wait(done, 1, 0, hangMs);
  }
`;

const done = new Int32Array(new SharedArrayBuffer(8));
const workerData = { done, first, seed, batch: BATCH, hangMs: HANG_MS };
const watch = new Worker(WATCH, { eval: true, workerData });

console.log(`${inputs} inputs, seed ${seed}`);
const startMs = nowMs();
let bytes = 0;
let requests = 0;
let errors = 0;
let before = 0;
try {
  const settled = Math.ceil(inputs / BATCH / 10) * BATCH;
  for (let at = 0; at < inputs; at += BATCH) {
    const report = fuzz(seed, first + at, Math.min(BATCH, inputs - at));
    bytes += report.bytes;
    requests += report.requests;
    errors += report.errors;
    Atomics.add(done, 0, 1);
    if (at + BATCH === settled) before = memoryBytes();
  }
} finally {
  Atomics.store(done, 0, -1);
  Atomics.store(done, 1, 1);
  Atomics.notify(done, 1);
  await watch.terminate();
}
const seconds = (nowMs() - startMs) / 1e3;
const after = memoryBytes();
const rate = Math.round(inputs / seconds);
console.log(`${seconds.toFixed(1)} s, ${rate} inputs/s, ${Math.round(bytes / inputs)} bytes each`);
console.log(`${requests} requests and ${errors} protocol errors, all as expected`);
const mebibytes = (size: number): string => `${(size / 2 ** 20).toFixed(2)} MiB`;
console.log(`memory after a collection: ${mebibytes(before)} before, ${mebibytes(after)} after`);
if (after > before + LEAK_BYTES) {
  console.error(`memory grew by ${mebibytes(after - before)}`);
  process.exitCode = 1;
}
