/**
 * The kill storms for as long as one likes: of everything at once, of snapshots, of indexes and of
 * what is on disk, one after the other, or one of them; and that of the nodes of a cluster, which needs etcd, if
 * it is asked for.
 *
 *   node dist/tests/processes/soak.js --seed 1 --minutes 10 [--processes 4] [--kills 500]
 *     [--storm mixed|snapshots|indexes|durable|nodes] [--durability none|lazy|sync]
 *
 * The durability is that of the mixed storm's store, or of all nodes; without it, the seed decides.
 */

import { parseArgs } from "node:util";
import { ownerOfThis, redirectFolders } from "../../benchmarks/harness/guard/guard.ts";
import type { DurabilityMode } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { runNodeStorm } from "../etcd/node-storm.ts";
import { runDurableStorm } from "./durable-storm.ts";
import { runIndexStorm } from "./index-storm.ts";
import { type MixedStormOptions, runMixedStorm } from "./mixed-storm.ts";
import { runSnapshotStorm } from "./snapshot-storm.ts";

type Storm = (options: MixedStormOptions) => Promise<{ readonly problems: readonly string[] }>;
const STORMS: Readonly<Record<string, Storm>> = {
  mixed: runMixedStorm,
  snapshots: runSnapshotStorm,
  indexes: runIndexStorm,
  durable: runDurableStorm,
  nodes: runNodeStorm,
};
/** Without a word to the contrary. */
const USUAL = Object.keys(STORMS).filter((name) => name !== "nodes");

redirectFolders(ownerOfThis("soak"));
const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    minutes: { type: "string", default: "5" },
    processes: { type: "string", default: "3" },
    kills: { type: "string", default: "300" },
    storm: { type: "string" },
    durability: { type: "string" },
  },
});
const seed = Number(values.seed ?? 1 + new Random().below(2 ** 30));
const names = values.storm === undefined ? USUAL : [values.storm];
for (const name of names) {
  const storm = STORMS[name];
  if (storm === undefined) throw new Error(`--storm is one of ${Object.keys(STORMS).join(", ")}`);
  const report = await storm({
    seed,
    processes: Number(values.processes),
    kills: Math.ceil(Number(values.kills) / names.length),
    minutes: Number(values.minutes) / names.length,
    durability: values.durability as DurabilityMode | undefined,
    progress: (line) => console.error(`${name}, seed ${seed}: ${line}`),
  });
  console.log(JSON.stringify({ storm: name, ...report }, undefined, 2));
  if (report.problems.length > 0) process.exitCode = 1;
}
