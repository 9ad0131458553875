/**
 * One process of the mixed storm. It writes each transaction on lists to its log before it runs it,
 * and the outcome after; what has no outcome when the process is gone is unknown. What a transaction
 * is drawn from: strict or snapshot isolation, a synchronous or an asynchronous body, a snapshot, a
 * plain get; keys, ranges and indexes; in sync or lazy. Beside them, rows of device tables are moved to pages, at once and
 * in the background, pages are compacted, and the device's threads change rows (mixed-counters.ts). The process may be told to
 * kill itself at its n-th atomic step, wherever that is: opening, recovering another, committing; then the device's threads
 * have a step at which they kill it, or only themselves, too.
 */

import { openSync, writeSync } from "node:fs";
import { localDatabase } from "../../src/database/local/local-database.ts";
import { SituError, type Transaction } from "../../src/index.ts";
import { sleepSync } from "../../src/runtime/clock.ts";
import { Random } from "../../src/runtime/random.ts";
import { CRASH_POINTS } from "../../src/tables/device/elements/messages.ts";
import {
  dieAtStep,
  isStopped,
  listenForStop,
  nowNs,
  orderOf,
  turn,
} from "../helpers/process-child.ts";
import type { Life } from "../helpers/process-storm.ts";
import { auditCounters, type CounterLine, CounterWork } from "./mixed-counters.ts";
import {
  ACCOUNTS,
  Account,
  deviceWorkOf,
  Generation,
  generationOf,
  IN_THREADS,
  KINDS,
  kindOf,
  LISTS_PER_GENERATION,
  type List,
  type Lists,
  LONG_LIST,
  type LogLine,
  listsIn,
  type MixedWay,
  MOST_VALUES,
  newValue,
  openMixed,
  type PlannedOperation,
  READ,
  rowOf,
  SCAN,
  TOKEN_IDS,
  TOKENS,
  TOTAL,
  valuesIn,
} from "./mixed-store.ts";

export interface MixedOrder extends Life {
  readonly path: string;
  readonly log: string;
  /** Of updates in the device. */
  readonly counterLog: string;
  /** Whether the store has a log: then some transactions wait for the disk. */
  readonly isDurable: boolean;
  /** A bug: reads of this kind of table are not validated. */
  readonly plantedKind?: number | undefined;
}

type Plan = Extract<LogLine, { planned: unknown }>;

const BATCH_MS = 4;
/** One in so many calls of the device is cut off, where the process is to die anyway. */
const DEATH_CHANCE = 6;
const IN_FLIGHT = 3;
const order = orderOf<MixedOrder>();
const random = new Random(order.seed);
const log = openSync(order.log, "a");
const counterLog = openSync(order.counterLog, "a");
let numbers = 0;
let appended = 0;

dieAtStep(order.dieAtStep);
listenForStop();
const db = await openMixed(order.path);
const counterWork = new CounterWork(db, random, (line: CounterLine) => {
  writeSync(counterLog, `${JSON.stringify(line)}\n`);
});

function write(line: LogLine): void {
  writeSync(log, `${JSON.stringify(line)}\n`);
}

/** What sync and async transactions and snapshots have in common; the latter return promises. */
interface Reading {
  get(lists: Lists, id: unknown, options?: unknown): unknown;
  scan(lists: Lists, options?: unknown): { toArray(): unknown };
  count(lists: Lists, options?: unknown): unknown;
}
interface Writing extends Reading {
  put(lists: Lists, row: List): unknown;
}

/** A body, for either kind: yields what an operation has returned, and gets what that comes to. */
type Steps<T> = Generator<unknown, T, unknown>;

function runSync<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (!step.done) step = steps.next(step.value);
  return step.value;
}

async function runAsync<T>(steps: Steps<T>): Promise<T> {
  let step = steps.next();
  while (!step.done) {
    const value = await step.value;
    if (random.below(4) === 0) await turn();
    step = steps.next(value);
  }
  return step.value;
}

/** A list would get too long for its row: nothing is done. */
class TooLong extends Error {}

/** What only a store that is wrong shows; believed once the transaction has committed. */
interface Seen {
  readonly lists: number[][];
  problem: string;
}

function* play(reader: Reading, { planned }: Plan): Steps<Seen> {
  const seen: Seen = { lists: [], problem: "" };
  for (const [key, value] of planned) {
    const lists = kindOf(key);
    if (value === SCAN) {
      const found = yield* scan(reader, lists, generationOf(key), seen);
      for (const id of listsIn(lists, generationOf(key))) {
        seen.lists.push(valuesIn(found.find((row) => row.id === id)));
      }
      continue;
    }
    const isPlanted = value === READ && KINDS[order.plantedKind ?? -1] === lists;
    const row = (isPlanted ? db.get(lists, key) : yield reader.get(lists, key)) as List | undefined;
    if (isPlanted) sleepSync(1);
    const values = valuesIn(row);
    if (value === READ) {
      seen.lists.push(values);
      yield* checkTag(reader, lists, row, seen);
    } else if (values.length >= MOST_VALUES) throw new TooLong();
    else yield (reader as Writing).put(lists, rowOf(key, [...values, value], row?.rewrites));
  }
  return seen;
}

/** The lists of a generation, by an index, by a range of keys, or out of all that there are. */
function* scan(reader: Reading, lists: Lists, generation: number, seen: Seen): Steps<List[]> {
  const gte = generation * LISTS_PER_GENERATION;
  const index = lists.indexes.some(({ name }) => name === "byGeneration");
  let options: object = {};
  if (index) options = { index: "byGeneration", eq: generation };
  else if (lists.ordered) options = { gte, lt: gte + LISTS_PER_GENERATION };
  const rows = (yield reader.scan(lists, options).toArray()) as List[];
  const counted = (yield reader.count(lists, options)) as number;
  if (counted !== rows.length) {
    seen.problem = `${lists.name}: ${rows.length} rows, counted as ${counted}`;
  }
  return rows.filter((row) => row.generation === generation);
}

/** The unique index leads to the same row. */
function* checkTag(reader: Reading, lists: Lists, row: List | undefined, seen: Seen): Steps<void> {
  const index = lists.indexes.find(({ unique }) => unique)?.name;
  if (row === undefined || index === undefined || order.plantedKind !== undefined) return;
  const found = (yield reader.get(lists, row.tag, { index })) as List | undefined;
  if (found?.id !== row.id || found.values.length !== row.values.length) {
    seen.problem = `${lists.name} ${row.id}: ${index} leads to ${JSON.stringify(found)}`;
  }
}

function draw(): Plan {
  const generation = db.get(Generation, 0)?.current ?? 0;
  const planted = KINDS[order.plantedKind ?? -1] as Lists | undefined;
  const anyKey = (): number => {
    // Where a bug is planted it is met often.
    if (planted !== undefined && random.below(2) === 0) {
      const ids = listsIn(planted, generation);
      return ids[random.below(ids.length)];
    }
    return generation * LISTS_PER_GENERATION + random.below(LISTS_PER_GENERATION);
  };
  const dice = random.below(20);
  const way: MixedWay =
    dice < 10 ? "strict" : dice < 15 ? "snapshot" : dice < 18 ? "frozen" : "get";
  const isAsync = (way === "strict" || way === "snapshot") && random.below(3) === 0;
  const onlyReads = way === "frozen" || way === "get" || random.below(5) === 0;
  const count = way === "get" ? 1 : 1 + random.below(4);
  const planned = Array.from({ length: count }, (): PlannedOperation => {
    const key = anyKey();
    if (!onlyReads && random.below(2) === 0) return [key, newValue(order.life, ++appended)];
    if (way === "get" || random.below(4) > 0) return [key, READ];
    // To walk through a whole hashed table meets every writer: a snapshot does not mind.
    const isWalk = !kindOf(key).ordered && kindOf(key).indexes.length === 0;
    return [key, isWalk && way === "strict" ? READ : SCAN];
  });
  return { number: ++numbers, at: nowNs(), way, isAsync, planned };
}

function options({ way }: Plan): object {
  const isolation = way === "snapshot" ? "snapshot" : "strict-serializable";
  if (!order.isDurable) return { isolation };
  return { isolation, durability: random.below(3) === 0 ? "sync" : "lazy" };
}

/** Writes down what became of a plan. An error that is not Situ's ends the process. */
function end({ number, planned }: Plan, seen: Seen, at = nowNs()): void {
  write({ number, at, lists: seen.lists });
  if (seen.problem !== "") throw new Error(seen.problem);
  if (seen.lists.some((list) => list.length > LONG_LIST)) startGeneration(planned[0][0]);
}

function fail({ number, planned }: Plan, error: unknown): void {
  if (error instanceof TooLong) startGeneration(planned[0][0]);
  else passUnlessCorrupt(error);
  const failed = error instanceof SituError ? error.code : "too long";
  write({ number, at: nowNs(), failed });
}

function runOne(plan: Plan): void {
  write(plan);
  try {
    if (plan.way === "frozen") {
      // What it reads is of the moment at which it was taken.
      const snapshot = db.snapshot();
      const taken = nowNs();
      try {
        end(plan, runSync(play(snapshot as unknown as Reading, plan)), taken);
      } finally {
        snapshot.close();
      }
    } else if (plan.way === "get") {
      const [[key]] = plan.planned;
      end(plan, { lists: [valuesIn(db.get(kindOf(key), key))], problem: "" });
    } else {
      const body = (tx: Transaction): Seen => runSync(play(tx as unknown as Reading, plan));
      end(plan, db.transactSync(body, options(plan)));
    }
  } catch (error) {
    fail(plan, error);
  }
}

async function runAsynchronously(plan: Plan): Promise<void> {
  write(plan);
  try {
    const seen = await db.transact(
      (tx) => runAsync(play(tx as unknown as Reading, plan)),
      options(plan),
    );
    end(plan, seen);
  } catch (error) {
    fail(plan, error);
  }
}

function startGeneration(key: number): void {
  const next = generationOf(key) + 1;
  db.transactSync((tx) => {
    const row = tx.get(Generation, 0)!;
    if (row.current < next) tx.put(Generation, { id: 0, current: next });
  });
}

function add(tx: Transaction, id: number, amount: bigint): void {
  const row = tx.get(Account, id);
  if (row === undefined) throw new Error(`account ${id} is gone`);
  tx.update(Account, id, { balance: row.balance + amount });
}

/** Whoever moves money writes all that it has read, so either isolation keeps the sum. */
function moneyOptions(): { isolation: "snapshot" | "strict-serializable" } {
  return { isolation: random.below(3) === 0 ? "snapshot" : "strict-serializable" };
}

function transfer(): void {
  const amount = BigInt(1 + random.below(20));
  const from = random.below(ACCOUNTS);
  const to = Array.from({ length: 1 + random.below(3) }, () => random.below(ACCOUNTS));
  db.transactSync((tx) => {
    add(tx, from, -amount * BigInt(to.length));
    for (const id of to) add(tx, id, amount);
  }, moneyOptions());
}

/** Makes a token out of an account's money, or turns it back into money. */
function exchange(): void {
  const id = random.below(TOKEN_IDS);
  const tokens = TOKENS[id % TOKENS.length];
  const account = random.below(ACCOUNTS);
  const value = BigInt(1 + random.below(5));
  const memo = "token ".repeat(random.below(60));
  db.transactSync((tx) => {
    const token = tx.get(tokens, id);
    if (token === undefined) tx.insert(tokens, { id, value, memo });
    else tx.delete(tokens, id);
    add(tx, account, token === undefined ? -value : token.value);
  }, moneyOptions());
}

/** The money is all there in every snapshot. */
function audit(): void {
  const snapshot = db.snapshot();
  let sum = 0n;
  try {
    for (const { balance } of snapshot.scan(Account)) sum += balance;
    for (const tokens of TOKENS) for (const { value } of snapshot.scan(tokens)) sum += value;
  } finally {
    snapshot.close();
  }
  if (sum !== TOTAL) throw new Error(`the money in a snapshot: ${sum} instead of ${TOTAL}`);
  auditCounters(db);
}

/** Rows of device tables are few here: they go to pages, and pages are compacted, only if somebody says so. */
function moveToPages(): void {
  for (const { mover, collector, table } of deviceWorkOf(db)) {
    mover.move(Number.POSITIVE_INFINITY);
    table.writtenPages = 2 ** 30;
    collector.work(performance.now() + BATCH_MS);
  }
}

async function moveLater(): Promise<void> {
  for (const { mover } of deviceWorkOf(db)) await mover.moveLater(isStopped);
}

/** The device's threads write all lists of a generation anew: an append meanwhile must not get lost. */
async function rewriteInThreads(): Promise<void> {
  const generation = db.get(Generation, 0)?.current ?? 0;
  await db.updateWhere(IN_THREADS, {
    place: "device",
    where: (list) => list.generation.eq(generation),
    set: (list) => ({ rewrites: list.rewrites.plus(1) }),
  });
}

async function changeInThreads(): Promise<void> {
  const { elements } = localDatabase(db);
  const isDeath = order.dieAtStep > 0 && random.below(DEATH_CHANCE) === 0;
  elements.death = isDeath
    ? {
        at: CRASH_POINTS[random.below(CRASH_POINTS.length)],
        of: random.below(2) === 0 ? "process" : "thread",
      }
    : undefined;
  if (random.below(4) === 0) await rewriteInThreads();
  else await counterWork.onDevice();
}

/** No disk fails here: what is damaged, Situ has damaged. */
function passUnlessCorrupt(error: unknown): void {
  if (!(error instanceof SituError)) throw error;
  if (error.code === "SITU_CORRUPT") throw new Error(error.message, { cause: error });
}

/** The same for what is awaited. */
async function triedLater(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    passUnlessCorrupt(error);
  }
}

/** Money is moved beside, and may be refused: whoever is slow gives up. */
function tried(work: () => void): void {
  try {
    work();
  } catch (error) {
    passUnlessCorrupt(error);
  }
}

console.log("ready");
while (!isStopped()) {
  const asynchronous: Plan[] = [];
  const beside: Promise<void>[] = [];
  const until = performance.now() + BATCH_MS;
  while (performance.now() < until && asynchronous.length < IN_FLIGHT) {
    const dice = random.below(500);
    if (dice < 280) {
      const plan = draw();
      if (plan.isAsync) asynchronous.push(plan);
      else runOne(plan);
    } else if (dice < 350) tried(transfer);
    else if (dice < 380) tried(() => counterWork.onHost());
    else if (dice < 490) tried(exchange);
    else if (dice < 498) tried(moveToPages);
    else tried(audit);
  }
  if (random.below(8) === 0) beside.push(triedLater(moveLater));
  if (order.plantedKind === undefined && random.below(8) === 0) {
    beside.push(triedLater(changeInThreads));
  }
  const plans = asynchronous.map((plan) => runAsynchronously({ ...plan, at: nowNs() }));
  await Promise.all([...plans, ...beside]);
  await turn();
}
await db.close();
