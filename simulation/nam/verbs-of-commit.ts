/** The verbs of one transaction that reads some records and writes some of them, counted, with the bytes of their frames. */

import { NamTransaction } from "../../src/protocols/nam/transaction.ts";
import { NamCluster } from "./cluster.ts";

export interface CommitVerbs {
  /** Vector, reads, locks, installs, publish: what the paper has. */
  readonly paper: number;
  readonly versions: number;
  readonly journals: number;
  readonly roundTrips: number;
  /** Of requests and replies. */
  readonly bytes: number;
}

const DATA_WORDS = 25;

export function verbsOfCommit(reads: number, writes: number): CommitVerbs {
  let bytes = 0;
  const cluster = new NamCluster({
    seed: 1,
    memoryServers: 3,
    computeServers: 1,
    threadsPerServer: 1,
    timestamps: { layout: "vector" },
    tables: [{ name: "objects", keyWords: 1, dataWords: DATA_WORDS, cells: 300, ring: 2 }],
    trace: ({ what, words }) => {
      if (what === "sent") bytes += words * 4;
    },
  });
  const server = cluster.computeServer(0);
  cluster.run(server, cluster.open(server));
  const [table] = cluster.directory.tables;
  const [[thread]] = server.groups;
  const wanted = Array.from({ length: reads }, (_, i) => ({ table, key: new Int32Array([i]) }));
  const commit = (read: number, written: number): void => {
    const transaction = new NamTransaction(thread, server.timestamps);
    if (read > 0) cluster.run(server, transaction.read(wanted.slice(0, read)));
    for (const { key } of wanted.slice(0, written)) {
      transaction.write(table, key, new Int32Array(DATA_WORDS).fill(1));
    }
    const { kind } = cluster.run(server, transaction.commit());
    if (kind !== "committed") throw new Error("a lone transaction commits");
  };
  commit(0, reads);
  const before = { ...thread.counts };
  bytes = 0;
  commit(reads, writes);
  const spent = (name: keyof typeof before): number => thread.counts[name] - before[name];
  return {
    paper:
      spent("timestamps") +
      spent("reads") +
      spent("locks") +
      spent("installs") +
      spent("publishes"),
    versions: spent("oldVersions"),
    journals: spent("journals"),
    roundTrips: spent("roundTrips"),
    bytes,
  };
}
