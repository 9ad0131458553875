/** FaSST's object store: what is drawn, a check that finds what is wrong, and Situ's stores. */

import { describe, expect, test } from "vitest";
import { drawObjects, objects } from "../../workloads/objects/objects.ts";
import { situObjects, situObjectsAsync } from "../../workloads/objects/situ.ts";
import { type ObjectRow, type ObjectStore, Objects } from "../../workloads/objects/store.ts";
import { Stream } from "../../workloads/random/stream.ts";
import { addTallies, DONE, type Tally, type Workload } from "../../workloads/workload.ts";
import { fixedSeed } from "../helpers/seed.ts";
import { runSessions } from "./engine-run.ts";
import { rowsByKey } from "./model-tables.ts";
import { ObjectModel } from "./objects-model.ts";
import { withSitu } from "./objects-situ.ts";

const SEED = fixedSeed(20_266);
const KEYS = 200;
const one = { seed: SEED, lane: 0, lanes: 1 };
const two = [0, 1].map((lane) => ({ seed: SEED, lane, lanes: 2 }));
/** FaSST §6.1. */
const shapes = [
  { reads: 1, writes: 0 },
  { reads: 4, writes: 0 },
  { reads: 4, writes: 2 },
];

function small(reads: number, writes: number): Workload<ObjectStore> {
  return objects(reads, writes, KEYS, { draws: 1_024 });
}

function loaded(): ObjectModel {
  const model = new ObjectModel(Objects);
  model.load(small(4, 2).rows());
  return model;
}

function run(store: ObjectStore, transactions: number, reads = 4, writes = 2): Tally {
  const session = small(reads, writes).session(store, one);
  for (let i = 0; i < transactions; i++) expect(session.next()).toBe(DONE);
  return session.tally();
}

describe("what is drawn", () => {
  test("values have 40 bytes: count, stamp, and a text with its length", () => {
    const rows = [...small(4, 2).rows()].map(({ row }) => row as ObjectRow);
    expect(rows.map(({ key }) => key)).toEqual([...Array(KEYS).keys()]);
    for (const { count, stamp, text } of rows) {
      expect([count, stamp]).toEqual([0, 0]);
      expect(4 + 4 + 1 + Buffer.byteLength(text)).toBe(40);
    }
    expect(small(4, 2).bytes).toBe(KEYS * 44);
  });

  test("O(4, 2) updates each key that it reads with a chance of a half, 2 on average", () => {
    const draws = 2 ** 16;
    const plan = drawObjects(4, 2, KEYS, draws, new Stream(SEED));
    const byWrites = [0, 0, 0, 0, 0];
    for (const writes of plan.writes) byWrites[writes]++;
    for (const [writes, ways] of [1, 4, 6, 4, 1].entries()) {
      expect(Math.abs(byWrites[writes] / draws - ways / 16), `seed ${SEED}`).toBeLessThan(0.01);
    }
    for (let at = 0; at < draws; at++) {
      const keys = plan.keys.subarray(4 * at, 4 * at + 4);
      if (new Set(keys).size !== 4) throw new Error(`transaction ${at} has ${keys}`);
    }
    const counts = new Float64Array(KEYS);
    for (const key of plan.keys) counts[key]++;
    for (const count of counts) {
      expect(Math.abs((count * KEYS) / (4 * draws) - 1), `seed ${SEED}`).toBeLessThan(0.15);
    }
    expect(Math.max(...drawObjects(4, 0, KEYS, 64, new Stream(SEED)).writes)).toBe(0);
    expect(() => objects(1, 2, KEYS)).toThrow(RangeError);
  });

  test("a store that answers later keeps the keys that it was given", async () => {
    const given: { keys: readonly number[]; copy: number[] }[] = [];
    const store: ObjectStore = {
      async access(keys, reads) {
        given.push({ keys, copy: [...keys] });
        await undefined;
        return reads * 31;
      },
    };
    const session = small(4, 2).session(store, one);
    await Promise.all(Array.from({ length: 50 }, () => session.next()));
    for (const { keys, copy } of given) expect(keys).toEqual(copy);
    expect(session.tally().wrong).toBe(0);
  });
});

describe("the check", () => {
  test.each(shapes)("finds nothing where nothing is wrong: $reads, $writes", async (shape) => {
    const { reads, writes } = shape;
    const model = loaded();
    const tally = run(model, 2_000, reads, writes);
    expect(tally.transactions).toBe(2_000);
    expect(await small(reads, writes).check(model.rows, tally), `seed ${SEED}`).toEqual([]);
    expect(tally.counted).toBeGreaterThanOrEqual(writes * 1_900);
  });

  test("the three workloads share their rows", async () => {
    const model = loaded();
    const tallies = shapes.map(({ reads, writes }) => run(model, 500, reads, writes));
    expect(await small(1, 0).check(model.rows, addTallies(tallies))).toEqual([]);
  });

  const get = (model: ObjectModel, key: number): ObjectRow => model.get(Objects, key) as ObjectRow;
  test.each<[string, (model: ObjectModel) => void, RegExp]>([
    [
      "an update is lost",
      (model) => {
        const written = [...model.all(Objects).values()].find(
          ({ count }) => (count as number) > 0,
        )!;
        model.put(Objects, { ...written, count: (written.count as number) - 1 });
      },
      /objects count \d+ writes, sessions have done \d+/,
    ],
    ["an object is gone", (model) => void model.delete(Objects, 3), /199 objects .* should be 200/],
    [
      "there is one too many",
      (model) => model.put(Objects, { ...get(model, 3), key: KEYS }),
      /1 objects have keys that nobody wrote/,
    ],
    [
      "stamp and text are of two transactions",
      (model) => model.put(Objects, { ...get(model, 3), stamp: 1_000_001 }),
      /1 objects are not as one transaction wrote them: key 3 /,
    ],
    [
      "a text is cut",
      (model) => model.put(Objects, { ...get(model, 3), text: get(model, 3).text.slice(1) }),
      /1 objects are not as one transaction wrote them/,
    ],
  ])("finds it when %s", async (_, plant, problem) => {
    const model = loaded();
    const tally = run(model, 1_000);
    plant(model);
    expect((await small(4, 2).check(model.rows, tally)).join("; ")).toMatch(problem);
  });

  test("sessions notice answers that whole objects would not give", async () => {
    const model = loaded();
    const tally = run({ access: () => 4 * 31 - 1 }, 10);
    expect(tally.wrong).toBe(10);
    const problems = await small(4, 2).check(model.rows, { ...tally, counted: 0 });
    expect(problems).toEqual(["10 transactions read something else than whole objects"]);
  });

  test("a store that loses updates under concurrency is caught", async () => {
    const model = loaded();
    // Reads now, writes later: what others did in between is overwritten.
    const careless: ObjectStore = {
      async access(keys, reads, writes, stamp, text) {
        const rows = keys.map((key) => get(model, key));
        await undefined;
        for (const row of rows.slice(0, Math.min(reads, writes))) {
          model.put(Objects, { ...row, count: row.count + 1, stamp, text });
        }
        return rows.reduce((sum, row) => sum + row.count + row.text.length, 0);
      },
    };
    const session = small(4, 2).session(careless, one);
    await runSessions([session], 1_000, 16);
    const problems = await small(4, 2).check(model.rows, session.tally());
    expect(problems).toEqual([expect.stringMatching(/^objects count \d+ writes, /)]);
  });
});

describe.each([
  { name: "transactSync", make: situObjects, inFlight: 1 },
  { name: "transact", make: situObjectsAsync, inFlight: 8 },
])("on Situ, $name", ({ make, inFlight }) => {
  test.each(shapes)("O($reads, $writes): two lanes, and the check holds", async (shape) => {
    const { reads, writes } = shape;
    const workload = small(reads, writes);
    await withSitu(workload, async (db, read) => {
      const store = make(db, Objects);
      const sessions = two.map((options) => workload.session(store, options));
      expect(await runSessions(sessions, 3_000, inFlight)).toBe(0);
      const tally = addTallies(sessions.map((session) => session.tally()));
      expect(await workload.check(read, tally), `seed ${SEED}`).toEqual([]);
    });
  });

  test.each(shapes)("O($reads, $writes): answers and rows are the model's", async (shape) => {
    const { reads, writes } = shape;
    const workload = small(reads, writes);
    const model = loaded();
    await withSitu(workload, async (db, read) => {
      const store = make(db, Objects);
      const both: ObjectStore = {
        async access(keys, ...rest) {
          const answer = await store.access(keys, ...rest);
          expect(answer).toBe(model.access(keys, ...rest));
          return answer;
        },
      };
      await runSessions([workload.session(both, one)], 1_000, 1);
      expect(await rowsByKey(read, Objects), `seed ${SEED}`).toEqual(model.all(Objects));
    });
  });

  test("an object that is not there fails the transaction, and nothing is written", async () => {
    const workload = small(4, 2);
    await withSitu(workload, async (db, read) => {
      const store = make(db, Objects);
      const access = async (): Promise<number> => store.access([1, KEYS], 2, 1, 5, "lost");
      await expect(access()).rejects.toThrow(`there is no object ${KEYS}`);
      expect(await workload.check(read, {})).toEqual([]);
    });
  });
});
