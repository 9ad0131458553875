/** One process of the anomaly tests: does what its role says, again and again, and reports. */

import type { Transaction as HistoryTransaction } from "../../simulation/checkers/history.ts";
import {
  type Database,
  type Isolation,
  SituError,
  type SyncResult,
  type Transaction,
} from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { decodeList, encodeList } from "../helpers/lists.ts";
import { Meeting } from "../helpers/meeting.ts";
import {
  dawdle,
  linger,
  nowNs,
  orderOf,
  orders,
  repeat,
  report,
} from "../helpers/process-child.ts";
import type {
  AnomalyOrder,
  AnomalyReport,
  MemberOrder,
  PairRead,
  Role,
  SideWrite,
  Way,
} from "./anomalies-orders.ts";
import {
  BOOKINGS,
  type Bookings,
  bookingsIn,
  CELLS,
  type Cells,
  generationIn,
  indexedBookingsIn,
  LISTS_PER_GENERATION,
  listsOf,
  openAnomalies,
  PAIRS,
  placeOf,
  type Reader,
  ROOM_LIMIT,
  ROOMS,
  startGeneration,
  xOf,
  yOf,
} from "./anomalies-store.ts";

const { path, dawdles, seed, member, meetingPath } = orderOf<MemberOrder>();
if (dawdles) dawdle(new Random(seed));
const db: Database = await openAnomalies(path);
/** To read beside a transaction of `db`, which `db` itself refuses. */
const beside: Database = await openAnomalies(path);
const meeting = new Meeting(meetingPath, member);
/** However little was done by then: a process that others keep from working must not hang. */
const LONGEST_MS = 120_000;
const MOST_RECORDS = 20_000;
const MOST_TRANSACTIONS = 2_500;
const WRITES_TOLD = 8;
const LONG_LIST = 30;

/** The order of now, and what its report will say. */
let which = 0;
let way: Way = "planted";
let random = new Random(1);
let violations: string[] = [];
let reads: PairRead[] = [];
let writes: SideWrite[] = [];
let increments: Record<string, number> = {};
let history: HistoryTransaction[] = [];
let times = 0;

function violation(what: string): void {
  if (violations.length < 5) violations.push(what);
}

function choose<T>(items: readonly T[]): T {
  return items[random.below(items.length)];
}

/** Strictly, unless we are told otherwise. */
function transact<T>(body: (tx: Transaction) => SyncResult<T>): T {
  const isolation: Isolation = way === "snapshot" ? "snapshot" : "strict-serializable";
  return db.transactSync(body, { isolation });
}

/** Reads in a way: in one transaction, in one snapshot, or as a planted bug in neither. */
function readIn<T>(how: Way, body: (reader: Reader) => SyncResult<T>): T {
  if (how === "planted") return body(db);
  if (how !== "read-only") return db.transactSync(body, { isolation: how });
  const snapshot = db.snapshot();
  try {
    return body(snapshot);
  } finally {
    snapshot.close();
  }
}

/** Stays between a read and what follows from it: for a while, or until another has got on. */
function stay(longestMicroseconds: number): void {
  if (random.below(2) === 0) linger(random.below(longestMicroseconds));
  else meeting.waitForAnother();
}

/** Both cells of a pair, in either order, by their keys or by the index. */
function readPair(reader: Reader, cells: Cells, pair: number): { x: number; y: number } {
  if (way !== "planted" && random.below(4) === 0) {
    const found = reader.scan(cells, { index: "byPair", eq: pair }).toArray();
    found.sort((a, b) => a.id - b.id);
    return { x: found[0]?.n ?? Number.NaN, y: found[1]?.n ?? Number.NaN };
  }
  const first = reader.get(cells, which === 0 ? xOf(pair) : yOf(pair))!.n;
  stay(30);
  const second = reader.get(cells, which === 0 ? yOf(pair) : xOf(pair))!.n;
  return which === 0 ? { x: first, y: second } : { x: second, y: first };
}

function add(tx: Transaction, cells: Cells, id: number, amount: number): number {
  const n = tx.get(cells, id)!.n + amount;
  tx.update(cells, id, { n });
  return n;
}

const steps: Record<Role, () => void> = {
  "increment-side": () => {
    const cells = choose(CELLS);
    const pair = random.below(PAIRS);
    const side = which === 0 ? "x" : "y";
    const id = side === "x" ? xOf(pair) : yOf(pair);
    const n = transact((tx) => add(tx, cells, id, 1));
    if (++times % WRITES_TOLD !== 0 || writes.length === MOST_RECORDS) return;
    writes.push({ place: `${cells.name} ${pair}`, side, n, end: nowNs() });
  },

  transfer: () => {
    const cells = choose(CELLS);
    const pair = random.below(PAIRS);
    const amount = random.below(7) - 3;
    transact((tx) => {
      add(tx, cells, xOf(pair), -amount);
      stay(10);
      add(tx, cells, yOf(pair), amount);
    });
    times++;
  },

  "read-pairs": () => {
    const cells = choose(CELLS);
    const pair = random.below(PAIRS);
    const start = nowNs();
    const seen = readIn(way, (reader) => readPair(reader, cells, pair));
    times++;
    if (reads.length === MOST_RECORDS) return;
    reads.push({ place: `${cells.name} ${pair}`, ...seen, start, end: nowNs() });
  },

  increment: () => {
    const cells = choose(CELLS);
    const pair = random.below(PAIRS);
    const id = xOf(pair);
    const outside = way === "planted" ? db.get(cells, id)!.n : undefined;
    transact((tx) => {
      const n = outside ?? tx.get(cells, id)!.n;
      stay(20);
      tx.update(cells, id, { n: n + 1 });
    });
    const place = `${cells.name} ${pair}`;
    increments[place] = (increments[place] ?? 0) + 1;
    times++;
  },

  doctor: () => {
    const cells = choose(CELLS);
    const pair = random.below(PAIRS);
    const [me, other] = which % 2 === 0 ? [xOf(pair), yOf(pair)] : [yOf(pair), xOf(pair)];
    const seen = transact((tx) => {
      const mine = tx.get(cells, me)!.n;
      const theirs = tx.get(cells, other)!.n;
      stay(30);
      if (mine === 0) tx.update(cells, me, { n: 1 });
      else if (theirs === 1) tx.update(cells, me, { n: 0 });
      return { mine, theirs };
    });
    if (seen.mine === 1 && seen.theirs === 1) times++;
    if (seen.mine === 0 && seen.theirs === 0) violation(`nobody is on call: ${cells.name} ${pair}`);
  },

  book: () => {
    const bookings = choose(BOOKINGS);
    const room = random.below(ROOMS);
    const find = random.below(3) === 0 ? indexedBookingsIn : bookingsIn;
    const outside = way === "planted" ? find(db, bookings, room) : undefined;
    const found = transact((tx) => {
      const taken = outside ?? find(tx, bookings, room);
      stay(50);
      if (taken.length < ROOM_LIMIT) bookOne(tx, bookings, room);
      else for (const each of taken) tx.delete(bookings, [room, each.id]);
      return taken.length;
    });
    times++;
    if (found > ROOM_LIMIT) violation(`${found} bookings of a room: ${bookings.name}`);
  },

  "read-rooms": () => {
    const bookings = choose(BOOKINGS);
    const room = random.below(ROOMS);
    const problem = readIn(way, (reader) => {
      const first = bookingsIn(reader, bookings, room);
      stay(100);
      const counted = reader.count(bookings, { index: "taken", eq: [1, room] });
      const again = [bookingsIn, indexedBookingsIn].map((find) => find(reader, bookings, room));
      for (const second of again) {
        if (idsOf(second) !== idsOf(first)) return `${idsOf(first)}, then ${idsOf(second)}`;
      }
      return counted === first.length ? "" : `${first.length} bookings, counted as ${counted}`;
    });
    times++;
    if (problem !== "") violation(`${bookings.name}: ${problem}`);
  },

  append: () => {
    if (history.length < MOST_TRANSACTIONS) appendAndRead();
  },
};

function bookOne(tx: Transaction, bookings: Bookings, room: number): void {
  for (;;) {
    const id = placeOf(random.next());
    if (tx.get(bookings, [room, id]) !== undefined) continue;
    tx.insert(bookings, { room, id, taken: 1 });
    return;
  }
}

function idsOf(bookings: { readonly id: number }[]): string {
  return bookings
    .map(({ id }) => id)
    .sort((a, b) => a - b)
    .join(" ");
}

function appendAndRead(): void {
  const first = generationIn(db) * LISTS_PER_GENERATION;
  const onlyReads = random.below(2) === 0;
  const planned = Array.from({ length: 1 + random.below(4) }, (_, i) => ({
    key: first + random.below(LISTS_PER_GENERATION),
    value: onlyReads || random.below(2) === 0 ? 0 : (which + 1) * 1e7 + history.length * 10 + i,
  }));
  const operations: HistoryTransaction["operations"][number][] = [];
  const start = nowNs();
  const body = (reader: Reader): void => {
    operations.length = 0;
    for (const { key, value } of planned) {
      const lists = listsOf(key);
      // The planted bug: what is only read is read outside of the transaction.
      const source = way === "planted" && value === 0 ? beside : reader;
      const values = decodeList(source.get(lists, key)?.values);
      if (value === 0) operations.push({ kind: "read", key, list: values });
      else {
        const changed = { id: key, values: encodeList([...values, value]) };
        (reader as Transaction).put(lists, changed);
        operations.push({ kind: "append", key, value });
      }
      stay(30);
    }
  };
  let outcome: HistoryTransaction["outcome"] = "ok";
  try {
    const writesToo = planned.some(({ value }) => value !== 0);
    readIn(way === "read-only" && writesToo ? "strict-serializable" : wayOfAppends(), body);
  } catch (error) {
    if (!(error instanceof SituError)) throw error;
    outcome = "failed";
  }
  const appends = planned.filter(({ value }) => value !== 0);
  history.push({
    process: which,
    start,
    end: nowNs(),
    operations:
      outcome === "ok"
        ? [...operations]
        : appends.map(({ key, value }) => ({ kind: "append" as const, key, value })),
    outcome,
  });
  times++;
  const isLong = operations.some((each) => each.kind === "read" && each.list.length > LONG_LIST);
  if (!isLong) return;
  const next = Math.floor(planned[0].key / LISTS_PER_GENERATION) + 1;
  db.transactSync((tx) => startGeneration(tx, next));
}

function wayOfAppends(): Way {
  return way === "planted" ? "strict-serializable" : way;
}

async function carryOut(order: AnomalyOrder): Promise<AnomalyReport> {
  ({ which, way } = order);
  random = new Random(order.seed);
  [violations, reads, writes, increments, history, times] = [[], [], [], {}, [], 0];
  const endMs = performance.now() + order.durationMs;
  const lastMs = performance.now() + LONGEST_MS;
  const isOver = (): boolean => {
    const nowMs = performance.now();
    return nowMs > lastMs || (nowMs > endMs && times >= order.leastTimes);
  };
  await repeat(isOver, () => {
    steps[order.role]();
    meeting.advance();
  });
  return { violations, times, reads, writes, increments, history };
}

for await (const order of orders<AnomalyOrder>()) report(await carryOut(order));
await beside.close();
await db.close();
