// What is read off a result: ratios, percentiles, and who of a cell is Situ.
import type { EngineName } from "../engines/engine.ts";
import { ratiosPerRound, type Summary, summarize } from "../harness/statistics.ts";
import type { Cell, Entry, Latency, SuiteResult } from "./result.ts";

/** Situ over several machines is Situ too: nobody to win or lose against. */
export function isPeer(engine: EngineName): boolean {
  return engine !== "situ" && engine !== "cluster";
}

export type MeasuredEntry = Entry & { readonly throughput: Summary };

export function isMeasured(entry: Entry): entry is MeasuredEntry {
  return entry.throughput !== undefined;
}

/** The one that peers are compared with; a cell without a store of one machine has the cluster. */
export function situOf(cell: Cell): MeasuredEntry | undefined {
  const entry =
    cell.entries.find(({ engine }) => engine === "situ") ??
    cell.entries.find(({ engine }) => engine === "cluster");
  return entry !== undefined && isMeasured(entry) ? entry : undefined;
}

export function peersOf(cell: Cell): MeasuredEntry[] {
  return cell.entries.filter(isMeasured).filter(({ engine }) => isPeer(engine));
}

/** Situ first, its cluster next, then the others, the quickest first; who was not measured last. */
export function inOrder(entries: readonly Entry[]): Entry[] {
  const rank = ({ engine }: Entry): number =>
    engine === "situ" ? 0 : engine === "cluster" ? 1 : 2;
  return [...entries].sort(
    (left, right) =>
      rank(left) - rank(right) ||
      (right.throughput?.median ?? -1) - (left.throughput?.median ?? -1),
  );
}

/**
 * How many times the throughput of `under` that of `over` is. Rounds of a cell are interleaved, so
 * the ratio is taken per round; without the rounds, the widest that the two spreads allow.
 */
export function throughputRatio(over: MeasuredEntry, under: MeasuredEntry): Summary {
  const overRounds = over.perSecond ?? [];
  const underRounds = under.perSecond ?? [];
  if (overRounds.length > 0 && overRounds.length === underRounds.length) {
    return summarize(ratiosPerRound(overRounds, underRounds));
  }
  return {
    median: over.throughput.median / under.throughput.median,
    min: over.throughput.min / under.throughput.max,
    max: over.throughput.max / under.throughput.min,
  };
}

/**
 * The smallest recorded value that at least `percent` of the transactions did not exceed. Undefined
 * where the recorded ones end before it.
 */
export function percentile(latency: Latency | undefined, percent: number): number | undefined {
  return latency?.percentiles.find((point) => point.percent >= percent)?.nanoseconds;
}

/** The peer with the highest throughput in a cell. */
export function bestPeerOf(cell: Cell): MeasuredEntry | undefined {
  return peersOf(cell).reduce<MeasuredEntry | undefined>(
    (best, peer) =>
      best === undefined || peer.throughput.median > best.throughput.median ? peer : best,
    undefined,
  );
}

/** The headline workloads, each against the best peer there, whichever peer its goal is against. */
export function againstBestPeers(result: SuiteResult): SuiteResult {
  const ofThroughput = result.bars.filter(({ measure }) => measure === undefined);
  const bars = ofThroughput.map((bar) => {
    const cell = result.cells.find(({ id }) => id === bar.cell);
    // Where a peer was not measured, the best of the others may not be the best.
    if (cell === undefined || bar.ratio === undefined) return bar;
    const [situ, best] = [situOf(cell), bestPeerOf(cell)];
    if (situ === undefined || best === undefined) return bar;
    const { median, min, max } = throughputRatio(situ, best);
    return { ...bar, ratio: median, spread: { min, max }, best: best.engine };
  });
  return { ...result, bars };
}

/** What did not hold, of all cells. */
export interface Problem {
  readonly cell: Cell;
  readonly engine: EngineName;
  readonly problem: string;
}

export function problemsOf(cells: readonly Cell[]): Problem[] {
  return cells.flatMap((cell) =>
    cell.entries.flatMap(({ engine, problems = [] }) =>
      problems.map((problem) => ({ cell, engine, problem })),
    ),
  );
}
