/** YCSB: keys, values and mixes as its files say, a check that can fail, and Situ's stores. */

import { describe, expect, test } from "vitest";
import {
  addTallies,
  DONE,
  type Session,
  type Tally,
  type Workload,
} from "../../workloads/workload.ts";
import { keyOf } from "../../workloads/ycsb/keys.ts";
import { coreWorkloads, INSERT, type Letter } from "../../workloads/ycsb/parameters.ts";
import { situYcsb, situYcsbAsync } from "../../workloads/ycsb/situ.ts";
import type { YcsbRow, YcsbStore } from "../../workloads/ycsb/store.ts";
import { fieldNames, makePool } from "../../workloads/ycsb/values.ts";
import { ycsb, ycsbTable } from "../../workloads/ycsb/ycsb.ts";
import { fixedSeed } from "../helpers/seed.ts";
import { runSessions } from "./engine-run.ts";
import { rowsByKey } from "./model-tables.ts";
import { withSitu } from "./objects-situ.ts";
import { YcsbModel } from "./ycsb-model.ts";

const SEED = fixedSeed(20_265);
const RECORDS = 300;
const letters = Object.keys(coreWorkloads) as Letter[];
const one = { seed: SEED, lane: 0, lanes: 1 };
const two = [0, 1].map((lane) => ({ seed: SEED, lane, lanes: 2 }));

/** Few draws, so that runs go round them. */
function small(letter: Letter): Workload<YcsbStore> {
  return ycsb(letter, RECORDS, { draws: 1_024 });
}

function modelOf(letter: Letter): YcsbModel {
  const model = new YcsbModel(ycsbTable(letter));
  model.load(small(letter).rows());
  return model;
}

function run(session: Session, transactions: number): Tally {
  for (let i = 0; i < transactions; i++) expect(session.next()).toBe(DONE);
  return session.tally();
}

describe("what is loaded", () => {
  test("keys as CoreWorkload makes them, ten fields of 100 characters, all different", () => {
    const rows = [...ycsb("a", RECORDS).rows()].map(({ row }) => row as YcsbRow);
    expect(rows[0].key).toBe("user6284781860667377211");
    expect(rows[1].key).toBe("user8517097267634966620");
    expect(new Set(rows.map(({ key }) => key)).size).toBe(RECORDS);
    const values = rows.flatMap((row) => fieldNames.map((field) => row[field]));
    for (const value of values) expect(value).toMatch(/^[!-~]{100}$/);
    expect(new Set([...values, ...makePool()]).size).toBe(10 * RECORDS + 1_000);
    expect([...ycsb("a", RECORDS).rows()].map(({ row }) => row)).toEqual(rows);
  });
});

describe("what is asked for", () => {
  test.each(letters)("%s: operations in its proportions", (letter) => {
    const workload = ycsb(letter, RECORDS, { draws: 2 ** 16 });
    const session = workload.session(storeThatAgrees(), one);
    const counts = workload.mix.map(() => 0);
    const draws = 50_000;
    for (let i = 0; i < draws; i++) {
      void session.next();
      counts[session.drawn]++;
    }
    expect(workload.mix.reduce((sum, { percent }) => sum + percent, 0)).toBe(100);
    for (const [place, { name, percent }] of workload.mix.entries()) {
      // Four standard deviations and more.
      expect(Math.abs(counts[place] / draws - percent / 100), name).toBeLessThan(0.009);
    }
  });

  test.each([
    // The hottest of 10^10 items, 1 / ZETAN, whatever else falls on its record.
    { distribution: "zipfian", hottest: 1 / 26.469, tolerance: 0.02 },
    { distribution: "uniform", hottest: 1 / RECORDS, tolerance: 0.003 },
    { distribution: "latest", hottest: 1 / 6.4, tolerance: 0.02 },
  ] as const)("$distribution keys", ({ distribution, hottest, tolerance }) => {
    const asked = new Map<string, number>();
    const store = storeThatAgrees();
    store.read = (key) => {
      asked.set(key, (asked.get(key) ?? 0) + 1);
      return { key } as YcsbRow;
    };
    const draws = 2 ** 15;
    run(ycsb("c", RECORDS, { distribution, draws }).session(store, one), draws);
    const [key, count] = [...asked].sort(([, a], [, b]) => b - a)[0];
    expect(Math.abs(count / draws - hottest), `seed ${SEED}`).toBeLessThan(tolerance);
    if (distribution === "latest") expect(key).toBe(keyOf(RECORDS - 1));
  });

  test("scans are of 1 to 100 rows, updates of all fields", () => {
    const lengths = new Set<number>();
    const fields = new Set<string>();
    const store = storeThatAgrees();
    store.scan = (key, count) => {
      lengths.add(count);
      return [{ key } as YcsbRow];
    };
    store.update = (_key, field) => {
      fields.add(field);
      return true;
    };
    run(ycsb("e", RECORDS, { draws: 2 ** 14 }).session(store, one), 10_000);
    run(ycsb("a", RECORDS, { draws: 2 ** 14 }).session(store, one), 1_000);
    expect([Math.min(...lengths), Math.max(...lengths), lengths.size]).toEqual([1, 100, 100]);
    expect([...fields].sort()).toEqual([...fieldNames]);
  });

  test("D reads what it has inserted, the newest most, and only what is acknowledged", async () => {
    const model = modelOf("d");
    const late: (() => void)[] = [];
    const store = storeThatAgrees();
    let newest = "";
    let newestReads = 0;
    let reads = 0;
    store.read = (key) => {
      reads++;
      if (key === newest) newestReads++;
      const row = model.read(key);
      expect(row, `${key} was asked for before it was there`).toBeDefined();
      return row;
    };
    // Every other insert takes until the next one is done.
    store.insert = (row) =>
      new Promise((resolve) => {
        late.push(() => {
          model.insert(row);
          newest = row.key;
          resolve();
        });
        if (late.length === 2) for (const finish of late.splice(0).reverse()) finish();
      });
    const session = small("d").session(store, one);
    const pending: unknown[] = [];
    for (let i = 0; i < 4_000; i++) {
      pending.push(session.next());
      await undefined;
    }
    for (const finish of late.splice(0)) finish();
    await Promise.all(pending);
    const tally = session.tally();
    expect(tally.missing).toBe(0);
    expect(tally.inserts).toBeGreaterThan(150);
    // A little less than the newest has in "latest", because one of a pair is newer than it.
    expect(newestReads / reads).toBeGreaterThan(0.05);
    expect(await small("d").check(model.rows, tally)).toEqual([]);
  });

  test("the same seed asks for the same, another lane for something else", () => {
    const asked = (options: typeof one): string[] => {
      const keys: string[] = [];
      const store = storeThatAgrees();
      store.read = (key) => {
        keys.push(key);
        return { key } as YcsbRow;
      };
      run(small("c").session(store, options), 100);
      return keys;
    };
    expect(asked(one)).toEqual(asked(one));
    expect(asked(one)).not.toEqual(asked({ ...one, lane: 1 }));
  });
});

describe("the check", () => {
  test.each(letters)("%s: finds nothing where nothing is wrong", async (letter) => {
    const model = modelOf(letter);
    const sessions = two.map((options) => small(letter).session(model, options));
    await runSessions(sessions, 2_000, 1);
    const tally = addTallies(sessions.map((session) => session.tally()));
    expect(await small(letter).check(model.rows, tally), `seed ${SEED}`).toEqual([]);
    if (coreWorkloads[letter].operations.some(([kind]) => kind === INSERT)) {
      expect(tally.inserts).toBeGreaterThan(50);
    }
  });

  test("A's accepts what D has inserted and F has changed, in one group", async () => {
    const model = modelOf("a");
    const tallies = (["a", "b", "c", "d", "f"] as const).map((letter) =>
      run(small(letter).session(model, one), 500),
    );
    expect(await small("a").check(model.rows, addTallies(tallies))).toEqual([]);
  });

  const table = ycsbTable("d");
  const key = keyOf(7);
  test.each<[string, (model: YcsbModel) => void, RegExp]>([
    ["a row is gone", (model) => void model.delete(table, key), /records that are missing: user/],
    [
      "a row too many",
      (model) => model.put(table, { ...model.read(key), key: "user1" }),
      /1 rows that nobody wrote: user1/,
    ],
    [
      "two fields are swapped",
      (model) => {
        const row = model.read(key)!;
        model.put(table, { ...row, field1: row.field2, field2: row.field1 });
      },
      /2 fields with a value that nobody wrote to them: \S+ field1, \S+ field2/,
    ],
    [
      "a field has the value of another row",
      (model) => void model.update(key, "field3", model.read(keyOf(8))!.field3),
      /1 fields with a value/,
    ],
    [
      "a field is cut",
      (model) => void model.update(key, "field3", model.read(key)!.field3.slice(1)),
      /1 fields with a value/,
    ],
    [
      "an update nobody has done",
      (model) => void model.update(key, "field0", makePool()[0]),
      /1 fields were changed by 0 updates/,
    ],
  ])("finds it when %s", async (_, plant, problem) => {
    const model = modelOf("d");
    const tally = run(small("d").session(model, one), 500);
    plant(model);
    const problems = await small("d").check(model.rows, tally);
    expect(problems.join("; ")).toMatch(problem);
  });

  test("finds a lost insert, updates without a trace, and rows that were not found", async () => {
    const model = modelOf("d");
    const tally = run(small("d").session(model, one), 500);
    const last = [...model.all(table).keys()].at(-1)!;
    model.delete(table, last);
    const problems = await small("d").check(model.rows, {
      ...tally,
      updates: 3,
      missing: 1,
      wrong: 2,
    });
    expect(problems).toEqual([
      expect.stringMatching(/^\d+ rows where there should be \d+$/),
      "none of 3 updates has left a trace",
      "1 operations did not find their row",
      "2 operations found a row with another key",
      `1 inserted records that are missing: ${last}`,
    ]);
  });

  test("sessions notice what is not there, or another row", () => {
    const store = storeThatAgrees();
    store.read = (each) => (each === key ? undefined : ({ key: "user2" } as YcsbRow));
    store.update = () => false;
    const { reads, updates, missing, wrong } = run(small("a").session(store, one), 1_000);
    expect(updates).toBe(0);
    expect(missing + wrong).toBe(1_000);
    expect(wrong).toBeGreaterThan(reads * 0.9);
    store.scan = (first) => [{ key: first } as YcsbRow, { key: "a" } as YcsbRow];
    const scanned = run(small("e").session(store, one), 1_000);
    expect(scanned.wrong).toBe(scanned.scans);
  });
});

describe.each([
  { name: "transactSync", make: situYcsb, inFlight: 1 },
  { name: "transact", make: situYcsbAsync, inFlight: 4 },
])("on Situ, $name", ({ make, inFlight }) => {
  test.each(letters)("%s: two lanes, and the check holds", async (letter) => {
    const workload = small(letter);
    await withSitu(workload, async (db, read) => {
      const store = make(db, ycsbTable(letter));
      const sessions = two.map((options) => workload.session(store, options));
      expect(await runSessions(sessions, 3_000, inFlight)).toBe(0);
      const tally = addTallies(sessions.map((session) => session.tally()));
      expect(await workload.check(read, tally), `seed ${SEED}`).toEqual([]);
    });
  });

  test.each(letters)("%s: the same rows as the model's, one after the other", async (letter) => {
    const workload = small(letter);
    const model = modelOf(letter);
    run(workload.session(model, one), 1_000);
    await withSitu(workload, async (db, read) => {
      const session = workload.session(make(db, ycsbTable(letter)), one);
      await runSessions([session], 1_000, 1);
      const rows = await rowsByKey(read, ycsbTable(letter));
      expect(rows, `seed ${SEED}`).toEqual(model.all(ycsbTable(letter)));
    });
  });

  test("answers as the contract says, also for rows that are not there", async () => {
    const workload = small("e");
    const model = modelOf("e");
    await withSitu(workload, async (db) => {
      const store = make(db, ycsbTable("e"));
      const key = keyOf(5);
      expect(await store.read(key)).toEqual(model.read(key));
      expect(await store.read("nobody")).toBeUndefined();
      expect(await store.update("nobody", "field0", "")).toBe(false);
      expect(await store.readModifyWrite("nobody", "field0", "")).toBeUndefined();
      expect(await store.readModifyWrite(key, "field4", "new")).toEqual(model.read(key));
      expect((await store.read(key))?.field4).toBe("new");
      model.update(key, "field4", "new");
      expect(await store.scan("user5", 12)).toEqual(model.scan("user5", 12));
      expect(await store.scan("v", 12)).toEqual([]);
      const insert = async (): Promise<void> => store.insert(model.read(key)!);
      await expect(insert()).rejects.toMatchObject({ code: "SITU_EXISTS" });
    });
  });
});

/** Finds whatever it is asked for. */
function storeThatAgrees(): { -readonly [Name in keyof YcsbStore]: YcsbStore[Name] } {
  return {
    read: (key) => ({ key }) as YcsbRow,
    update: () => true,
    insert: () => {},
    scan: (key) => [{ key } as YcsbRow],
    readModifyWrite: (key) => ({ key }) as YcsbRow,
  };
}
