// What changed between two results: `npm run bench -- --compare A B`.
import type { EngineName } from "../engines/engine.ts";
import type { Summary } from "../harness/statistics.ts";
import { renderComparison } from "./compare-text.ts";
import { engineTitle, formatDate } from "./format.ts";
import { percentile } from "./measures.ts";
import { reason } from "./missing.ts";
import { readResult } from "./read.ts";
import type { Cell, Entry, SuiteResult } from "./result.ts";

export type Verdict = "faster" | "slower" | "same within spread";

export interface Change {
  readonly before: number;
  readonly after: number;
  /** Of `before`: 10 is a tenth more. */
  readonly percent: number;
}

export interface EntryChange {
  readonly engine: EngineName;
  readonly title: string;
  readonly throughput: Change & { readonly verdict: Verdict };
  /** In nanoseconds; undefined where one of the two has none. It has no spread to judge it by. */
  readonly p99?: Change;
}

export interface CellChange {
  readonly id: string;
  readonly title: string;
  readonly entries: readonly EntryChange[];
  /** Engines that only one of the two measured, as sentences. */
  readonly unpaired: readonly string[];
}

export interface BarChange {
  readonly title: string;
  readonly atLeast: number;
  readonly before?: number;
  readonly after?: number;
}

export interface Comparison {
  readonly before: string;
  readonly after: string;
  /** What else differs than the numbers: a change may come from there. */
  readonly differences: readonly string[];
  readonly cells: readonly CellChange[];
  readonly bars: readonly BarChange[];
  readonly onlyBefore: readonly string[];
  readonly onlyAfter: readonly string[];
}

/** Text for the terminal. */
export async function compareResults(pathA: string, pathB: string): Promise<string> {
  const [before, after] = await Promise.all([readResult(pathA), readResult(pathB)]);
  return renderComparison(compareData(before, after));
}

export function compareData(before: SuiteResult, after: SuiteResult): Comparison {
  const cellOf = (result: SuiteResult, id: string): Cell | undefined =>
    result.cells.find((cell) => cell.id === id);
  return {
    before: nameOf(before),
    after: nameOf(after),
    differences: differencesOf(before, after),
    cells: before.cells.flatMap((cell) => {
      const later = cellOf(after, cell.id);
      return later === undefined ? [] : [cellChange(after, cell, later)];
    }),
    bars: barChanges(before, after),
    onlyBefore: before.cells.filter(({ id }) => !cellOf(after, id)).map(({ title }) => title),
    onlyAfter: after.cells.filter(({ id }) => !cellOf(before, id)).map(({ title }) => title),
  };
}

function nameOf({ date, commit, quick }: SuiteResult): string {
  return `${formatDate(date)}, commit ${commit || "unknown"}${quick ? ", quick" : ""}`;
}

function cellChange(result: SuiteResult, before: Cell, after: Cell): CellChange {
  const entries: EntryChange[] = [];
  const unpaired: string[] = [];
  const engines = new Set([...before.entries, ...after.entries].map(({ engine }) => engine));
  for (const engine of engines) {
    const earlier = before.entries.find((entry) => entry.engine === engine);
    const later = after.entries.find((entry) => entry.engine === engine);
    const title = engineTitle(result, engine);
    if (earlier?.throughput !== undefined && later?.throughput !== undefined) {
      const p99 = changeOf(percentile(earlier.latency, 99), percentile(later.latency, 99));
      entries.push({
        engine,
        title,
        throughput: {
          ...changeOf(earlier.throughput.median, later.throughput.median)!,
          verdict: judge(earlier.throughput, later.throughput),
        },
        ...(p99 && { p99 }),
      });
    } else if (earlier?.throughput !== undefined) {
      unpaired.push(`${title}: only before; now ${whyNot(later)}`);
    } else if (later?.throughput !== undefined) {
      unpaired.push(`${title}: only after; before ${whyNot(earlier)}`);
    } else {
      unpaired.push(`${title}: in neither; now ${whyNot(later)}`);
    }
  }
  return { id: before.id, title: after.title, entries, unpaired };
}

function whyNot(entry: Entry | undefined): string {
  return entry === undefined ? "not part of the run" : `missing: ${reason(entry.missing)}`;
}

function changeOf(before: number, after: number): Change;
function changeOf(before: number | undefined, after: number | undefined): Change | undefined;
function changeOf(before: number | undefined, after: number | undefined): Change | undefined {
  if (before === undefined || after === undefined) return undefined;
  return { before, after, percent: before === 0 ? 0 : (100 * (after - before)) / before };
}

/** Only what lies beyond everything that the other run has seen counts as a change. */
export function judge(before: Summary, after: Summary): Verdict {
  if (after.min > before.max) return "faster";
  if (after.max < before.min) return "slower";
  return "same within spread";
}

function barChanges(before: SuiteResult, after: SuiteResult): BarChange[] {
  return after.bars.map((bar) => {
    const earlier = before.bars.find(({ cell, title }) => cell === bar.cell && title === bar.title);
    return {
      title: bar.title,
      atLeast: bar.atLeast,
      ...(earlier?.ratio !== undefined && { before: earlier.ratio }),
      ...(bar.ratio !== undefined && { after: bar.ratio }),
    };
  });
}

function differencesOf(before: SuiteResult, after: SuiteResult): string[] {
  const run = [
    difference("commit", before.commit || "unknown", after.commit || "unknown"),
    difference("machine", machineOf(before), machineOf(after)),
    difference("kind of run", kindOf(before), kindOf(after)),
    difference("seed", String(before.seed), String(after.seed)),
    ...after.engines.map(({ engine, title, version }) => {
      const earlier = before.engines.find((known) => known.engine === engine);
      return difference(title, earlier?.version ?? "missing", version ?? "missing");
    }),
  ];
  const cells = after.cells.flatMap((cell) => {
    const earlier = before.cells.find(({ id }) => id === cell.id);
    if (earlier === undefined) return [];
    return [
      difference("scale", earlier.scale, cell.scale),
      difference("load", loadOf(earlier), loadOf(cell)),
      difference("rounds", roundsOf(earlier), roundsOf(cell)),
      ...cell.entries.map(({ engine, settings }) => {
        const old = earlier.entries.find((entry) => entry.engine === engine)?.settings;
        if (old === undefined || settings === undefined) return undefined;
        return difference(`settings of ${engineTitle(after, engine)}`, old, settings);
      }),
    ].map((text) => text && `${cell.title}: ${text}`);
  });
  return [...run, ...cells].filter((text) => text !== undefined);
}

function difference(what: string, before: string, after: string): string | undefined {
  return before === after ? undefined : `${what}: ${before} → ${after}`;
}

/** The load of the machine differs every time, and says little. */
function machineOf({ machine }: SuiteResult): string {
  return machine.join("; ").replace(/, load before the start [\d.]+/, "");
}

function kindOf({ quick }: SuiteResult): string {
  return quick ? "quick" : "full";
}

function loadOf({ load }: Cell): string {
  return load.kind === "open" ? `open, ${load.perSecond}/s` : `closed, ${load.inFlight} in flight`;
}

function roundsOf({ rounds, roundMs }: Cell): string {
  return `${rounds} of ${roundMs} ms`;
}
