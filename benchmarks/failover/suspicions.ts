// Nodes that are alive and slow: both cores are kept busy, by processes that do nothing but count and by a load of
// transfers. Does anybody take a node for dead?
import { spawn } from "node:child_process";
import { cpus } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { DEFAULT_LEASE_MS } from "../../src/runtime/limits.ts";
import { counted, missingFigure } from "../harness/figures.ts";
import { guardProcesses, onRelease } from "../harness/resources.ts";
import type { TrustMeasure } from "../trust/measure.ts";
import { BenchCluster } from "./cluster.ts";
import { Load } from "./load.ts";

const NAME = "false suspicions with all cores kept busy";
const BAR = { atMost: 0 };
const ROWS = 4_000;
const IN_FLIGHT = 24;
const COUNTING = "for (let i = 0; ; i++) globalThis.i = i;";
const SUSPICIONS = "situ_node_suspicions_total";

export const suspicions: TrustMeasure = {
  name: "suspicions",
  async run({ options, progress, memoryFolder }) {
    const cluster = await BenchCluster.start({ rows: ROWS, memoryFolder });
    if (typeof cluster === "string") {
      return { figures: [missingFigure(NAME, BAR, cluster)], notes: [] };
    }
    const { configurationId } = await cluster.whole();
    const before = sum(await cluster.metric(SUSPICIONS));
    const cores = cpus().length;
    const ends = Array.from({ length: cores }, keepBusy);
    const ids = Int32Array.from({ length: ROWS }, (_, id) => id);
    const load = new Load(cluster, ids, IN_FLIGHT, options.seed);
    const seconds = options.quick ? 20 : 600;
    progress.show(`suspicions: ${seconds} s`);
    const rate = await load.rate(sleep(seconds * 1_000));
    await load.stop();
    for (const end of ends) end();
    const after = sum(await cluster.metric(SUSPICIONS));
    const changes = (await cluster.configuration())!.configurationId - configurationId;
    await cluster.close();
    return {
      figures: [counted(NAME, BAR, after - before, `in ${seconds} s`)],
      notes: [
        `suspicions: lease ${DEFAULT_LEASE_MS} ms, ${cores} cores, ${cores} processes that count and never wait, ` +
          `${IN_FLIGHT} transfers under way, ${rate.toFixed(0)} commits a second; the configuration changed ${changes} times`,
      ],
    };
  },
};

/** Starts a process that never waits; returns how to end it. */
function keepBusy(): () => void {
  guardProcesses();
  const child = spawn(process.execPath, ["-e", COUNTING], { stdio: "ignore" });
  return onRelease(() => {
    child.kill("SIGKILL");
  });
}

function sum(values: ReadonlyMap<number, number>): number {
  return [...values.values()].reduce((total, value) => total + value, 0);
}
