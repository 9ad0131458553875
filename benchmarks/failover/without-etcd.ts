// etcd is asked when the configuration changes, and by nobody else. So transactions should not notice that it is
// away. It is stopped for a minute, not killed: its connections stay, and nothing is answered.
import { compared, missingFigure } from "../harness/figures.ts";
import type { TrustMeasure } from "../trust/measure.ts";
import { BenchCluster } from "./cluster.ts";
import { Load } from "./load.ts";

const NAME = "commits while etcd is stopped, against before and after";
const BAR = { atLeast: 0.95 };
const ROWS = 4_000;
const IN_FLIGHT = 24;

export const withoutEtcd: TrustMeasure = {
  name: "without-etcd",
  async run({ options, progress, memoryFolder }) {
    const cluster = await BenchCluster.start({ rows: ROWS, memoryFolder });
    if (typeof cluster === "string") {
      return { figures: [missingFigure(NAME, BAR, cluster)], notes: [] };
    }
    const ids = Int32Array.from({ length: ROWS }, (_, id) => id);
    const stoppedMs = options.quick ? 3_000 : 60_000;
    const rounds = options.quick ? 1 : Math.ceil(options.rounds / 3);
    const load = new Load(cluster, ids, IN_FLIGHT, options.seed);
    await load.warmUp();
    const stopped: number[] = [];
    const running = [await load.rate(stoppedMs / 4)];
    for (let round = 0; round < rounds; round++) {
      progress.show(`without-etcd: round ${round + 1} of ${rounds}`);
      cluster.etcd.pause(true);
      stopped.push(await load.rate(stoppedMs));
      cluster.etcd.pause(false);
      running.push(await load.rate(stoppedMs / 4));
    }
    await load.stop();
    await cluster.close();
    // The machine is faster at one time than at another: each minute against what was around it.
    const around = stopped.map((_, round) => (running[round] + running[round + 1]) / 2);
    const ratios = stopped.map((rate, round) => rate / around[round]);
    const figure = compared(
      NAME,
      BAR,
      ratios,
      { name: "without etcd", values: stopped },
      { name: "with etcd", values: around },
      "per second",
    );
    return {
      figures: [figure],
      notes: [
        `without-etcd: ${rounds} times ${stoppedMs / 1_000} s of SIGSTOP, with ${stoppedMs / 4_000} s of running before and ` +
          `after; commits a second ${stopped.map((rate) => rate.toFixed(0)).join(", ")}, with etcd ` +
          `${running.map((rate) => rate.toFixed(0)).join(", ")}`,
      ],
    };
  },
};
