// Nodes are killed under load, one after the other. How long until commits on their partitions succeed again, and
// what becomes of commits on the others in the meantime?
//
// From the moment of the kill, one transaction is under way on each of some partitions that the node was the primary
// of. What counts is the last of them: partitions go to several nodes. Of the other partitions, some had a backup at
// the dead node, whose word their commits need, and some had nothing there. They are loaded separately, with
// transactions in proportion to their number: those that wait must not hold up the others, or a single
// closed loop would measure the pause once more.
import { setTimeout as sleep } from "node:timers/promises";
import { DEFAULT_LEASE_MS } from "../../src/runtime/limits.ts";
import { counted, type Figure, measuredOver, missingFigure } from "../harness/figures.ts";
import { randomStream } from "../harness/random.ts";
import { summarize } from "../harness/statistics.ts";
import type { TrustMeasure } from "../trust/measure.ts";
import { BenchCluster } from "./cluster.ts";
import { Load, transfer } from "./load.ts";
import { rowsOf } from "./rows-of.ts";

const ROWS = 4_000;
/** Fewer than by default: copies move a number of partitions at a time, and every kill waits until all are back. */
const PARTITIONS = 64;
const KILLS_PER_ROUND = 3;
const PROBED = 12;
const IN_FLIGHT = 24;
const SETTLE_MS = 700;
const BEFORE_MS = 1_500;

const NAMES = {
  gap: "SIGKILL of a node until commits on its partitions succeed",
  others: "commits on the other partitions meanwhile, against before",
  lost: "rows that lost a commit or have one twice",
};
const BARS = {
  gap: { atMost: 3 * DEFAULT_LEASE_MS + 100 },
  others: { atLeast: 0.5 },
  lost: { atMost: 0 },
};

interface Kill {
  readonly wasManager: boolean;
  /** Until etcd had a configuration without the node. */
  readonly removedMs: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** Against before: of all other partitions, of those with a backup at the node, of those without. */
  readonly others: number;
  readonly withBackup: number;
  readonly without: number;
  readonly wholeMs: number;
}

export const kills: TrustMeasure = {
  name: "kills",
  async run({ options, progress, memoryFolder }) {
    const wanted = options.quick ? options.rounds : KILLS_PER_ROUND * options.rounds;
    const cluster = await BenchCluster.start({ rows: ROWS, partitions: PARTITIONS, memoryFolder });
    if (typeof cluster === "string") {
      const figures = [
        missingFigure(NAMES.gap, BARS.gap, cluster),
        missingFigure(NAMES.others, BARS.others, cluster),
        missingFigure(NAMES.lost, BARS.lost, cluster),
      ];
      return { figures, notes: [] };
    }
    progress.show("kills: warming up");
    const ids = Int32Array.from({ length: ROWS }, (_, id) => id);
    const load = new Load(cluster, ids, IN_FLIGHT, options.seed);
    await load.warmUp();
    await load.stop();
    const random = randomStream(options.seed);
    const all: Kill[] = [];
    for (let i = 0; i < wanted; i++) {
      const last = all.at(-1);
      const so = last === undefined ? "" : `, the last took ${last.lastMs.toFixed(0)} ms`;
      progress.show(`kills: ${i + 1} of ${wanted}${so}`);
      const victim = Math.floor(random() * cluster.nodes.length);
      all.push(await killOne(cluster, victim, options.seed + i));
    }
    const wrong = await cluster.wrongRows();
    if (wrong === 0) await cluster.close();
    return { figures: figuresOf(all, wrong), notes: notesOf(all, cluster) };
  },
};

async function killOne(cluster: BenchCluster, victim: number, seed: number): Promise<Kill> {
  const configuration = await cluster.whole();
  const { primary, backup, none } = rowsOf(victim, configuration, ROWS);
  const withBackup = Math.round((IN_FLIGHT * backup.length) / (backup.length + none.length));
  const loads = [
    new Load(cluster, backup, withBackup, seed),
    new Load(cluster, none, IN_FLIGHT - withBackup, seed + 1),
  ];
  await sleep(SETTLE_MS);
  const before = await Promise.all(loads.map((load) => load.rate(BEFORE_MS)));
  const probed = [...primary.values()].filter(({ length }) => length > 1).slice(0, PROBED);
  const startMs = performance.now();
  void cluster.nodes[victim].kill();
  const times: number[] = [];
  const probes = Promise.all(
    probed.map(async ([from, to]) => {
      await transfer(cluster, from, to);
      times.push(performance.now() - startMs);
    }),
  );
  const removed = cluster.without(victim).then(() => performance.now() - startMs);
  const during = await Promise.all(loads.map((load) => load.rate(probes)));
  await Promise.all(loads.map((load) => load.stop()));
  await removed;
  const restartMs = performance.now();
  cluster.nodes[victim].start();
  await cluster.whole();
  return {
    wasManager: configuration.manager === victim,
    removedMs: await removed,
    firstMs: Math.min(...times),
    lastMs: Math.max(...times),
    others: (during[0] + during[1]) / (before[0] + before[1]),
    withBackup: during[0] / before[0],
    without: during[1] / before[1],
    wholeMs: performance.now() - restartMs,
  };
}

function figuresOf(all: readonly Kill[], wrong: number): Figure[] {
  return [
    measuredOver(
      NAMES.gap,
      BARS.gap,
      all.map(({ lastMs }) => lastMs),
      "ms",
    ),
    measuredOver(
      NAMES.others,
      BARS.others,
      all.map(({ others }) => others),
      "times",
    ),
    counted(NAMES.lost, BARS.lost, wrong, "rows"),
  ];
}

function notesOf(all: readonly Kill[], { etcdVersion }: BenchCluster): string[] {
  const median = (values: readonly number[]): string =>
    values.length === 0 ? "-" : summarize(values).median.toFixed(0);
  const ratio = (values: readonly number[]): string => summarize(values).median.toFixed(2);
  const managers = all.filter(({ wasManager }) => wasManager);
  const others = all.filter(({ wasManager }) => !wasManager);
  return [
    `kills: ${all.length} of 4 nodes with 3 copies and ${PARTITIONS} partitions, lease ${DEFAULT_LEASE_MS} ms, etcd ${etcdVersion}, ${IN_FLIGHT} transfers under ` +
      `way; the last of ${PROBED} partitions counts; etcd had the next configuration after ${median(all.map(({ removedMs }) => removedMs))} ms, the first commit took ` +
      `${median(all.map(({ firstMs }) => firstMs))} ms; ` +
      `${managers.length} kills of the manager ${median(managers.map(({ lastMs }) => lastMs))} ms, ${others.length} of ` +
      `others ${median(others.map(({ lastMs }) => lastMs))} ms`,
    `kills: of the other partitions, those with a backup at the node ${ratio(all.map((kill) => kill.withBackup))}, ` +
      `those without a copy there ${ratio(all.map((kill) => kill.without))}; all copies were back ` +
      `${median(all.map(({ wholeMs }) => wholeMs))} ms after the restart`,
    `kills: each, in ms: ${all.map(({ lastMs, wasManager }) => `${lastMs.toFixed(0)}${wasManager ? " (manager)" : ""}`).join(", ")}; others, ` +
      `in times: ${all.map((kill) => kill.others.toFixed(2)).join(", ")}`,
  ];
}
