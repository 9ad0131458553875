/**
 * NAM-DB's Figure 7: how many timestamp transactions a second a single timestamp server carries (§7.2). Seven compute servers of
 * 20 threads each do nothing but read the timestamp, make a commit timestamp and publish it, with the project's own
 * coroutines (src/protocols/nam/timestamps.ts) on the model of the paper's cluster B.
 *
 * Three figures of the model are fitted to results of this very experiment: small writes that come to one NIC (the
 * result "background"), the word that the threads of a compute server contend for (the result "both"), and the
 * thread of the old oracle (the result "oracle"). The other two results follow: "vector" from the bandwidth of the link
 * and the length of the vector, "compressed" from the time of a round trip.
 */

import type { Routine } from "../../src/protocols/message.ts";
import type { ComputeThread } from "../../src/protocols/nam/compute-thread.ts";
import type { TimestampLayout, Timestamps } from "../../src/protocols/nam/timestamps.ts";
import { NAMDB_B, NAMDB_ORACLE } from "../fabric/hardware.ts";
import { Servers } from "../fabric/machine.ts";
import { NamCluster } from "./cluster.ts";

const COMPUTE_SERVERS = 7;
const THREADS = 20;
/** Threads of one machine take and finish timestamps at one word: 135 M a second on seven machines. Fitted. */
const SHARED_WORD_US = COMPUTE_SERVERS / 135;

/** Millions of t-trx a second, as the paper has them. */
export const FIGURE_7: Readonly<Record<TimestampLayout, number>> = {
  oracle: 2,
  vector: 20,
  background: 36,
  compressed: 80,
  both: 135,
};

export interface TimestampRate {
  readonly layout: TimestampLayout;
  readonly mtps: number;
  readonly paper: number;
  readonly isFitted: boolean;
}

export function timestampRate(layout: TimestampLayout, measuredUs = 60): TimestampRate {
  const cluster = new NamCluster({
    seed: 1,
    hardware: NAMDB_B,
    hardwareOf: (id) => (id >= 0 ? NAMDB_ORACLE : undefined),
    trace: false,
    memoryServers: 1,
    computeServers: COMPUTE_SERVERS,
    threadsPerServer: THREADS,
    timestamps: { layout, own: "overlay" },
    tables: [],
    journalCopies: 1,
    journalWords: 2,
    overflowWords: 2,
  });
  const { fabric } = cluster;
  const random = fabric.random("stagger");
  let done = 0;
  for (let number = 0; number < COMPUTE_SERVERS; number++) {
    const server = cluster.computeServer(number);
    cluster.openAtOnce(server);
    const word = new Servers(1);
    const isShared = layout === "compressed" || layout === "both";
    const { timestamps, driver } = server;
    if (timestamps.readsInBackground) {
      driver.detach(timestamps.fetchAlways(server.groups[0][0], () => false));
    }
    for (const thread of server.groups.flat()) {
      const loop = (): void => {
        driver.run(
          timestampTransaction(thread, timestamps),
          0,
          () => {
            done++;
            const nextUs = isShared ? word.serve(fabric.nowUs, SHARED_WORD_US) : fabric.nowUs;
            fabric.at(nextUs, loop);
          },
          rethrow,
        );
      };
      fabric.at(random.below(5_000) / 1e3, loop);
    }
  }
  const warmUpUs = 20;
  fabric.run(warmUpUs);
  done = 0;
  fabric.run(warmUpUs + measuredUs);
  const isFitted = layout === "background" || layout === "both" || layout === "oracle";
  return { layout, mtps: done / measuredUs, paper: FIGURE_7[layout], isFitted };
}

/** §7.2: "(1) reads the current timestamp, (2) generates a new commit timestamp, and (3) makes the new commit timestamp visible". */
function* timestampTransaction(thread: ComputeThread, timestamps: Timestamps): Routine<void> {
  yield* timestamps.read(thread);
  const timestamp = yield* timestamps.next(thread);
  yield* timestamps.publish(thread, timestamp);
}

function rethrow(error: unknown): never {
  throw error;
}
