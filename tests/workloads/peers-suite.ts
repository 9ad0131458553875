/**
 * What a server must do to be compared with: all workloads, with one and with many in flight, from one
 * process and from two; transaction by transaction as the plain model; and leave nothing behind.
 */

import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine, EngineDriver, EngineHost, Place } from "../../benchmarks/engines/engine.ts";
import { MeasuringProcess } from "../../benchmarks/harness/processes.ts";
import { releaseAll } from "../../benchmarks/harness/resources.ts";
import {
  makeWorkload,
  type Runnable,
  type WorkloadName,
  workloadNames,
} from "../../benchmarks/suite/workloads.ts";
import { Objects } from "../../workloads/objects/store.ts";
import { addTallies, type Tally } from "../../workloads/workload.ts";
import type { OrderedUserTable } from "../../workloads/ycsb/store.ts";
import { rowsByKey } from "./model-tables.ts";
import { ObjectModel } from "./objects-model.ts";
import type { PeerOrder, PeerTask } from "./peers-child.ts";
import { openOptions, type RunOptions, runSessions, withEngine } from "./situ-run.ts";
import { SmallBankModel } from "./smallbank-model.ts";
import { TatpModel } from "./tatp-model.ts";
import { YcsbModel } from "./ycsb-model.ts";

const SEED = 71_615;
const small = { size: 200, processes: 1, durability: "none" } as const;
const child = new URL("../../dist/tests/workloads/peers-child.js", import.meta.url);

/** Where the place of a running server says that its files are. */
export type FolderOf = (place: Place) => string;

export function testServer(driver: EngineDriver, folderOf: FolderOf): void {
  let host: EngineHost;

  beforeAll(async () => {
    // As many connections as any test here wants.
    const started = await driver.start({ ...small, inFlight: 16, processes: 2, bytes: 2 ** 20 });
    if (!started.available) throw new Error(started.missing);
    host = started.value;
  });

  afterAll(async () => {
    await host?.stop();
    releaseAll();
  });

  /** All on the one server: whoever opens it first finds it empty. */
  async function withRows(
    options: RunOptions,
    use: (engine: Engine, workload: Runnable) => Promise<void>,
  ): Promise<void> {
    const workload = makeWorkload(options.workload, options.size);
    const engine = await driver.open(host.place, openOptions(options, workload, true));
    try {
      await engine.load(workload.rows());
      await use(engine, workload);
    } finally {
      await engine.close();
    }
  }

  describe("16 in flight", () => {
    test.each(workloadNames)("%s", async (workload) => {
      const options: RunOptions = { ...small, workload, inFlight: 16 };
      await withRows(options, (engine, runnable) => runAndCheck(engine, runnable));
    });
  });

  describe("one in flight, as the plain model, transaction by transaction", () => {
    test.each(["smallbank", "tatp", "ycsb-e", "ycsb-f", "retwis"] as const)(
      "%s",
      async (workload) => {
        await withRows({ ...small, workload, inFlight: 1 }, compareWithModel(workload));
      },
    );

    test("objects that are written and not read", async () => {
      const options: RunOptions = { ...small, workload: "objects-4-2", inFlight: 1 };
      await withRows(options, async (engine, workload) => {
        const model = new ObjectModel(Objects);
        model.load(workload.rows());
        const store = comparing(engine.objects(Objects), model);
        await store.access([5, 3, 9], 1, 3, 77, "second");
        await store.access([9, 5], 0, 2, 78, "third");
        await store.access([3, 9, 5], 3, 0, 79, "");
        expect(await rowsByKey(engine.rows, Objects)).toEqual(model.all(Objects));
      });
    });
  });

  describe("two processes at once", () => {
    test.each(["smallbank", "tatp", "retwis"] as const)("%s", async (workload) => {
      const options: RunOptions = { ...small, workload, inFlight: 8, processes: 2 };
      await withRows(options, async (engine, runnable) => {
        const { place } = host;
        const children = await Promise.all(
          [0, 1].map((lane) => {
            const task: PeerTask = { engine: driver.name, place, options, seed: SEED, lane };
            return MeasuringProcess.start<PeerOrder, Tally>(child, task);
          }),
        );
        const tallies = await Promise.all(children.map((each) => each.ask({ transactions: 600 })));
        await Promise.all(children.map((each) => each.stop()));
        await check(engine, runnable, addTallies(tallies));
      });
    });
  });

  test.each(["lazy", "sync"] as const)("on disk, %s, and gone when stopped", async (durability) => {
    const options: RunOptions = { ...small, workload: "smallbank", inFlight: 16, durability };
    let folder = "";
    await withEngine(driver, options, async ({ engine, place, workload }) => {
      folder = folderOf(place);
      expect(existsSync(folder)).toBe(true);
      // Few: the disk may be busy with other tests.
      await runAndCheck(engine, workload, 100);
    });
    expect(existsSync(folder)).toBe(false);
  });

  test("the settings say what is compared", () => {
    expect(host.settings).toMatch(/pipelined/);
    expect(host.settings).toMatch(/unix socket/);
  });
}

async function runAndCheck(engine: Engine, workload: Runnable, transactions = 600): Promise<void> {
  const session = workload.session(engine, { seed: SEED, lane: 0, lanes: 1 });
  await runSessions([session], transactions, 16);
  await check(engine, workload, session.tally());
  expect(engine.retries()).toBeGreaterThanOrEqual(0);
}

async function check(engine: Engine, workload: Runnable, tally: Tally): Promise<void> {
  expect(await workload.check(engine.rows, tally), `seed ${SEED}`).toEqual([]);
}

function compareWithModel(name: WorkloadName) {
  return async (engine: Engine, workload: Runnable): Promise<void> => {
    const models = {
      ycsb: new YcsbModel(workload.tables[0] as typeof OrderedUserTable),
      smallbank: new SmallBankModel(),
      tatp: new TatpModel(),
      objects: new ObjectModel(workload.tables[0] as typeof Objects),
    };
    const kind = name === "retwis" ? "objects" : (name.split("-")[0] as keyof typeof models);
    models[kind].load(workload.rows());
    const both: Pick<Engine, "ycsb" | "smallbank" | "tatp" | "objects"> = {
      ycsb: (table) => comparing(engine.ycsb(table), models.ycsb),
      smallbank: () => comparing(engine.smallbank(), models.smallbank),
      tatp: () => comparing(engine.tatp(), models.tatp),
      objects: (table) => comparing(engine.objects(table), models.objects),
    };
    const session = workload.session(both as Engine, { seed: SEED, lane: 0, lanes: 1 });
    for (let transaction = 0; transaction < 800; transaction++) await session.next();
    await check(engine, workload, session.tally());
    for (const table of workload.tables) {
      expect(await rowsByKey(engine.rows, table)).toEqual(models[kind].all(table));
    }
  };
}

/** A store that asks both, and throws where they do not agree. */
function comparing<Store extends object>(ours: Store, model: Store): Store {
  return new Proxy(ours, {
    get(_target, name) {
      return async (...args: unknown[]): Promise<unknown> => {
        const expected = await methodOf(model, name)(...args);
        const answer = await methodOf(ours, name)(...args);
        const call = `${String(name)}(${JSON.stringify(args)}), seed ${SEED}`;
        expect(sorted(answer), call).toEqual(sorted(expected));
        return answer;
      };
    },
  });
}

function methodOf(store: object, name: string | symbol): (...args: unknown[]) => unknown {
  const method = Reflect.get(store, name) as (...args: unknown[]) => unknown;
  return method.bind(store);
}

/** Destinations come in any order; rows of a scan do not. */
function sorted(answer: unknown): unknown {
  const isTexts = Array.isArray(answer) && typeof answer[0] === "string";
  return isTexts ? [...answer].sort() : answer;
}
