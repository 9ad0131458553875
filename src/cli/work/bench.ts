/**
 * `situ bench`: a first impression of this machine. Each operation runs for a while in one thread,
 * after a warm-up that lets V8 compile it; what is measured is the time of batches, so that
 * reading the clock costs nothing, and the median of the rounds, so that a neighbour's burst does
 * not count.
 */

import { cpus } from "node:os";
import type { Database } from "../../database/database.ts";
import { open } from "../../database/open.ts";
import { nowMs, turn } from "../../runtime/clock.ts";
import { Random } from "../../runtime/random.ts";
import { shownCount, shownSize } from "../../runtime/units.ts";
import { i64, str, u32 } from "../../tables/fields.ts";
import { table } from "../../tables/table.ts";
import { EXIT_OK } from "../failures.ts";
import type { Screen } from "../screen.ts";
import { renderTable } from "../text-table.ts";
import type { Context, Run } from "./context.ts";
import { withTemporaryFolder } from "./temporary.ts";

const Account = table(
  "account",
  { id: u32(), owner: str(24), balance: i64() },
  { key: "id", ordered: true },
);

const ROUNDS = 5;
/** Between two looks at the clock: a few hundred microseconds of work. */
const BATCH = 256;
const SCAN_ROWS = 100;
const LOAD_ROWS = 500;
/** Memory for a row with its place in the tree, generously. */
const BYTES_PER_ROW = 256;
const LEAST_MEMORY_BYTES = 64 * 2 ** 20;

interface Operation {
  readonly name: string;
  readonly what: string;
  /** Whether it waits for the disk in "sync": then a batch is one. */
  readonly writes: boolean;
  run(): void;
}

interface Measured {
  readonly name: string;
  readonly what: string;
  readonly perSecond: number;
  readonly microseconds: number;
}

export const runBench: Run<"bench"> = async (values, context) => {
  const { rows, durability } = values;
  const { screen } = context;
  return withTemporaryFolder("bench", values.path, async (path) => {
    const memoryBytes = LEAST_MEMORY_BYTES + rows * BYTES_PER_ROW;
    await using db = await open({ path, tables: [Account], memoryBytes, durability });
    const loadMs = await load(db, rows, context.signal);
    const results: Measured[] = [];
    for (const operation of operationsOf(db, rows)) {
      results.push(await measure(operation, values, context));
    }
    tell(screen, values, results, loadMs);
    return EXIT_OK;
  });
};

async function load(db: Database, rows: number, signal: AbortSignal): Promise<number> {
  const startMs = nowMs();
  for (let first = 0; first < rows; first += LOAD_ROWS) {
    signal.throwIfAborted();
    db.transactSync((tx) => {
      for (let id = first; id < Math.min(first + LOAD_ROWS, rows); id++) {
        tx.insert(Account, { id, owner: `owner-${id}`, balance: 1_000n });
      }
    });
    await turn();
  }
  return nowMs() - startMs;
}

function operationsOf(db: Database, rows: number): readonly Operation[] {
  const random = new Random();
  return [
    {
      name: "get",
      what: "a row by its key",
      writes: false,
      run: () => {
        db.get(Account, random.below(rows));
      },
    },
    {
      name: "put",
      what: "a transaction that replaces a row",
      writes: true,
      run: () => {
        const id = random.below(rows);
        db.transactSync((tx) => tx.put(Account, { id, owner: "somebody", balance: 1_000n }));
      },
    },
    {
      name: "transfer",
      what: "a transaction that reads and changes two rows",
      writes: true,
      run: () => {
        const from = random.below(rows);
        const to = (from + 1 + random.below(rows - 1)) % rows;
        db.transactSync((tx) => {
          const source = tx.get(Account, from)!;
          const target = tx.get(Account, to)!;
          tx.update(Account, from, { balance: source.balance - 1n });
          tx.update(Account, to, { balance: target.balance + 1n });
        });
      },
    },
    {
      name: "scan",
      what: `${SCAN_ROWS} rows in the order of their keys`,
      writes: false,
      run: () => {
        const gte = random.below(Math.max(1, rows - SCAN_ROWS));
        db.scan(Account, { gte, limit: SCAN_ROWS }).toArray();
      },
    },
  ];
}

async function measure(
  operation: Operation,
  { seconds, durability }: { readonly seconds: number; readonly durability: string },
  { signal }: Context,
): Promise<Measured> {
  const batch = operation.writes && durability === "sync" ? 1 : BATCH;
  const roundMs = (seconds * 1e3) / ROUNDS;
  await round(operation, roundMs, batch, signal);
  const rates: number[] = [];
  for (let i = 0; i < ROUNDS; i++) rates.push(await round(operation, roundMs, batch, signal));
  const perSecond = rates.sort((a, b) => a - b)[ROUNDS >> 1];
  const { name, what } = operation;
  return { name, what, perSecond: Math.round(perSecond), microseconds: round3(1e6 / perSecond) };
}

function round3(value: number): number {
  return Number(value.toFixed(3));
}

/** Operations per second. */
async function round(
  { run }: Operation,
  ms: number,
  batch: number,
  signal: AbortSignal,
): Promise<number> {
  let done = 0;
  let spentMs = 0;
  while (spentMs < ms) {
    const startMs = nowMs();
    // A few milliseconds of work, then a turn of the event loop, whose time does not count.
    do {
      for (let i = 0; i < batch; i++) run();
      done += batch;
    } while (nowMs() - startMs < 5);
    spentMs += nowMs() - startMs;
    await turn();
    signal.throwIfAborted();
  }
  return (done / spentMs) * 1e3;
}

function tell(
  screen: Screen,
  { rows, seconds, durability }: { rows: number; seconds: number; durability: string },
  results: readonly Measured[],
  loadMs: number,
): void {
  const [{ model } = { model: "unknown" }] = cpus();
  const machine = { cpu: model.trim(), cpus: cpus().length, node: process.version };
  screen.json({ rows, seconds, durability, loadMs: Math.round(loadMs), machine, results });
  screen.line(
    `${shownCount(rows)} rows, durability ${durability}, one thread, ${machine.cpu}, ` +
      `Node ${machine.node}`,
  );
  const heap = shownSize(process.memoryUsage().rss);
  screen.line(screen.dim(`loaded in ${(loadMs / 1e3).toFixed(1)} s; ${heap} resident`));
  screen.line();
  const columns = [
    { head: "operation" },
    { head: "per second", isRight: true },
    { head: "µs each", isRight: true },
    { head: "" },
  ];
  const cells = results.map(({ name, what, perSecond, microseconds }) => [
    name,
    shownCount(perSecond),
    microseconds.toFixed(microseconds < 10 ? 2 : 0),
    what,
  ]);
  for (const line of renderTable(columns, cells, screen.columns, screen.dim)) screen.line(line);
  screen.line();
  screen.line(screen.dim("In the repository, `npm run bench` compares Situ with other stores."));
}
