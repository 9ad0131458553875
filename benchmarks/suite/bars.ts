// The claims: Situ against the best peer of a cell, as one ratio per round, since both sides of it
// met the same neighbours on the machine.
import { ratiosPerRound, summarize } from "../harness/statistics.ts";
import { percentile } from "../report/measures.ts";
import type { BarResult, Cell, Entry } from "../report/result.ts";
import { type BarPlan, local } from "./plan.ts";
import { enginesOf, type WorkloadName } from "./workloads.ts";

export function barResult(
  { cell: id, atLeast, against, measure }: BarPlan,
  cells: readonly Cell[],
): BarResult {
  const cell = cells.find((candidate) => candidate.id === id);
  const title = cell?.title ?? id;
  const base =
    measure === undefined
      ? { cell: id, title, atLeast }
      : { cell: id, title: `${title}, ${measure}`, atLeast, measure };
  if (cell === undefined) return { ...base, missing: "not part of this run" };
  const situ = cell.entries.find(({ engine }) => engine === "situ");
  if (situ?.perSecond === undefined)
    return { ...base, missing: situ?.missing ?? "Situ did not run" };
  const rivals: Entry[] = [];
  const able = enginesOf(cell.workload as WorkloadName);
  for (const peer of against === undefined ? local : [against]) {
    if (peer === "situ" || !able.includes(peer)) continue;
    const entry = cell.entries.find(({ engine }) => engine === peer);
    // One that was not measured may have been the best.
    if (entry?.perSecond === undefined) {
      return { ...base, missing: `${peer}: ${entry?.missing ?? "not part of this run"}` };
    }
    rivals.push(entry);
  }
  if (measure === "p99") return { ...base, ...shortest(situ, rivals, atLeast) };
  const best = rivals.reduce((left, right) => (median(right) > median(left) ? right : left));
  const { perSecond = [] } = best;
  const { median: ratio, min, max } = summarize(ratiosPerRound(situ.perSecond, perSecond));
  return { ...base, ratio, spread: { min, max }, met: ratio >= atLeast, best: best.engine };
}

/** Latencies are of all rounds together: there is no ratio per round. */
function shortest(situ: Entry, rivals: readonly Entry[], atLeast: number): Partial<BarResult> {
  const p99 = ({ latency }: Entry): number => percentile(latency, 99) ?? Number.POSITIVE_INFINITY;
  const best = rivals.reduce((left, right) => (p99(right) < p99(left) ? right : left));
  const ratio = p99(best) / p99(situ);
  if (!Number.isFinite(ratio) || ratio === 0) return { missing: "latencies were not recorded" };
  return { ratio, met: ratio >= atLeast, best: best.engine };
}

function median({ throughput }: Entry): number {
  return throughput?.median ?? 0;
}
