/** Retwis: TAPIR's mix and Xenic's skew in what is drawn, and the check on Situ's stores. */

import { describe, expect, test } from "vitest";
import { situObjects, situObjectsAsync } from "../../workloads/objects/situ.ts";
import { type ObjectRow, type ObjectStore, RetwisObjects } from "../../workloads/objects/store.ts";
import { Stream } from "../../workloads/random/stream.ts";
import { Scattered, Zipfian, zetaOf } from "../../workloads/random/zipfian.ts";
import { drawRetwis, RETWIS_THETA, retwis, retwisKinds } from "../../workloads/retwis/retwis.ts";
import { addTallies, DONE } from "../../workloads/workload.ts";
import { fixedSeed } from "../helpers/seed.ts";
import { runSessions } from "./engine-run.ts";
import { rowsByKey } from "./model-tables.ts";
import { ObjectModel } from "./objects-model.ts";
import { withSitu } from "./objects-situ.ts";

const SEED = fixedSeed(20_267);
const KEYS = 200;
const one = { seed: SEED, lane: 0, lanes: 1 };
const two = [0, 1].map((lane) => ({ seed: SEED, lane, lanes: 2 }));
const small = retwis(KEYS, { draws: 1_024 });

describe("what is drawn", () => {
  const items = 10_000;
  const draws = 2 ** 16;
  const plan = drawRetwis(new Scattered(new Zipfian(items, RETWIS_THETA)), draws, new Stream(SEED));
  const keysOf = (at: number): Int32Array => {
    const first = at * plan.stride;
    return plan.keys.subarray(first, first + Math.max(plan.reads[at], plan.writes[at]));
  };

  test("TAPIR, Table 2: kinds, gets and puts", () => {
    expect(retwisKinds.reduce((sum, { percent }) => sum + percent, 0)).toBe(100);
    const counts = [0, 0, 0, 0];
    const timelines = new Array<number>(11).fill(0);
    for (let at = 0; at < draws; at++) {
      const kind = plan.kinds[at];
      counts[kind]++;
      const { gets, puts } = retwisKinds[kind];
      const isRight = plan.writes[at] === puts && (puts === 0 || plan.reads[at] === gets);
      if (!isRight) throw new Error(`transaction ${at} is no ${retwisKinds[kind].name}`);
      if (puts === 0) timelines[plan.reads[at]]++;
    }
    for (const [kind, { percent }] of retwisKinds.entries()) {
      expect(Math.abs(counts[kind] / draws - percent / 100), `seed ${SEED}`).toBeLessThan(0.01);
    }
    for (const gets of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
      expect(Math.abs(timelines[gets] / counts[3] - 0.1), `seed ${SEED}`).toBeLessThan(0.01);
    }
  });

  test("keys of a transaction are different, and in order", () => {
    for (let at = 0; at < draws; at++) {
      const keys = keysOf(at);
      for (let index = 1; index < keys.length; index++) {
        if (keys[index] <= keys[index - 1]) throw new Error(`transaction ${at} has ${keys}`);
      }
    }
  });

  test("Xenic §5.4: zipf 0.5, values of 64 bytes, half of the transactions read only", () => {
    const counts = new Float64Array(items);
    let total = 0;
    for (let at = 0; at < draws; at++) {
      for (const key of keysOf(at)) counts[key]++;
      total += keysOf(at).length;
    }
    const byPopularity = counts.sort().reverse();
    const zeta = zetaOf(items, RETWIS_THETA);
    // The most popular key, and the most popular tenth of all keys: 0.31 of the draws.
    expect(Math.abs((byPopularity[0] / total) * zeta - 1), `seed ${SEED}`).toBeLessThan(0.15);
    const tenth = byPopularity.subarray(0, items / 10).reduce((sum, count) => sum + count) / total;
    const law = zetaOf(items / 10, RETWIS_THETA) / zeta;
    expect(Math.abs(tenth - law), `seed ${SEED}`).toBeLessThan(0.02);
    for (const { row } of small.rows()) {
      expect(4 + 4 + 1 + Buffer.byteLength((row as ObjectRow).text)).toBe(64);
    }
    expect(small.bytes).toBe(KEYS * 68);
  });
});

describe("the check", () => {
  function loaded(): ObjectModel {
    const model = new ObjectModel(RetwisObjects);
    model.load(small.rows());
    return model;
  }

  test("counts what was read and written, not what was only written", async () => {
    const model = loaded();
    const session = small.session(model, one);
    let counted = 0;
    for (let i = 0; i < 1_500; i++) {
      expect(session.next()).toBe(DONE);
      counted += [1, 2, 3, 0][session.drawn];
    }
    expect(session.tally()).toEqual({ transactions: 1_500, counted, wrong: 0 });
    expect(await small.check(model.rows, session.tally()), `seed ${SEED}`).toEqual([]);
  });

  test("finds a transaction that was done by halves, or twice", async () => {
    for (const times of [0.5, 2]) {
      const model = loaded();
      let calls = 0;
      const store: ObjectStore = {
        access(keys, reads, writes, stamp, text) {
          const isBroken = ++calls > 100 && reads >= 2 && writes >= 2;
          if (isBroken && times === 2) model.access(keys, reads, writes, stamp, text);
          const done = isBroken && times === 0.5 ? 1 : writes;
          return model.access(keys, reads, done, stamp, text);
        },
      };
      const session = small.session(store, one);
      for (let i = 0; i < 300; i++) void session.next();
      const problems = await small.check(model.rows, session.tally());
      expect(problems).toEqual([expect.stringMatching(/^objects count \d+ writes, sessions/)]);
    }
  });

  test.each([
    { name: "transactSync", make: situObjects, inFlight: 1 },
    { name: "transact", make: situObjectsAsync, inFlight: 8 },
  ])("holds on Situ, $name, two lanes; and alone the rows are the model's", async (how) => {
    await withSitu(small, async (db, read) => {
      const store = how.make(db, RetwisObjects);
      const sessions = two.map((options) => small.session(store, options));
      expect(await runSessions(sessions, 3_000, how.inFlight)).toBe(0);
      const tally = addTallies(sessions.map((session) => session.tally()));
      expect(await small.check(read, tally), `seed ${SEED}`).toEqual([]);
    });
    const model = loaded();
    await runSessions([small.session(model, one)], 1_000, 1);
    await withSitu(small, async (db, read) => {
      await runSessions([small.session(how.make(db, RetwisObjects), one)], 1_000, 1);
      expect(await rowsByKey(read, RetwisObjects)).toEqual(model.all(RetwisObjects));
    });
  });
});
