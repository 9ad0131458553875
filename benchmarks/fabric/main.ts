// `npm run bench -- fabric`: messages against a bare echo, a cluster of three nodes on loopback against
// Redis and etcd, round trips against the papers, and FaSST against FaRM on simulated hardware.
import { compareFasstWithFarm, labTable } from "../../simulation/lab/fasst-against-farm.ts";
import { type BenchOptions, parseBenchArguments } from "../harness/bench-options.ts";
import { measureInFlight } from "../harness/in-flight.ts";
import { describeMachine } from "../harness/machine.ts";
import { createProgress, type Progress } from "../harness/progress.ts";
import { randomKeys } from "../harness/random.ts";
import { renderText } from "../harness/report.ts";
import { releaseAll } from "../harness/resources.ts";
import type { Timing } from "../harness/rounds.ts";
import { valueBytes } from "./accounts.ts";
import {
  backupCount,
  type Cluster,
  nodeCount,
  pairsOnTwoPrimaries,
  startCluster,
} from "./cluster.ts";
import { situCall, situGet, situGetInTransaction, situTransfer } from "./contestants.ts";
import { type FabricMeasured, fabricFigures, names, notesOf } from "./figures.ts";
import { measureMessages } from "./messages.ts";
import {
  closePeers,
  describePeers,
  etcdSizes,
  openPeers,
  type Peers,
  transferName,
} from "./peers.ts";
import { countAll, roundTripsTable } from "./round-trips-table.ts";

const memoryFolder = process.env.SITU_MEMORY_DIR ?? "/dev/shm";
const inFlight = 64;
const warmUpMs = 2_500;
/** Shorter turns would measure how fast a contestant gets under way. */
const turnMs = (quick: boolean): number => (quick ? 1_500 : 2_000);

interface Clusters {
  readonly rpc: Cluster;
  readonly oneSided: Cluster;
}

async function main(): Promise<void> {
  const { options } = parseBenchArguments(process.argv.slice(2));
  const { quick, json, seed, rounds } = options;
  const rows = quick ? 20_000 : 100_000;
  const machine = describeMachine();
  const progress = createProgress();

  const messages = await measureMessages(options, progress);
  progress.show("starting and loading two clusters");
  const clusters: Clusters = {
    rpc: await startCluster("rpc", rows, memoryFolder),
    oneSided: await startCluster("one-sided", rows, memoryFolder),
  };
  const peers = await openPeers(rows, memoryFolder, progress);
  const timings = [
    ...(await measureReads(clusters, peers, rows, options, progress)),
    ...(await measureTransactions(clusters, peers, rows, options, progress)),
  ];
  progress.show("checking that no money was lost");
  await closePeers(peers);
  await clusters.rpc.close();
  await clusters.oneSided.close();
  progress.show("counting round trips");
  const roundTrips = await countAll();
  progress.show("simulating FaSST and FaRM");
  const lab = compareFasstWithFarm({ seed });
  progress.clear();

  const conditions = [
    ...machine,
    ...describePeers(peers),
    `Situ: ${nodeCount} nodes, ${backupCount} backups of each row, durability "none", protocol ` +
      '"rpc" unless it says "one-sided"; one client process for all',
    `${rows.toLocaleString("en")} rows, u32 keys and ${valueBytes} bytes, uniformly random, seed ` +
      `${seed}; transfers read and write two rows of different primaries; ${inFlight} in flight`,
    `${rounds} rounds, interleaved, turns of ${turnMs(quick)} ms; medians; a ratio is taken per round; ` +
      "time per operation is a second divided by the operations that ended in it",
  ];
  const all: FabricMeasured = { messages, timings, roundTrips, lab };
  const figures = fabricFigures(all, peers);
  const notes = [...notesOf(all, peers), "", ...roundTripsTable(roundTrips), "", labTable(lab)];
  console.log(renderText({ bench: "fabric", conditions, timings, figures, notes }));
  if (json) {
    const reported = { timings, messages, roundTrips, lab: lab.rows };
    console.log(JSON.stringify({ bench: "fabric", figures, reported }));
  }
}

function measureReads(
  { rpc, oneSided }: Clusters,
  { redis }: Peers,
  rows: number,
  { rounds, quick, seed }: BenchOptions,
  progress: Progress,
): Promise<Timing[]> {
  const keys = randomKeys(rows, seed);
  const contestants = [
    situGet(names.get, rpc.db, keys),
    ...(redis.available ? [redis.value.get(names.redisGet, keys)] : []),
    situGet(names.getByVerb, oneSided.db, keys),
    situGetInTransaction(names.getInTransaction, rpc.db, keys),
  ];
  const plan = { inFlight, warmUpMs, rounds, roundMs: turnMs(quick) };
  return measureInFlight(contestants, plan, progress);
}

function measureTransactions(
  { rpc, oneSided }: Clusters,
  { etcd }: Peers,
  rows: number,
  { rounds, quick, seed }: BenchOptions,
  progress: Progress,
): Promise<Timing[]> {
  // Both clusters have the same name and number of nodes, and so the same placement.
  const pairs = pairsOnTwoPrimaries(rpc.configuration, rows, seed);
  const contestants = [
    situTransfer(names.transfer, rpc.db, pairs),
    situTransfer(names.transferByVerb, oneSided.db, pairs),
    situCall(names.call, rpc.db, pairs),
    situCall(names.callByVerb, oneSided.db, pairs),
  ];
  for (const size of etcdSizes) {
    const bank = etcd[size];
    if (bank.available) contestants.push(bank.value.transfer(transferName(size), pairs));
  }
  const plan = { inFlight, warmUpMs, rounds, roundMs: turnMs(quick) };
  return measureInFlight(contestants, plan, progress);
}

try {
  await main();
} finally {
  // Also after a failure: the nodes, the peers and the folders in /dev/shm must not stay.
  releaseAll();
}
