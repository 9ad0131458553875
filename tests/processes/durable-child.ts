/**
 * One process of a durable storm. It writes each transaction to a log of its own before it runs it, and the
 * outcome as soon as that has returned: what the log says is acknowledged. The file's content
 * outlives the process, which may be told to kill itself at its n-th atomic step.
 */

import { openSync, writeSync } from "node:fs";
import { SituError } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import {
  dieAtStep,
  isStopped,
  listenForStop,
  nowNs,
  orderOf,
  turn,
} from "../helpers/process-child.ts";
import type { Life } from "../helpers/process-storm.ts";
import {
  ACCOUNTS,
  type DurableLine,
  Generation,
  LISTS_PER_GENERATION,
  LONG_LIST,
  openDurable,
  PER_LIFE,
  PER_TRANSACTION,
  type Plan,
  playPlan,
  playPlanAsync,
} from "./durable-store.ts";

export interface DurableOrder extends Life {
  readonly path: string;
  readonly log: string;
  /** Of 100 transactions, so many are in sync. */
  readonly syncPercent: number;
  /** For checkpoints that are taken by themselves. */
  readonly checkpointBytes: number;
  /** Asks for checkpoints, too. */
  readonly takesCheckpoints: boolean;
}

const IN_FLIGHT = 8;
const BATCH_MS = 4;

const order = orderOf<DurableOrder>();
const random = new Random(order.seed);
const log = openSync(order.log, "a");
let numbers = 0;

dieAtStep(order.dieAtStep);
listenForStop();
const db = await openDurable(order.path, { checkpointBytes: order.checkpointBytes });

function write(line: DurableLine): void {
  writeSync(log, `${JSON.stringify(line)}\n`);
}

function newPlan(): Plan {
  const number = order.life * PER_LIFE + ++numbers;
  const isSync = random.below(100) < order.syncPercent;
  const first = (db.get(Generation, 0)?.current ?? 0) * LISTS_PER_GENERATION;
  const readsOnly = random.below(5) === 0;
  let appended = 0;
  const operations = Array.from({ length: 1 + random.below(3) }, (): [number, number] => {
    const key = first + random.below(LISTS_PER_GENERATION);
    const reads = readsOnly || random.below(3) === 0;
    return [key, reads ? 0 : PER_TRANSACTION * number + ++appended];
  });
  if (readsOnly) return { number, isSync, operations };
  const from = random.below(ACCOUNTS);
  const to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
  return { number, isSync, operations, transfer: { from, to, amount: random.below(9) } };
}

function options(plan: Plan): { durability: "sync" | "lazy" } {
  return { durability: plan.isSync ? "sync" : "lazy" };
}

/** Writes down what became of a plan. An error that is not Situ's ends the process. */
function end(plan: Plan, lists: readonly number[][], error?: unknown): void {
  const { number } = plan;
  if (error !== undefined && !(error instanceof SituError)) throw error;
  if (error === undefined) write({ at: nowNs(), number, lists });
  else write({ at: nowNs(), number, failed: error.code });
  const isLong = lists.some((list) => list.length > LONG_LIST);
  if (isLong) startGeneration(Math.floor(plan.operations[0][0] / LISTS_PER_GENERATION) + 1);
}

function startGeneration(generation: number): void {
  try {
    db.transactSync((tx) => {
      const row = tx.get(Generation, 0)!;
      if (row.current < generation) tx.put(Generation, { id: 0, current: generation });
    });
  } catch (error) {
    if (!(error instanceof SituError)) throw error;
  }
}

function runOne(): void {
  const plan = newPlan();
  write({ at: nowNs(), plan });
  let lists: number[][] = [];
  try {
    lists = db.transactSync((tx) => playPlan(tx, plan), options(plan));
  } catch (error) {
    end(plan, [], error);
    return;
  }
  end(plan, lists);
}

/** Several at once, which share what gets them to disk. */
async function runSome(): Promise<void> {
  const plans = Array.from({ length: IN_FLIGHT }, newPlan);
  await Promise.all(
    plans.map(async (plan) => {
      write({ at: nowNs(), plan });
      try {
        const lists = await db.transact((tx) => playPlanAsync(tx, plan), options(plan));
        end(plan, lists);
      } catch (error) {
        end(plan, [], error);
      }
    }),
  );
}

process.stdout.write("ready\n");
while (!isStopped()) {
  if (random.below(3) === 0) await runSome();
  const until = performance.now() + BATCH_MS;
  while (performance.now() < until) runOne();
  if (order.takesCheckpoints && random.below(60) === 0) {
    // One who is killed meanwhile learns nothing; others go on.
    db.checkpoint().catch((error: unknown) => {
      if (!(error instanceof SituError)) throw error;
    });
  }
  await turn();
}
await db.close();
