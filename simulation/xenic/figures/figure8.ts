/**
 * Xenic's Figure 8 a, c and d: peak throughput and median latency at low load of Xenic against DrTM+H's mixture, which is the same
 * coroutines with another table of places (../model/rdma-node.ts). Both have the threads that Table 3 says are enough for 95 %
 * of their peaks. Which figures of the models are fitted, and to what, is said in ../model/hardware.ts and in the workloads; the peaks of
 * SmallBank, DrTM+H's peak and median of New-Order, and the steps of Fig. 9b are. Those of Retwis follow.
 */

import { measure, type Point, type System } from "./measure.ts";
import { newOrder } from "./new-order.ts";
import { retwis } from "./retwis.ts";
import { smallbank } from "./smallbank.ts";
import type { FigureWorkload } from "./workload.ts";

export interface Row {
  readonly workload: FigureWorkload;
  /** Xenic's peak against DrTM+H's, and how many percent lower its median is. */
  readonly peak: number;
  readonly lowerPercent: number;
  /** Clients of a server in a closed loop, at which the peak is looked for. */
  readonly clients: { readonly xenic: number; readonly drtm: number };
  readonly measuredUs: number;
  /** Whether the peaks, and the medians, were used to fit the model. */
  readonly isPeakFitted: boolean;
  readonly isMedianFitted: boolean;
}

export const FIGURE_8: readonly Row[] = [
  {
    workload: newOrder,
    peak: 2.42,
    lowerPercent: 59,
    clients: { xenic: 96, drtm: 64 },
    measuredUs: 200,
    isPeakFitted: true,
    isMedianFitted: true,
  },
  {
    workload: retwis,
    peak: 2.07,
    lowerPercent: 42,
    clients: { xenic: 200, drtm: 128 },
    measuredUs: 60,
    isPeakFitted: false,
    isMedianFitted: false,
  },
  {
    workload: smallbank,
    peak: 2.21,
    lowerPercent: 22,
    clients: { xenic: 320, drtm: 200 },
    measuredUs: 60,
    isPeakFitted: true,
    isMedianFitted: true,
  },
];

export interface Compared {
  readonly row: Row;
  readonly xenic: { readonly peak: Point; readonly low: Point };
  readonly drtm: { readonly peak: Point; readonly low: Point };
  readonly peak: number;
  readonly lowerPercent: number;
}

/** `scale` shortens what is measured. */
export function compare(row: Row, scale = 1): Compared {
  const { workload, clients, measuredUs } = row;
  const at = (system: System, clientsPerServer: number): Point =>
    measure(workload, system, {
      clientsPerServer,
      warmUpUs: measuredUs * Math.max(0.5, scale),
      measuredUs: measuredUs * scale,
    });
  const low = (system: System): Point =>
    measure(workload, system, { clientsPerServer: 1, warmUpUs: 20, measuredUs: 600 * scale });
  const xenic = { peak: at({ kind: "xenic" }, clients.xenic), low: low({ kind: "xenic" }) };
  const drtm = { peak: at({ kind: "drtm+h" }, clients.drtm), low: low({ kind: "drtm+h" }) };
  return {
    row,
    xenic,
    drtm,
    peak: xenic.peak.mtps / drtm.peak.mtps,
    lowerPercent: 100 * (1 - xenic.low.medianUs / drtm.low.medianUs),
  };
}
