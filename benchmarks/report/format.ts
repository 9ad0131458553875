// Numbers and names as people read them, the same in all three pages.
import type { Durability, EngineName } from "../engines/engine.ts";
import type { Summary } from "../harness/statistics.ts";
import type { Cell, SuiteResult } from "./result.ts";

/** Three digits that count: "1.15 M", "93.2 k", "820". */
export function formatCount(value: number): string {
  if (value >= 999_500) return `${threeDigits(value / 1e6)} M`;
  if (value >= 999.5) return `${threeDigits(value / 1e3)} k`;
  return threeDigits(value);
}

export function formatRate(perSecond: number): string {
  return `${formatCount(perSecond)}/s`;
}

export function formatNanoseconds(nanoseconds: number): string {
  if (nanoseconds < 999.5) return `${threeDigits(nanoseconds)} ns`;
  if (nanoseconds < 999_500) return `${threeDigits(nanoseconds / 1e3)} µs`;
  if (nanoseconds < 999_500_000) return `${threeDigits(nanoseconds / 1e6)} ms`;
  return `${threeDigits(nanoseconds / 1e9)} s`;
}

export function formatTimes(ratio: number): string {
  return `${threeDigits(ratio)}×`;
}

export function formatTimesRange({ min, max }: { min: number; max: number }): string {
  return `${threeDigits(min)}–${threeDigits(max)}×`;
}

export function formatRange({ min, max }: Summary): string {
  return `${formatCount(min)}–${formatCount(max)}`;
}

/** A part of one: "0.2 %". */
export function formatPart(part: number): string {
  const percent = part * 100;
  if (percent > 0 && percent < 0.01) return "< 0.01 %";
  return `${trimZeros(percent.toFixed(percent < 1 ? 2 : 1))} %`;
}

/** With its sign: what changed. */
export function formatChange(percent: number): string {
  const text = Math.abs(percent).toFixed(1);
  if (text === "0.0") return "0.0 %";
  return `${percent < 0 ? "−" : "+"}${text} %`;
}

export function formatSeconds(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 90) return `${whole} s`;
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** "2026-11-15 15:04 UTC" of an ISO date; the text itself if it is none. */
export function formatDate(iso: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)/.exec(iso);
  return match === null ? iso : `${match[1]} ${match[2]} UTC`;
}

function threeDigits(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "–";
  if (value >= 99.95) return value.toFixed(0);
  if (value >= 9.995) return value.toFixed(1);
  return value.toFixed(2);
}

/** "4.00 ms" says no more than "4 ms", where the number was chosen and not measured. */
export function trimZeros(text: string): string {
  return text.replace(/(\.\d*?)0+(?!\d)/, "$1").replace(/\.(?!\d)/, "");
}

const durabilityTitles: Readonly<Record<Durability, string>> = {
  none: "in memory",
  lazy: "lazy",
  sync: "sync",
};

export function durabilityTitle(durability: Durability): string {
  return durabilityTitles[durability];
}

/** What the modes promise, as `engines/engine.ts` defines them. */
export const durabilityMeanings: readonly (readonly [Durability, string])[] = [
  ["none", "nothing needs to survive the machine; the processes still share the data"],
  [
    "lazy",
    "all but the last moments survives a power loss: 20 ms to a second, each engine's own idea of it",
  ],
  ["sync", "what was acknowledged is on disk"],
];

export function loadTitle({ load }: Pick<Cell, "load">): string {
  if (load.kind === "open") {
    return `open loop, ${trimZeros(formatRate(load.perSecond))} begun, come what may`;
  }
  return load.inFlight === undefined
    ? "closed loop, as many in flight as each engine is quickest with"
    : `closed loop, ${load.inFlight} in flight per process`;
}

export function processesTitle(processes: number): string {
  return processes === 1 ? "1 process" : `${processes} processes`;
}

export function conditionsTitle(cell: Cell): string {
  return [
    durabilityTitle(cell.durability),
    processesTitle(cell.processes),
    loadTitle(cell),
    `${cell.rounds} rounds of ${trimZeros(formatNanoseconds(cell.roundMs * 1e6))}`,
  ].join(" · ");
}

export function engineTitle(result: SuiteResult, engine: EngineName): string {
  return result.engines.find((known) => known.engine === engine)?.title ?? engine;
}

const workloadTitles: Readonly<Record<string, string>> = {
  tpcc: "TPC-C",
  "tpcc-new-order": "TPC-C New-Order",
  smallbank: "SmallBank",
  tatp: "TATP",
  retwis: "Retwis",
  linkbench: "LinkBench",
  tao: "TAO",
};

/** "ycsb-a" is YCSB-A, "objects-4-2" is O(4, 2); a workload that is not known here keeps its own name. */
export function workloadTitle(workload: string): string {
  const ycsb = /^ycsb-?([a-f])(.*)$/i.exec(workload);
  if (ycsb !== null) return `YCSB-${ycsb[1].toUpperCase()}${ycsb[2]}`;
  const objects = /^objects-(\d+)-(\d+)$/.exec(workload);
  if (objects !== null) return `FaSST's O(${objects[1]}, ${objects[2]})`;
  return workloadTitles[workload] ?? workload;
}
