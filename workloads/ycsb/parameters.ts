/**
 * YCSB's core workloads A to F: Cooper et al., "Benchmarking Cloud Serving Systems with YCSB",
 * SoCC 2010, Table 2, with the parameters of the files workloads/workloada to workloadf of its
 * repository (github.com/brianfrankcooper/YCSB). What these leave open has CoreWorkload's defaults:
 * readallfields=true, writeallfields=false, insertorder=hashed, zeropadding=1.
 */

import type { Share } from "../workload.ts";

export type Letter = "a" | "b" | "c" | "d" | "e" | "f";
/** requestdistribution: which records are asked for. */
export type RequestDistribution = "zipfian" | "uniform" | "latest";

export const READ = 0;
export const UPDATE = 1;
export const INSERT = 2;
export const SCAN = 3;
export const READ_MODIFY_WRITE = 4;

const names = ["read", "update", "insert", "scan", "read-modify-write"];

/** maxscanlength=100 and scanlengthdistribution=uniform in workloade; minscanlength=1. */
export const MAX_SCAN_LENGTH = 100;

interface Core {
  /** The lines of its file that say what it does. */
  readonly lines: string;
  readonly distribution: RequestDistribution;
  /** Kinds of operations with their percents. */
  readonly operations: readonly (readonly [kind: number, percent: number])[];
}

export const coreWorkloads: Readonly<Record<Letter, Core>> = {
  a: {
    lines: "workloada: readproportion=0.5, updateproportion=0.5, requestdistribution=zipfian",
    distribution: "zipfian",
    operations: [
      [READ, 50],
      [UPDATE, 50],
    ],
  },
  b: {
    lines: "workloadb: readproportion=0.95, updateproportion=0.05, requestdistribution=zipfian",
    distribution: "zipfian",
    operations: [
      [READ, 95],
      [UPDATE, 5],
    ],
  },
  c: {
    lines: "workloadc: readproportion=1, requestdistribution=zipfian",
    distribution: "zipfian",
    operations: [[READ, 100]],
  },
  d: {
    lines: "workloadd: readproportion=0.95, insertproportion=0.05, requestdistribution=latest",
    distribution: "latest",
    operations: [
      [READ, 95],
      [INSERT, 5],
    ],
  },
  e: {
    lines:
      "workloade: scanproportion=0.95, insertproportion=0.05, requestdistribution=zipfian, " +
      "maxscanlength=100, scanlengthdistribution=uniform",
    distribution: "zipfian",
    operations: [
      [SCAN, 95],
      [INSERT, 5],
    ],
  },
  f: {
    lines:
      "workloadf: readproportion=0.5, readmodifywriteproportion=0.5, requestdistribution=zipfian",
    distribution: "zipfian",
    operations: [
      [READ, 50],
      [READ_MODIFY_WRITE, 50],
    ],
  },
};

export function mixOf(core: Core): readonly Share[] {
  return core.operations.map(([kind, percent]) => ({ name: names[kind], percent }));
}

export function insertPercentOf(core: Core): number {
  return core.operations.find(([kind]) => kind === INSERT)?.[1] ?? 0;
}
