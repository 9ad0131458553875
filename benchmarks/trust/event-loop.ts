// How long `transact` holds the event loop: in a loop without a pause, and while another process is stopped
// in the middle of a commit. A turn is measured from one immediate to the next, and the figure is the longest
// of all, after a warm-up: garbage collection and the machine's own scheduler are in it. The longest turn of
// the median round is noted. Between the rounds, an event loop that does nothing is measured for as long: what
// its longest turn takes is the machine's doing.
import { join } from "node:path";
import { type Database, open, TimeoutError } from "../../src/index.ts";
import { counted } from "../harness/figures.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import { temporaryFolder } from "../harness/resources.ts";
import { summarize } from "../harness/statistics.ts";
import { EventLoopRows, type EventLoopTask, STOPPED_ROWS } from "./event-loop-store.ts";
import type { TrustContext, TrustMeasure, TrustResult } from "./measure.ts";

/** How often the other process is stopped, until it is in the middle of a commit. */
const STOP_ATTEMPTS = 500;

interface Turns {
  readonly longestMs: number;
  readonly timers: number;
  readonly transactions: number;
}

/** The longest turn of the event loop while `work` runs over and over for a while. */
async function turnsDuring(ms: number, work: () => Promise<unknown>): Promise<Turns> {
  let longestMs = 0;
  let timers = 0;
  let transactions = 0;
  let isOver = false;
  let lastMs = performance.now();
  const look = (): void => {
    const now = performance.now();
    longestMs = Math.max(longestMs, now - lastMs);
    lastMs = now;
    if (!isOver) setImmediate(look);
  };
  const timer = setInterval(() => timers++, 5);
  setImmediate(look);
  const endMs = performance.now() + ms;
  while (performance.now() < endMs) {
    await work();
    transactions++;
  }
  isOver = true;
  look();
  clearInterval(timer);
  return { longestMs, timers, transactions };
}

async function rounds(
  context: TrustContext,
  name: string,
  work: () => Promise<unknown>,
  empty: Turns[] = [],
): Promise<Turns[]> {
  const { options, progress } = context;
  const ms = 2 * options.roundMs;
  await turnsDuring(ms, work);
  const all: Turns[] = [];
  for (let round = 0; round < options.rounds; round++) {
    progress.show(`${name} ${round + 1}/${options.rounds}`);
    all.push(await turnsDuring(ms, work));
    empty.push(await turnsDuring(ms, () => new Promise((resolve) => setImmediate(resolve))));
  }
  return all;
}

function longestOf(all: readonly Turns[]): number {
  return Math.max(...all.map(({ longestMs }) => longestMs));
}

function noteOf(name: string, all: readonly Turns[]): string {
  const { median } = summarize(all.map(({ longestMs }) => longestMs));
  const timers = Math.min(...all.map((turns) => turns.timers));
  const transactions = all.reduce((sum, turns) => sum + turns.transactions, 0);
  return (
    `event-loop, ${name}: ${transactions} transactions in ${all.length} rounds; a timer of 5 ms fired ` +
    `at least ${timers} times in each; longest turn of the median round ${median.toFixed(1)} ms`
  );
}

async function increment(db: Database, id: number): Promise<void> {
  await db.transact(async (tx) => {
    const row = await tx.get(EventLoopRows, id);
    await tx.put(EventLoopRows, { id, value: (row?.value ?? 0n) + 1n });
  });
}

/** Stops the other process, and says whether that was in the middle of a commit. */
async function stopInCommit(db: Database, pid: number): Promise<boolean> {
  process.kill(pid, "SIGSTOP");
  const all = Array.from({ length: STOPPED_ROWS }, (_, id) => id);
  try {
    await db.transact((tx) => tx.getMany(EventLoopRows, all), { timeoutMs: 200 });
  } catch (error) {
    if (error instanceof TimeoutError && error.holder?.pid === pid) return true;
  }
  process.kill(pid, "SIGCONT");
  await new Promise((resolve) => setTimeout(resolve, 3));
  return false;
}

async function besideStopped(
  context: TrustContext,
  db: Database,
  task: EventLoopTask,
): Promise<Turns[]> {
  const script = new URL("./stopped-process.js", import.meta.url);
  const other = await MeasuringProcess.start<"commit", "committing">(script, task);
  try {
    await other.ask("commit");
    for (let attempt = 1; !(await stopInCommit(db, other.pid)); attempt++) {
      if (attempt === STOP_ATTEMPTS) throw new Error("the process was never stopped in a commit");
    }
    let id = 0;
    return await rounds(context, "event-loop, stopped peer", async () => {
      id = (id + 1) % STOPPED_ROWS;
      const isolation = id % 2 === 0 ? "snapshot" : "strict-serializable";
      const body = { isolation, timeoutMs: 100 } as const;
      await db
        .transact((tx) => tx.get(EventLoopRows, id), body)
        .catch((error: unknown) => {
          if (!(error instanceof TimeoutError)) throw error;
        });
    });
  } finally {
    other.kill();
  }
}

async function run(context: TrustContext): Promise<TrustResult> {
  const memoryDir = temporaryFolder(context.memoryFolder);
  const place = { path: join(memoryDir, "store"), memoryDir };
  const db = await open({ ...place, tables: [EventLoopRows], durability: "none" });
  try {
    db.transactSync((tx) => {
      for (let id = 0; id < 2 * STOPPED_ROWS; id++) tx.put(EventLoopRows, { id, value: 0n });
    });
    let id = 0;
    const empty: Turns[] = [];
    const alone = await rounds(
      context,
      "event-loop, alone",
      () => {
        id = (id + 1) % STOPPED_ROWS;
        return increment(db, STOPPED_ROWS + id);
      },
      empty,
    );
    const stopped = await besideStopped(context, db, place);
    return {
      figures: [
        counted(
          "longest turn of the event loop, await transact in a loop",
          { atMost: 10 },
          longestOf(alone),
          "ms",
        ),
        counted(
          "longest turn of the event loop, a peer stopped in a commit",
          { atMost: 20 },
          longestOf(stopped),
          "ms",
        ),
      ],
      notes: [
        noteOf("alone", alone),
        `event-loop, nothing to do: longest turn ${longestOf(empty).toFixed(1)} ms in as many rounds, ` +
          `between those of \`await transact\` in a loop; of each of these: ` +
          `${alone.map(({ longestMs }) => longestMs.toFixed(1)).join(", ")} ms`,
        noteOf("a peer stopped in a commit", stopped),
      ],
    };
  } finally {
    await db.close();
  }
}

export const eventLoop: TrustMeasure = { name: "event-loop", run };
