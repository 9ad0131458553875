/**
 * Runs a simulated cluster from a seed, checks it, and prints the hash of its trace as its last line:
 *
 *     npm run simulate -- --seed 42 --nodes 3 --workload append
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

const MOST_NODES = 16;
const MOST_CLIENTS = 256;
const MOST_TRANSACTIONS = 1_000_000;
const PROTOCOL_NAMES = Object.keys(PROTOCOLS) as (keyof typeof PROTOCOLS)[];

const USAGE = `npm run simulate -- [--seed S] [--nodes N] [--workload W] [more]
  --seed S           all that is random follows from it (1)
  --nodes N          1 to ${MOST_NODES} (3)
  --workload W       ${WORKLOADS.join(", ")} (append)
  --clients C        workers, one in four of them a procedure at a node (8)
  --transactions T   of each worker (50)
  --faults F         ${FAULT_LEVELS.join(", ")} (light)
  --protocol P       ${PROTOCOL_NAMES.join(", ")} (rpc)
  --json             the report as JSON, before the hash`;

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

function optionsOf(args: string[]): SimulationOptions & { isJson: boolean } {
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

async function main(): Promise<number> {
  let options: ReturnType<typeof optionsOf>;
  try {
    options = optionsOf(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof WrongArgument)) throw error;
    process.stderr.write(`${error.message}\n\n${USAGE}\n`);
    return 2;
  }
  const { isJson, ...run } = options;
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
