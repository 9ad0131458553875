/**
 * Each anomaly that isolation is there to prevent, tried hard from several processes: in hashed and
 * ordered tables, under strict serializability, under snapshot isolation and in snapshots. Every
 * check is shown to trip where the anomaly can happen, by a planted bug or by weaker isolation.
 */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkListAppend } from "../../simulation/checkers/list-append.ts";
import type { Database, Isolation } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { longForks, staleReads } from "../helpers/anomalies.ts";
import { endAll, StoreFolder } from "../helpers/engine-processes.ts";
import { Crew, Talker } from "../helpers/process-group.ts";
import type { DoctorOrder } from "./anomalies-doctor-child.ts";
import type { AnomalyOrder, AnomalyReport, Role, Way } from "./anomalies-orders.ts";
import {
  BOOKINGS,
  bookingsIn,
  CELLS,
  fillAnomalies,
  generationIn,
  LISTS_PER_GENERATION,
  listsOf,
  openAnomalies,
  PAIRS,
  ROOM_LIMIT,
  ROOMS,
  resetAnomalies,
  xOf,
  yOf,
} from "./anomalies-store.ts";
import { decodeList } from "./storm-store.ts";

const seed = Number(process.env.SITU_SEED ?? 1 + new Random().below(2 ** 30));
const replay = `replay with SITU_SEED=${seed}`;
const DURATION_MS = 700;
const PROCESSES = 4;

const folder = new StoreFolder();
let db: Database;
let crew: Crew;

beforeAll(async () => {
  db = await openAnomalies(folder.path);
  fillAnomalies(db);
  crew = new Crew("anomalies-child", PROCESSES, { path: folder.path, seed });
});
afterAll(async () => {
  await crew.end();
  endAll();
  await db.close();
  await folder.remove();
});

/** Runs processes side by side: for each role so many, in a way of their own. */
async function run(
  parts: readonly [Role, Way, number][],
  leastTimes: number,
): Promise<AnomalyReport[]> {
  const random = new Random(seed);
  const isPlanted = parts.some(([, way]) => way === "planted");
  const orders = parts.flatMap(([role, way, count]) =>
    Array.from(
      { length: count },
      (_, which): AnomalyOrder => ({
        seed: 1 + random.below(2 ** 30),
        role,
        way,
        durationMs: isPlanted ? DURATION_MS / 2 : DURATION_MS,
        leastTimes,
        which,
      }),
    ),
  );
  return crew.run<AnomalyReport>(orders);
}

const READING = ["strict-serializable", "snapshot", "read-only"] as const;
const WRITING = ["strict-serializable", "snapshot"] as const;

describe("long fork: all see the writes to x and y in one order", () => {
  async function pairs(way: Way): Promise<{ forks: string[]; stale: string[]; times: number }> {
    resetAnomalies(db, 0);
    const writing = way === "snapshot" ? "snapshot" : "strict-serializable";
    const reports = await run(
      [
        ["increment-side", writing, 2],
        ["read-pairs", way, 2],
      ],
      200,
    );
    const reads = reports.flatMap((report) => report.reads);
    const writes = reports.flatMap((report) => report.writes);
    const changes = new Set(reads.map(({ place, x, y }) => `${place} ${x} ${y}`));
    return { forks: longForks(reads), stale: staleReads(reads, writes), times: changes.size };
  }

  test.each(READING)("read in: %s", async (way) => {
    const { forks, stale, times } = await pairs(way);
    expect(forks, replay).toEqual([]);
    // A snapshot has everything that was committed before it, so neither may be stale.
    expect(stale, replay).toEqual([]);
    expect(times, "different pairs were read").toBeGreaterThan(50);
  });

  test("the check trips if x and y are read one by one", async () => {
    const { forks } = await pairs("planted");
    expect(forks.length, replay).toBeGreaterThan(0);
  });
});

describe("read skew: x + y is always the same", () => {
  async function sums(way: Way): Promise<{ wrong: number; times: number }> {
    resetAnomalies(db, 1_000);
    const reports = await run(
      [
        ["transfer", way === "snapshot" ? "snapshot" : "strict-serializable", 2],
        ["read-pairs", way, 2],
      ],
      200,
    );
    const reads = reports.flatMap((report) => report.reads);
    const changes = new Set(reads.map(({ place, x }) => `${place} ${x}`));
    return { wrong: reads.filter(({ x, y }) => x + y !== 2_000).length, times: changes.size };
  }

  test.each(READING)("read in: %s", async (way) => {
    const { wrong, times } = await sums(way);
    expect(wrong, replay).toBe(0);
    expect(times, "different values were read").toBeGreaterThan(20);
    for (const cells of CELLS) {
      for (let pair = 0; pair < PAIRS; pair++) {
        expect(db.get(cells, xOf(pair))!.n + db.get(cells, yOf(pair))!.n, replay).toBe(2_000);
      }
    }
  });

  test("the check trips if x and y are read one by one", async () => {
    expect((await sums("planted")).wrong, replay).toBeGreaterThan(0);
  });
});

describe("lost update: every committed increment counts", () => {
  async function lost(way: Way): Promise<{ lost: number; times: number[] }> {
    resetAnomalies(db, 0);
    const reports = await run([["increment", way, 4]], 100);
    let missing = 0;
    for (const cells of CELLS) {
      for (let pair = 0; pair < PAIRS; pair++) {
        const place = `${cells.name} ${pair}`;
        for (const { increments } of reports) missing += increments[place] ?? 0;
        missing -= db.get(cells, xOf(pair))!.n;
      }
    }
    return { lost: missing, times: reports.map(({ times }) => times) };
  }

  test.each(WRITING)("%s", async (way) => {
    const { lost: missing, times } = await lost(way);
    expect(missing, replay).toBe(0);
    for (const each of times) expect(each, "increments").toBeGreaterThanOrEqual(100);
  });

  test("the check trips if the value is read before the transaction", async () => {
    expect((await lost("planted")).lost, replay).toBeGreaterThan(0);
  });
});

describe("write skew: one of two doctors stays on call", () => {
  async function tried(way: Way): Promise<{ violations: readonly string[]; times: number }> {
    resetAnomalies(db, 1);
    const reports = await run([["doctor", way, 4]], 300);
    return {
      violations: reports.flatMap((report) => report.violations),
      times: reports.reduce((sum, { times }) => sum + times, 0),
    };
  }

  test("prevented by strict serializability", async () => {
    const { violations, times } = await tried("strict-serializable");
    expect(violations, replay).toEqual([]);
    expect(times, "doctors went home").toBeGreaterThanOrEqual(1_200);
  });

  test("snapshot isolation allows it, and so the check trips", async () => {
    expect((await tried("snapshot")).violations.length, replay).toBeGreaterThan(0);
  });

  const cases = WRITING.flatMap((isolation) =>
    [false, true].map((ordered): [Isolation, boolean] => [isolation, ordered]),
  );
  test.each(cases)("step by step: %s, ordered: %s", async (isolation, ordered) => {
    resetAnomalies(db, 1);
    const doctors = ([0, 1] as const).map((which) => {
      const order: DoctorOrder = { path: folder.path, isolation, ordered, which };
      return new Talker("anomalies-doctor-child", order);
    });
    for (const what of ["ready", "has read"]) {
      await Promise.all(doctors.map((doctor) => doctor.hear(what)));
      for (const doctor of doctors) doctor.go();
    }
    const reports = await Promise.all(
      doctors.map((doctor) => doctor.report<{ attempts: number }>()),
    );
    const cells = CELLS[ordered ? 1 : 0];
    const onCall = db.get(cells, xOf(0))!.n + db.get(cells, yOf(0))!.n;
    const attempts = reports.reduce((sum, report) => sum + report.attempts, 0);
    if (isolation === "snapshot") expect([onCall, attempts]).toEqual([0, 2]);
    else {
      // One is run again, sees that it is the last one, and stays. Both may be, if they met.
      expect(onCall).toBe(1);
      expect(attempts).toBeGreaterThan(2);
    }
  });
});

describe("phantom", () => {
  async function book(way: Way, readers: Way): Promise<{ violations: string[]; times: number }> {
    resetAnomalies(db, 0);
    const reports = await run(
      [
        ["book", way, 3],
        ["read-rooms", readers, 1],
      ],
      30,
    );
    const violations = reports.flatMap((report) => report.violations);
    for (const bookings of BOOKINGS) {
      for (let room = 0; room < ROOMS; room++) {
        const found = bookingsIn(db, bookings, room).length;
        if (found > ROOM_LIMIT) violations.push(`in the end ${found} in ${bookings.name} ${room}`);
      }
    }
    const few = Math.min(...reports.map(({ times }) => times));
    return { violations, times: few };
  }

  test("no room is booked more often than it may be, by who has counted its bookings", async () => {
    const { violations, times } = await book("strict-serializable", "strict-serializable");
    expect(violations, replay).toEqual([]);
    expect(times, "times of each process").toBeGreaterThanOrEqual(30);
  });

  // The writers stay strict: they set the limit. What is tried here is that nothing appears.
  test.each(["snapshot", "read-only"] as const)(
    "a range read twice is the same: %s",
    async (way) => {
      const { violations, times } = await book("strict-serializable", way);
      expect(violations, replay).toEqual([]);
      expect(times, "times of each process").toBeGreaterThanOrEqual(30);
    },
  );

  test("the check trips if the bookings are counted before the transaction", async () => {
    const { violations } = await book("planted", "strict-serializable");
    expect(violations.length, replay).toBeGreaterThan(0);
  });

  test("the check trips if a range is read twice in two snapshots", async () => {
    const { violations } = await book("strict-serializable", "planted");
    expect(violations.length, replay).toBeGreaterThan(0);
  });
});

describe("histories of appends and reads", () => {
  async function check(way: Way, isolation: Isolation | "serializable") {
    resetAnomalies(db, 0);
    const first = generationIn(db);
    const reports = await run([["append", way, 3]], 200);
    const history = reports.flatMap((report) => report.history);
    const finalReads = new Map<number, number[]>();
    const end = (generationIn(db) + 1) * LISTS_PER_GENERATION;
    for (let key = first * LISTS_PER_GENERATION; key < end; key++) {
      const row = db.get(listsOf(key), key);
      if (row !== undefined) finalReads.set(key, decodeList(row.values));
    }
    const judged = (level: Isolation | "serializable") => {
      const { counts, anomalies } = checkListAppend(history, { isolation: level, finalReads });
      return { counts: [...counts], anomalies };
    };
    return { ...judged(isolation), history, judged };
  }

  test("snapshot isolation, and no more than that", async () => {
    const { counts, anomalies, history, judged } = await check("snapshot", "snapshot");
    expect(counts, `${replay}\n${JSON.stringify(anomalies[0])}`).toEqual([]);
    expect(history.length).toBeGreaterThanOrEqual(600);
    expect(history.filter(({ outcome }) => outcome !== "ok")).toEqual([]);
    // The histories are hard ones: there is write skew in them.
    expect(judged("serializable").counts.map(([kind]) => kind)).toEqual(["not-serializable"]);
  });

  test("snapshots among strict transactions: strictly serializable", async () => {
    const { counts, anomalies, history } = await check("read-only", "strict-serializable");
    expect(counts, `${replay}\n${JSON.stringify(anomalies[0])}`).toEqual([]);
    expect(history.length).toBeGreaterThanOrEqual(600);
    expect(history.filter(({ outcome }) => outcome !== "ok")).toEqual([]);
  });

  test("the checks trip if what is only read is read outside of the transaction", async () => {
    const { counts, judged } = await check("planted", "strict-serializable");
    expect(counts, replay).not.toEqual([]);
    expect(judged("snapshot").counts, replay).not.toEqual([]);
  });
});
