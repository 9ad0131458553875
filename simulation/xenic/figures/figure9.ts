/**
 * Xenic's Figure 9, the ablation (§5.7): a baseline with DrTM+H's set of operations, each about one row, and techniques that are
 * switched on one after the other. Figure 9a is Retwis' throughput, at the load of its peak; 9b SmallBank's median latency at low load.
 *
 * In 9a procedures run at the NIC from the beginning, since its last step is all of Xenic and no step of it is called execution at the
 * NIC; multi-hop commits come with the combined operations, which they consist of.
 */

import { measure, type System } from "./measure.ts";
import { retwis } from "./retwis.ts";
import { smallbank } from "./smallbank.ts";

export interface Step {
  readonly name: string;
  readonly system: System;
  /** As the paper has it, against the baseline. */
  readonly paper: number;
}

const BASELINE_9A: System = {
  kind: "xenic",
  switches: { combines: false, hops: false },
  techniques: { aggregates: false, batchesDma: false, splitsRows: true },
};

export const FIGURE_9A: readonly Step[] = [
  { name: "baseline", system: BASELINE_9A, paper: 1 },
  {
    name: "+ combined operations",
    system: { kind: "xenic", techniques: { aggregates: false, batchesDma: false } },
    paper: 1.47,
  },
  {
    name: "+ aggregation",
    system: { kind: "xenic", techniques: { batchesDma: false } },
    paper: 1.98,
  },
  { name: "+ asynchronous DMA", system: { kind: "xenic" }, paper: 2.3 },
];

/** DrTM+H against the baseline: 0.90 of it is the baseline's throughput, and 1.37 times its latency the baseline's. */
export const DRTM_9A = 1 / 0.9;
export const DRTM_9B = 1 / 1.37;

export const FIGURE_9B: readonly Step[] = [
  {
    name: "baseline",
    system: {
      kind: "xenic",
      switches: { combines: false, runsAtNic: false, hops: false },
      techniques: { splitsRows: true },
    },
    paper: 1,
  },
  {
    name: "+ combined operations",
    system: { kind: "xenic", switches: { runsAtNic: false, hops: false } },
    paper: 0.8,
  },
  {
    name: "+ execution at the NIC",
    system: { kind: "xenic", switches: { hops: false } },
    paper: 0.68,
  },
  { name: "+ multi-hop", system: { kind: "xenic" }, paper: 0.58 },
];

/** Millions of Retwis transactions a second and server. */
export function retwisRate(system: System, scale = 1): number {
  const clientsPerServer = system.kind === "xenic" ? 200 : 128;
  const load = { clientsPerServer, warmUpUs: 80, measuredUs: 60 * scale };
  return measure(retwis, system, load).mtps;
}

/** The median of SmallBank's transactions at low load, in µs. */
export function smallbankMedianUs(system: System, scale = 1): number {
  const load = { clientsPerServer: 1, warmUpUs: 20, measuredUs: 600 * scale };
  return measure(smallbank, system, load).medianUs;
}
