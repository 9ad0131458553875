// A node joins a cluster that is in use, and copies a million rows. What is left of the commits meanwhile? On this
// machine the new node takes its share of the same cores; elsewhere it would have its own.
import { setTimeout as sleep } from "node:timers/promises";
import { measuredOver, missingFigure } from "../harness/figures.ts";
import type { TrustMeasure } from "../trust/measure.ts";
import { BenchCluster, COPIES, NODES } from "./cluster.ts";
import { Load } from "./load.ts";

const NAME = "commits while a new node copies its rows, against before";
const BAR = { atLeast: 0.7 };
/** The last of four nodes with three copies gets three quarters of all rows. */
const COPIED = 1_000_000;
const QUICK_COPIED = 30_000;
const IN_FLIGHT = 24;
const SLICE_MS = 2_000;
const BEFORE_SLICES = 6;
const MEMORY_BYTES = 512 * 2 ** 20;

export const copying: TrustMeasure = {
  name: "copying",
  async run({ options, progress, memoryFolder }) {
    const copied = options.quick ? QUICK_COPIED : COPIED;
    const rows = Math.ceil((copied * NODES) / COPIES);
    progress.show(`copying: loading ${rows} rows`);
    const cluster = await BenchCluster.start({
      rows,
      nodes: NODES - 1,
      memoryBytes: MEMORY_BYTES,
      memoryFolder,
    });
    if (typeof cluster === "string") {
      return { figures: [missingFigure(NAME, BAR, cluster)], notes: [] };
    }
    const ids = Int32Array.from({ length: rows }, (_, id) => id);
    const load = new Load(cluster, ids, IN_FLIGHT, options.seed);
    await load.warmUp();
    const before = await load.rate(BEFORE_SLICES * SLICE_MS);
    progress.show("copying");
    const startMs = performance.now();
    (await cluster.addNode()).start();
    let isOver = false;
    const whole = cluster.whole().then(() => {
      isOver = true;
    });
    const slices: number[] = [];
    while (!isOver) slices.push((await load.rate(Promise.race([sleep(SLICE_MS), whole]))) / before);
    await whole;
    const seconds = (performance.now() - startMs) / 1_000;
    const after = await load.rate(BEFORE_SLICES * SLICE_MS);
    await load.stop();
    await cluster.close();
    return {
      figures: [measuredOver(NAME, BAR, slices, "times")],
      notes: [
        `copying: ${copied} rows of 52 bytes in ${seconds.toFixed(0)} s, from the start of the node's process until it ` +
          `had its share, in slices of ${SLICE_MS / 1_000} s; ${before.toFixed(0)} commits a second before, ` +
          `${after.toFixed(0)} afterwards`,
      ],
    };
  },
};
