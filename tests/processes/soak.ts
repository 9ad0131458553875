/**
 * The kill storms for as long as one likes: of transactions, of snapshots, of indexes and of what is
 * on disk, one after the other, or one of them.
 *
 *   node dist/tests/processes/soak.js --seed 1 --minutes 10 [--processes 4] [--kills 500]
 *     [--storm transactions|snapshots|indexes|durable]
 */

import { parseArgs } from "node:util";
import { ownerOfThis, redirectFolders } from "../../benchmarks/harness/guard/guard.ts";
import { Random } from "../../src/runtime/random.ts";
import { runDurableStorm } from "./durable-storm.ts";
import { runIndexStorm } from "./index-storm.ts";
import { runSnapshotStorm } from "./snapshot-storm.ts";
import { runStorm, type StormOptions } from "./storm.ts";

type Storm = (options: StormOptions) => Promise<{ readonly problems: readonly string[] }>;
const STORMS: Readonly<Record<string, Storm>> = {
  transactions: runStorm,
  snapshots: runSnapshotStorm,
  indexes: runIndexStorm,
  durable: runDurableStorm,
};

redirectFolders(ownerOfThis("soak"));
const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    minutes: { type: "string", default: "5" },
    processes: { type: "string", default: "3" },
    kills: { type: "string", default: "300" },
    storm: { type: "string" },
  },
});
const seed = Number(values.seed ?? 1 + new Random().below(2 ** 30));
const names = values.storm === undefined ? Object.keys(STORMS) : [values.storm];
for (const name of names) {
  const storm = STORMS[name];
  if (storm === undefined) throw new Error(`--storm is one of ${Object.keys(STORMS).join(", ")}`);
  const report = await storm({
    seed,
    processes: Number(values.processes),
    kills: Math.ceil(Number(values.kills) / names.length),
    minutes: Number(values.minutes) / names.length,
    progress: (line) => console.error(`${name}, seed ${seed}: ${line}`),
  });
  console.log(JSON.stringify({ storm: name, ...report }, undefined, 2));
  if (report.problems.length > 0) process.exitCode = 1;
}
