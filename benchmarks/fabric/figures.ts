// The bars of the fabric bench and how its measurements become figures.
import type { LabResult } from "../../simulation/lab/fasst-against-farm.ts";
import {
  counted,
  type Figure,
  measured,
  missingFigure,
  timesFaster,
  timesMore,
} from "../harness/figures.ts";
import { formatRate } from "../harness/report.ts";
import { type Timing, timingOf } from "../harness/rounds.ts";
import { ratiosPerRound, summarize } from "../harness/statistics.ts";
import type { MessagesMeasured } from "./messages.ts";
import { type EtcdSize, etcdSizes, type Peers, transferName } from "./peers.ts";
import type { CountedRow } from "./round-trips-table.ts";

const bars = {
  "messages-vs-bare-echo": { atLeast: 0.25 },
  "reads-vs-redis": { atLeast: 1 },
  "transactions-vs-etcd": { atLeast: 5 },
} as const;
/** Of the simulated ratio and the paper's, the larger divided by the smaller. */
const labBar = { atMost: 1.5 };

/** What Situ does, as the timings have it. */
export const names = {
  get: "situ get",
  getByVerb: "situ get, one-sided",
  getInTransaction: "situ transact with one get",
  redisGet: "redis get",
  transfer: "situ transfer",
  transferByVerb: "situ transfer, one-sided",
  call: "situ transfer by procedure",
  callByVerb: "situ transfer by procedure, one-sided",
} as const;

export interface FabricMeasured {
  readonly messages: MessagesMeasured;
  readonly timings: readonly Timing[];
  readonly roundTrips: readonly CountedRow[];
  readonly lab: LabResult;
}

export function fabricFigures(all: FabricMeasured, peers: Peers): Figure[] {
  const { messages, timings, roundTrips, lab } = all;
  return [
    messagesFigure(messages),
    readsFigure(timings, peers),
    transactionsFigure(timings, peers),
    ...roundTrips.map(({ protocol, mix, paper, node }) =>
      counted(
        `round-trips ${protocol} ${mix}`,
        { atMost: paper.roundTrips },
        node.roundTrips,
        "round trips",
      ),
    ),
    ...labFigures(lab),
  ];
}

function messagesFigure({ situ, bare }: MessagesMeasured): Figure {
  const name = "messages-vs-bare-echo";
  const base = { name: "bare echo", values: bare };
  return timesMore(name, bars[name], { name: "tcp", values: situ }, base);
}

function readsFigure(timings: readonly Timing[], { redis }: Peers): Figure {
  const name = "reads-vs-redis";
  if (!redis.available) return missingFigure(name, bars[name], redis.missing);
  return timesFaster(
    name,
    bars[name],
    measured(timings, names.get),
    measured(timings, names.redisGet),
  );
}

/**
 * The bar counts against three members, which keep three copies as Situ's cluster does. If those could
 * not be had, against one member, which keeps one.
 */
export function etcdForBar({ etcd }: Peers): EtcdSize {
  return etcd[3].available ? 3 : 1;
}

function transactionsFigure(timings: readonly Timing[], peers: Peers): Figure {
  const name = "transactions-vs-etcd";
  const size = etcdForBar(peers);
  const etcd = peers.etcd[size];
  if (!etcd.available) return missingFigure(name, bars[name], etcd.missing);
  return timesFaster(
    name,
    bars[name],
    measured(timings, names.transfer),
    measured(timings, transferName(size)),
  );
}

function labFigures({ rows }: LabResult): Figure[] {
  return rows.flatMap(({ workload, ratio, paper, factor }) => {
    if (factor === undefined || paper.ratio === undefined) return [];
    // The wrong direction is no match, however near it is.
    const isSameDirection = ratio > 1 === paper.ratio > 1;
    const value = isSameDirection ? factor : Number.POSITIVE_INFINITY;
    return [counted(`lab ${workload}: FaSST vs FaRM`, labBar, value, "times off the paper's")];
  });
}

/** What was measured beside the bars. */
export function notesOf({ messages, timings }: FabricMeasured, peers: Peers): string[] {
  const rate = (name: string): string =>
    formatRate(1e9 / summarize(timingOf(timings, name)).median);
  const notes = [
    `messages of 32 bytes, 64 in flight: tcp ${formatRate(summarize(messages.situ).median)}, ` +
      `with a secret ${formatRate(summarize(messages.authenticated).median)}, ` +
      `bare echo ${formatRate(summarize(messages.bare).median)}`,
  ];
  const against = (peer: string, ways: readonly string[]): void => {
    const ratios = ways.map((way) => {
      const each = ratiosPerRound(timingOf(timings, peer), timingOf(timings, way));
      const { median, min, max } = summarize(each);
      return `${way} ${median.toFixed(2)} x (${min.toFixed(2)} .. ${max.toFixed(2)})`;
    });
    notes.push(`against ${peer} (${rate(peer)}): ${ratios.join(", ")}`);
  };
  if (peers.redis.available) {
    against(names.redisGet, [names.get, names.getByVerb, names.getInTransaction]);
  }
  for (const size of etcdSizes) {
    if (!peers.etcd[size].available) continue;
    const ways = [names.transfer, names.transferByVerb, names.call, names.callByVerb];
    against(transferName(size), ways);
  }
  const size = etcdForBar(peers);
  if (peers.etcd[size].available) {
    notes.push(
      size === 3
        ? "the bar counts against etcd of three members, which keeps three copies, as Situ does here"
        : "the bar counts against one member of etcd: three did not start",
    );
  }
  return notes;
}
