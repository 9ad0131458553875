/**
 * Each anomaly that isolation is there to prevent, tried hard from several processes: in hashed and
 * ordered tables, under strict serializability, under snapshot isolation and in snapshots. Every
 * check is shown to trip where the anomaly can happen, by a planted bug or by weaker isolation.
 */

import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { checkListAppend } from "../../simulation/checkers/list-append.ts";
import type { Database, Isolation } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { longForks, staleReads } from "../helpers/anomalies.ts";
import { endAll, StoreFolder } from "../helpers/engine-processes.ts";
import { decodeList } from "../helpers/lists.ts";
import { Crew, Talker } from "../helpers/process-group.ts";
import { freshSeed, SOAK } from "../helpers/seed.ts";
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

const seed = freshSeed();
const replay = `replay with SITU_SEED=${seed}`;
const DURATION_MS = 100 * SOAK;
const PROCESSES = 4;
/** A test goes on until it has seen enough, round by round: no machine is too slow for it. */
const LONGEST_TEST_MS = 300_000;
const LAST_ROUND_MS = 150_000;

vi.setConfig({ testTimeout: LONGEST_TEST_MS });

const folder = new StoreFolder();
let db: Database;
let crew: Crew;

beforeAll(async () => {
  db = await openAnomalies(folder.path);
  fillAnomalies(db);
  const meetingPath = join(folder.path, "meeting");
  crew = new Crew("anomalies-child", PROCESSES, { path: folder.path, seed, meetingPath });
});
afterAll(async () => {
  await crew.end();
  endAll();
  await db.close();
  await folder.remove();
});

/** Repeats a round until all rounds together are enough, or have taken far too long. */
async function rounds<Round>(
  round: () => Promise<Round>,
  isEnough: (all: readonly Round[]) => boolean,
): Promise<Round[]> {
  const lastMs = performance.now() + LAST_ROUND_MS;
  const all: Round[] = [];
  do all.push(await round());
  while (!isEnough(all) && performance.now() < lastMs);
  return all;
}

let runs = 0;

/** Runs processes side by side: for each role so many, in a way of their own. */
async function run(
  parts: readonly [Role, Way, number][],
  leastTimes: number,
): Promise<AnomalyReport[]> {
  const random = new Random(seed + runs++);
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

/** Whether a check has tripped. */
function hasViolation(all: readonly { readonly violations: readonly string[] }[]): boolean {
  return all.some(({ violations }) => violations.length > 0);
}

const READING = ["strict-serializable", "snapshot", "read-only"] as const;
const WRITING = ["strict-serializable", "snapshot"] as const;

describe("long fork: all see the writes to x and y in one order", () => {
  interface Pairs {
    readonly forks: readonly string[];
    readonly stale: readonly string[];
    /** How many different pairs were read. */
    readonly times: number;
  }

  async function pairs(way: Way): Promise<Pairs> {
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

  const timesIn = (all: readonly Pairs[]): number => all.reduce((sum, { times }) => sum + times, 0);

  test.each(READING)("read in: %s", async (way) => {
    const all = await rounds(
      () => pairs(way),
      (sofar) => timesIn(sofar) > 50,
    );
    expect(
      all.flatMap(({ forks }) => forks),
      replay,
    ).toEqual([]);
    // A snapshot has everything that was committed before it, so neither may be stale.
    expect(
      all.flatMap(({ stale }) => stale),
      replay,
    ).toEqual([]);
    expect(timesIn(all), "different pairs were read").toBeGreaterThan(50);
  });

  test("the check trips if x and y are read one by one", async () => {
    const hasFork = (all: readonly Pairs[]): boolean => all.some(({ forks }) => forks.length > 0);
    expect(hasFork(await rounds(() => pairs("planted"), hasFork)), replay).toBe(true);
  });
});

describe("read skew: x + y is always the same", () => {
  interface Sums {
    readonly wrong: number;
    /** How many different values were read. */
    readonly times: number;
  }

  async function sums(way: Way): Promise<Sums> {
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
    for (const cells of CELLS) {
      for (let pair = 0; pair < PAIRS; pair++) {
        expect(db.get(cells, xOf(pair))!.n + db.get(cells, yOf(pair))!.n, replay).toBe(2_000);
      }
    }
    return { wrong: reads.filter(({ x, y }) => x + y !== 2_000).length, times: changes.size };
  }

  const total = (all: readonly Sums[], what: keyof Sums): number =>
    all.reduce((sum, each) => sum + each[what], 0);

  test.each(READING)("read in: %s", async (way) => {
    const all = await rounds(
      () => sums(way),
      (sofar) => total(sofar, "times") > 20,
    );
    expect(total(all, "wrong"), replay).toBe(0);
    expect(total(all, "times"), "different values were read").toBeGreaterThan(20);
  });

  test("the check trips if x and y are read one by one", async () => {
    const isTripped = (all: readonly Sums[]): boolean => total(all, "wrong") > 0;
    expect(isTripped(await rounds(() => sums("planted"), isTripped)), replay).toBe(true);
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
    const isTripped = (all: readonly { readonly lost: number }[]): boolean =>
      all.some((each) => each.lost > 0);
    expect(isTripped(await rounds(() => lost("planted"), isTripped)), replay).toBe(true);
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
    expect(hasViolation(await rounds(() => tried("snapshot"), hasViolation)), replay).toBe(true);
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
    const all = await rounds(() => book("planted", "strict-serializable"), hasViolation);
    expect(hasViolation(all), replay).toBe(true);
  });

  test("the check trips if a range is read twice in two snapshots", async () => {
    const all = await rounds(() => book("strict-serializable", "planted"), hasViolation);
    expect(hasViolation(all), replay).toBe(true);
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

  /** Kinds of anomalies, however many of each. */
  const kindsIn = (all: readonly { readonly counts: readonly [string, number][] }[]): string[] => [
    ...new Set(all.flatMap(({ counts }) => counts.map(([kind]) => kind))),
  ];

  test("snapshot isolation, and no more than that", async () => {
    // The histories are hard ones: there is write skew in them.
    const all = await rounds(
      async () => {
        const { counts, anomalies, history, judged } = await check("snapshot", "snapshot");
        expect(counts, `${replay}\n${JSON.stringify(anomalies[0])}`).toEqual([]);
        expect(history.length).toBeGreaterThanOrEqual(600);
        expect(history.filter(({ outcome }) => outcome !== "ok")).toEqual([]);
        return { counts: judged("serializable").counts };
      },
      (sofar) => kindsIn(sofar).length > 0,
    );
    expect(kindsIn(all), replay).toEqual(["not-serializable"]);
  });

  test("snapshots among strict transactions: strictly serializable", async () => {
    const { counts, anomalies, history } = await check("read-only", "strict-serializable");
    expect(counts, `${replay}\n${JSON.stringify(anomalies[0])}`).toEqual([]);
    expect(history.length).toBeGreaterThanOrEqual(600);
    expect(history.filter(({ outcome }) => outcome !== "ok")).toEqual([]);
  });

  test("the checks trip if what is only read is read outside of the transaction", async () => {
    interface Judged {
      readonly strictly: number;
      readonly asSnapshot: number;
    }
    const isTripped = (all: readonly Judged[]): boolean =>
      all.some(({ strictly }) => strictly > 0) && all.some(({ asSnapshot }) => asSnapshot > 0);
    const all = await rounds(async (): Promise<Judged> => {
      const { counts, judged } = await check("planted", "strict-serializable");
      return { strictly: counts.length, asSnapshot: judged("snapshot").counts.length };
    }, isTripped);
    expect(isTripped(all), `${replay}\n${JSON.stringify(all)}`).toBe(true);
  });
});
