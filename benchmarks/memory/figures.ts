// The bars of the memory bench and how its measurements become figures.
import { fragmentation } from "../../src/memory/size-classes.ts";
import {
  compared,
  counted,
  type Figure,
  measured,
  missingFigure,
  timesFaster,
  timesFasterThanAll,
  timesMore,
} from "../harness/figures.ts";
import type { Peer } from "../harness/peers.ts";
import { formatNanoseconds } from "../harness/report.ts";
import { type Timing, timingOf } from "../harness/rounds.ts";
import { ratiosPerRound, summarize } from "../harness/statistics.ts";
import { readsPerLookup } from "./hopscotch-reads.ts";
import type { Peers } from "./peers.ts";
import type { Scaling } from "./two-processes.ts";

const bars = {
  "get-vs-lmdb": { atLeast: 5 },
  "get-vs-redis": { atLeast: 100 },
  "transfer-vs-embedded": { atLeast: 8 },
  "transfer-vs-bare": { atMost: 2.5 },
  "transact-vs-sync": { atMost: 2 },
  "two-processes": { atLeast: 1.7 },
  "hopscotch-reads": { atMost: 1.05 },
  "fragmentation-average": { atMost: 1.8 },
  "fragmentation-worst": { atMost: 3.6 },
} as const;

/** The occupancy at which FaRM §3.6 gives its number of reads. */
const occupancy = 0.9;

export function speedFigures(timings: readonly Timing[], peers: Peers): Figure[] {
  const versus = (
    name: keyof typeof bars,
    situ: string,
    peer: Peer<unknown>,
    other: string,
  ): Figure =>
    peer.available
      ? timesFaster(name, bars[name], measured(timings, situ), measured(timings, other))
      : missingFigure(name, bars[name], peer.missing);
  return [
    versus("get-vs-lmdb", "situ get", peers.lmdb, "lmdb get"),
    versus("get-vs-redis", "situ get", peers.redis, "redis get"),
    timesFasterThanAll(
      "transfer-vs-embedded",
      bars["transfer-vs-embedded"],
      timings,
      "situ transfer",
      [
        { peer: peers.lmdb, name: "lmdb transfer" },
        { peer: peers.sqlite, name: "sqlite transfer" },
      ],
    ),
    longerThan(timings, "transfer-vs-bare", "situ transfer", "bare-transfer"),
    timesFaster(
      "transact-vs-sync",
      bars["transact-vs-sync"],
      measured(timings, "situ transactSync, cached"),
      measured(timings, "situ transact, cached"),
    ),
  ];
}

/** How many times as long Situ takes as a loop of our own. */
function longerThan(
  timings: readonly Timing[],
  name: keyof typeof bars,
  situ: string,
  base: string,
): Figure {
  const [own, other] = [measured(timings, situ), measured(timings, base)];
  return compared(name, bars[name], ratiosPerRound(own.values, other.values), own, other, "ns");
}

export function processFigure({ one, two }: Scaling): Figure {
  return timesMore(
    "two-processes",
    bars["two-processes"],
    { name: "two processes", values: two },
    { name: "one process", values: one },
  );
}

export async function countedFigures(): Promise<Figure[]> {
  const { averagePercent, worstPercent } = fragmentation();
  const figure = (name: keyof typeof bars, value: number, unit: string): Figure =>
    counted(name, bars[name], value, unit);
  return [
    figure("hopscotch-reads", await readsPerLookup(occupancy), "reads per lookup"),
    figure("fragmentation-average", averagePercent, "percent"),
    figure("fragmentation-worst", worstPercent, "percent"),
  ];
}

/** How far Situ is from loops that do the same loads and nothing else. */
export function bareNotes(timings: readonly Timing[], bareScaling: Scaling): string[] {
  const scaling = summarize(ratiosPerRound(bareScaling.two, bareScaling.one)).median;
  return [
    distance(timings, "situ get", "bare-read"),
    distance(timings, "situ get", "bare-read into an object"),
    distance(timings, "situ transfer", "bare-transfer"),
    `two processes running the bare loop, sharing nothing, do ${scaling.toFixed(2)} x one here`,
  ];
}

function distance(timings: readonly Timing[], name: string, bare: string): string {
  const limit = timingOf(timings, bare);
  const times = summarize(ratiosPerRound(timingOf(timings, name), limit)).median;
  const cost = formatNanoseconds(summarize(limit).median);
  return `${name} takes ${times.toFixed(1)} x the ${bare} loop (${cost})`;
}
