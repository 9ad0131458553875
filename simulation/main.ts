/**
 * Runs a simulated cluster from a seed, checks it, and prints the hash of its trace as its last line:
 *
 *     npm run simulate -- --seed 42 --nodes 3 --workload append
 *     npm run simulate -- --protocol xenic [--seed S] [--seeds N] [--nodes N] [--transactions T] [--faults F] [--json]
  list-append on servers whose NICs commit, once for each table of places and techniques: 2 to ${MOST_NODES} servers (5),
  T transactions in all (200), faults: ${XENIC_FAULTS.join(", ")} (light); N seeds one after the other (1)

npm run simulate -- --life --seed 42 --seeds 100
 */

import { parseArgs } from "node:util";
import { PROTOCOLS } from "../src/protocols/places.ts";
import { FAULT_LEVELS } from "./cluster/fault-schedule.ts";
import {
  replayCommand,
  type SimulationOptions,
  type SimulationReport,
  simulate,
  WORKLOADS,
} from "./cluster/simulate.ts";
import { livingRun, replayLiving, simulateLiving } from "./living/simulate.ts";
import { replayXenic, runXenic, XENIC_FAULTS, XENIC_TABLES } from "./xenic/runs.ts";

const MOST_NODES = 16;
const MOST_CLIENTS = 256;
const MOST_TRANSACTIONS = 1_000_000;
const MOST_SEEDS = 1_000_000;
const PROTOCOL_NAMES = Object.keys(PROTOCOLS) as (keyof typeof PROTOCOLS)[];

const USAGE = `npm run simulate -- [--seed S] [--nodes N] [--workload W] [more]
  --seed S           all that is random follows from it (1)
  --nodes N          1 to ${MOST_NODES} (3)
  --workload W       ${WORKLOADS.join(", ")} (append)
  --clients C        workers, one in four of them a procedure at a node (8)
  --transactions T   of each worker (50)
  --faults F         ${FAULT_LEVELS.join(", ")} (light)
  --protocol P       ${PROTOCOL_NAMES.join(", ")} (rpc)
  --json             the report as JSON, before the hash

npm run simulate -- --protocol xenic [--seed S] [--seeds N] [--nodes N] [--transactions T] [--faults F] [--json]
  list-append on servers whose NICs commit, once for each table of places and techniques: 2 to ${MOST_NODES} servers (5),
  T transactions in all (200), faults: ${XENIC_FAULTS.join(", ")} (light); N seeds one after the other (1)

npm run simulate -- --life [--seed S] [--seeds N] [--tell]
  the whole life of a cluster: nodes that die, are removed, recovered, copied to and come back, with leases and
  a store of configurations. The seed decides all else; N of them one after the other (1).
  --tell prints what happens`;

class WrongArgument extends Error {}

function whole(text: string, name: string, least: number, most: number): number {
  const value = Number(text);
  if (/^-?\d+$/.test(text) && value >= least && value <= most) return value;
  throw new WrongArgument(`--${name} is a whole number from ${least} to ${most}, not "${text}"`);
}

function oneOf<T extends string>(text: string, name: string, all: readonly T[]): T {
  const found = all.find((each) => each === text);
  if (found !== undefined) return found;
  throw new WrongArgument(`--${name} is one of ${all.join(", ")}, not "${text}"`);
}

function isXenic(args: readonly string[]): boolean {
  const at = args.indexOf("--protocol");
  return args.includes("--protocol=xenic") || (at >= 0 && args[at + 1] === "xenic");
}

/** Of such a run: other options make no sense there. */
function parsed(args: string[]): { readonly values: Readonly<Record<string, string>> } {
  const string = { type: "string" } as const;
  try {
    const { values } = parseArgs({
      args,
      options: {
        protocol: string,
        seed: string,
        seeds: string,
        nodes: string,
        transactions: string,
        faults: string,
        json: { type: "boolean" },
      },
    });
    const texts = Object.entries(values).map(([name, value]) => [
      name,
      value === true ? "" : value,
    ]);
    return { values: Object.fromEntries(texts) };
  } catch (error) {
    throw new WrongArgument((error as Error).message);
  }
}

interface Wanted extends SimulationOptions {
  readonly isJson: boolean;
  readonly isLife: boolean;
  readonly isTold: boolean;
  readonly seeds: number;
}

function optionsOf(args: string[]): Wanted {
  const string = (standard: string) => ({ type: "string", default: standard }) as const;
  let values: Record<string, string | boolean | undefined>;
  try {
    ({ values } = parseArgs({
      args,
      options: {
        seed: string("1"),
        nodes: string("3"),
        workload: string("append"),
        clients: string("8"),
        transactions: string("50"),
        faults: string("light"),
        protocol: string("rpc"),
        json: { type: "boolean", default: false },
        life: { type: "boolean", default: false },
        tell: { type: "boolean", default: false },
        seeds: string("1"),
      },
    }));
  } catch (error) {
    throw new WrongArgument((error as Error).message);
  }
  const text = (name: string): string => values[name] as string;
  return {
    seed: whole(text("seed"), "seed", 0, 2 ** 32 - 1),
    nodes: whole(text("nodes"), "nodes", 1, MOST_NODES),
    workload: oneOf(text("workload"), "workload", WORKLOADS),
    clients: whole(text("clients"), "clients", 1, MOST_CLIENTS),
    transactions: whole(text("transactions"), "transactions", 1, MOST_TRANSACTIONS),
    faults: oneOf(text("faults"), "faults", FAULT_LEVELS),
    protocol: oneOf(text("protocol"), "protocol", PROTOCOL_NAMES),
    isJson: values.json === true,
    isLife: values.life === true,
    isTold: values.tell === true,
    seeds: whole(text("seeds"), "seeds", 1, MOST_SEEDS),
  };
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function summary(report: SimulationReport): string {
  const { options, counts, backups, workers, vanished, crashes, episodes, problems } = report;
  const { seed, nodes, workload, faults, protocol } = options;
  const lines = [
    `seed ${seed}: ${nodes} nodes with ${backups} backups of each row, ${workload}, ${protocol}, faults: ${faults}`,
    `  transactions   ${counts.committed} committed, ${counts.aborted} attempts aborted, ${counts.unknown} unknown`,
    `  workers        ${workers}, of which ${vanished} vanished`,
    `  faults         ${episodes} episodes, ${crashes} crashes of nodes, ${report.lost} requests of nodes lost`,
    `  messages       ${report.messages} served by nodes, ${report.roundTrips} round trips of coordinators`,
    `  virtual time   ${report.virtualMs.toFixed(3)} ms`,
  ];
  if (problems.length === 0) lines.push("  checks         all hold");
  else lines.push(`  WRONG          ${problems.length}:`, ...problems.map((each) => `    ${each}`));
  return lines.join("\n");
}

/** Whole lives, one after the other. */
async function liveThrough({ seed: first, seeds, isJson, isTold }: Wanted): Promise<number> {
  let failed = 0;
  let hash = "";
  for (let seed = first; seed < first + seeds; seed++) {
    try {
      const report = await simulateLiving(livingRun(seed), isTold ? print : undefined);
      const { counts, crashes, configurations, copied, virtualMs, problems, run } = report;
      hash = report.traceHash;
      print(
        isJson
          ? JSON.stringify(report)
          : `seed ${seed}: ${run.nodes} nodes, ${run.workload}, ${run.protocol}: ${counts.committed} committed, ` +
              `${counts.unknown} unknown, ${crashes} crashes, ${configurations} configurations, ${copied} rows ` +
              `copied, ${virtualMs.toFixed(0)} ms`,
      );
      if (problems.length === 0) continue;
      for (const problem of problems) print(`  WRONG ${problem}`);
    } catch (error) {
      print(`  WRONG ${(error as Error).stack}`);
    }
    failed++;
    process.stderr.write(`seed ${seed} failed; replay: ${replayLiving(seed)}\n`);
  }
  if (seeds > 1) print(`${seeds} lives, ${failed} of them wrong`);
  print(hash);
  return failed > 0 ? 1 : 0;
}

/** Each seed under each table. */
function runAllXenic(args: string[]): number {
  const { values } = parsed(args);
  const text = (name: string, standard: string): string => values[name] ?? standard;
  const first = whole(text("seed", "1"), "seed", 0, 2 ** 32 - 1);
  const seeds = whole(text("seeds", "1"), "seeds", 1, MOST_SEEDS);
  const nodes = whole(text("nodes", "5"), "nodes", 2, MOST_NODES);
  const most = MOST_TRANSACTIONS;
  const transactions = whole(text("transactions", "200"), "transactions", 1, most);
  const faults = oneOf(text("faults", "light"), "faults", XENIC_FAULTS);
  let failed = 0;
  let hash = "";
  for (let seed = first; seed < first + seeds; seed++) {
    for (const [name, switches] of Object.entries(XENIC_TABLES)) {
      const run = { seed, nodes, transactions, faults };
      const report = runXenic(run, { switches });
      const { committed, conflicts, unknown, recoveries, problems } = report;
      hash = report.traceHash;
      print(
        values.json === ""
          ? JSON.stringify({ ...run, table: name, ...report, anomalies: [...report.anomalies] })
          : `seed ${seed}: ${nodes} servers, ${name}, faults: ${faults}: ${committed} committed, ` +
              `${conflicts} conflicts, ${unknown} unknown, ${recoveries} recoveries`,
      );
      if (problems.length === 0) continue;
      failed++;
      for (const problem of problems) print(`  WRONG ${problem}`);
      process.stderr.write(`seed ${seed} failed; replay: ${replayXenic(run)}\n`);
    }
  }
  print(hash);
  return failed > 0 ? 1 : 0;
}

async function main(): Promise<number> {
  let options: Wanted;
  try {
    const args = process.argv.slice(2);
    if (isXenic(args)) return runAllXenic(args);
    options = optionsOf(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof WrongArgument)) throw error;
    process.stderr.write(`${error.message}\n\n${USAGE}\n`);
    return 2;
  }
  const { isJson, isLife, isTold, seeds, ...run } = options;
  if (isLife) return liveThrough(options);
  let report: SimulationReport;
  try {
    report = await simulate(run);
  } catch (error) {
    process.stderr.write(`${(error as Error).stack}\nreplay: ${replayCommand(run)}\n`);
    return 1;
  }
  print(isJson ? JSON.stringify(report) : summary(report));
  const isWrong = report.problems.length > 0;
  if (isWrong) process.stderr.write(`seed ${run.seed} failed; replay: ${replayCommand(run)}\n`);
  print(report.traceHash);
  return isWrong ? 1 : 0;
}

process.exitCode = await main();
