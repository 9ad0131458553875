/**
 * What every engine of the suite is held to, whatever it is made of: workloads run and check,
 * each transaction answers as the plain model does, processes share it, and nothing is left behind.
 * A peer that is not installed fails these tests; it is never skipped.
 */

import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { Table } from "situ";
import { afterAll, describe, expect, test } from "vitest";
import type {
  Durability,
  Engine,
  EngineDriver,
  EngineHost,
  EngineName,
  Place,
} from "../../benchmarks/engines/engine.ts";
import { MeasuringProcess } from "../../benchmarks/harness/processes.ts";
import { releaseAll } from "../../benchmarks/harness/resources.ts";
import { enginesOf, type WorkloadName, workloadNames } from "../../benchmarks/suite/workloads.ts";
import { Link, LinkNode } from "../../workloads/linkbench/store.ts";
import { Objects, RetwisObjects } from "../../workloads/objects/store.ts";
import { Stream } from "../../workloads/random/stream.ts";
import { addTallies, type Tally } from "../../workloads/workload.ts";
import { OrderedUserTable, UserTable } from "../../workloads/ycsb/store.ts";
import { compiled } from "../helpers/project-root.ts";
import { fixedSeed, SOAK } from "../helpers/seed.ts";
import type { EngineOrder, EngineTask } from "./engine-child.ts";
import { type Opened, type RunOptions, runSessions, withEngine, withRows } from "./engine-run.ts";
import { type ModelTables, rowsByKey } from "./model-tables.ts";
import { ObjectModel } from "./objects-model.ts";
import { SmallBankModel } from "./smallbank-model.ts";
import { TatpModel } from "./tatp-model.ts";
import { TpccModel } from "./tpcc-model.ts";
import { YcsbModel } from "./ycsb-model.ts";

const SEED = fixedSeed(20_264);
const child = pathToFileURL(compiled("tests/workloads/engine-child.js"));
const small = { size: 200, processes: 1, durability: "none" } as const;
const timeout = 180_000;
/** Between them they call all methods of all stores. */
export const everyMethod = [
  "ycsb-a",
  "ycsb-e",
  "ycsb-f",
  "smallbank",
  "tatp",
  "tpcc",
  "retwis",
] as const;

const sharedByTwo = ["ycsb-a", "smallbank", "tatp", "tpcc", "retwis", "linkbench"] as const;
/** TPC-C's customers: two warehouses, so that some transactions are remote. */
const tpccSize = 600;

/** One of TPC-C's transactions does as much as ten of the others. */
function countOf(workload: WorkloadName, transactions: number): number {
  return workload.startsWith("tpcc") ? Math.ceil(transactions / 10) : transactions;
}

function sizeOf(workload: WorkloadName): number {
  return workload.startsWith("tpcc") ? tpccSize : small.size;
}

export interface EngineUnderTest {
  readonly driver: EngineDriver;
  /** How many transactions it may be given at a time; each number has its own way to run them. */
  readonly inFlight: readonly number[];
  readonly transactions: number;
  /** What can be left of a commit with it, beside "none". */
  readonly onDisk?: readonly Durability[];
  /** Where its files are, which are gone when it was stopped; the cluster's driver does not tell. */
  readonly folderOf?: ((place: Place) => string) | undefined;
  /** Those that are run; all of them, unless it is slow and has only one way to run them. */
  readonly workloads?: readonly WorkloadName[];
  /** A server that takes a while to start: one for all tests, which begin with it empty. */
  readonly isServer?: boolean;
}

const pathOf = ({ path }: Place): string => String(path);

export function holdsForEngine(under: EngineUnderTest): void {
  const { driver, inFlight, transactions, onDisk = ["lazy", "sync"], isServer = false } = under;
  const runs = (workload: WorkloadName): boolean => enginesOf(workload).includes(driver.name);
  const { workloads = workloadNames.filter(runs) } = under;
  const methods = everyMethod.filter(runs);
  const folderOf = "folderOf" in under ? under.folderOf : pathOf;
  const [firstWay] = inFlight;
  let server: EngineHost | undefined;

  afterAll(async () => {
    await server?.stop();
    releaseAll();
  });

  async function startServer(): Promise<EngineHost> {
    // As many connections as any test here wants.
    const most = Math.max(...inFlight);
    const started = await driver.start({ ...small, processes: 2, inFlight: most, bytes: 2 ** 20 });
    if (!started.available) throw new Error(started.missing);
    return started.value;
  }

  const withIt: WithEngine = async (options, use) => {
    if (!isServer || options.durability !== "none") return withEngine(driver, options, use);
    server ??= await startServer();
    return withRows(driver, server.place, options, use);
  };

  describe.each(inFlight)("all workloads, %i in flight", (inFlight) => {
    test.each(inFlight === firstWay ? workloads : methods)("%s", { timeout }, async (workload) => {
      const options: RunOptions = { ...small, size: sizeOf(workload), workload, inFlight };
      const count = countOf(workload, transactions);
      await withIt(options, (opened) => runAndCheck(opened, count, inFlight));
    });
  });

  describe.each(inFlight)("answers as the model does, %i in flight", (inFlight) => {
    test.each(methods)("%s", { timeout }, async (workload) => {
      const options: RunOptions = { ...small, size: sizeOf(workload), workload, inFlight };
      const count = countOf(workload, Math.min(transactions, 1_000));
      await withIt(options, (opened) => compareWithModel(opened, workload, count));
    });
  });

  test.each(inFlight)(
    "objects: any reads and writes, %i in flight",
    { timeout },
    async (inFlight) => {
      const options: RunOptions = { ...small, workload: "objects-4-2", inFlight };
      await withIt(options, ({ engine, workload }) => compareObjects(engine, workload.rows()));
    },
  );

  test.runIf(workloads.includes("linkbench")).each(inFlight)(
    "linkbench: updates and replaced links raise their version, %i in flight",
    { timeout },
    async (inFlight) => {
      const options: RunOptions = { ...small, workload: "linkbench", inFlight };
      // Redis has a link's data alone.
      await withIt(options, (opened) => countVersions(opened, driver.name !== "redis"));
    },
  );

  test.each(onDisk.flatMap((durability) => inFlight.map((inFlight) => ({ durability, inFlight }))))(
    "on disk: $durability, $inFlight in flight",
    { timeout },
    async (how) => {
      const options: RunOptions = { ...small, workload: "smallbank", ...how };
      await withIt(options, (opened) => runAndCheck(opened, 200, how.inFlight));
    },
  );

  test.each(
    sharedByTwo
      .filter((workload) => workloads.includes(workload))
      // One way for each workload, all of them between them; with SITU_SOAK all ways for each.
      .flatMap((workload, i) =>
        (SOAK > 1 ? inFlight : [inFlight[i % inFlight.length]]).map((each) => ({
          workload,
          inFlight: each,
        })),
      ),
  )("two processes: $workload, $inFlight in flight", { timeout }, (how) =>
    twoProcesses(
      driver.name,
      withIt,
      how.workload,
      how.inFlight,
      countOf(how.workload, transactions),
    ),
  );

  if (folderOf === undefined) return;
  test.each(["none", ...onDisk] as const)(
    "%s: stop removes its files",
    { timeout },
    async (durability) => {
      const folder = await filesOf(driver, durability, folderOf);
      expect(existsSync(folder)).toBe(false);
    },
  );
}

type WithEngine = (options: RunOptions, use: (opened: Opened) => Promise<void>) => Promise<void>;

async function runAndCheck(
  { engine, workload }: Opened,
  transactions: number,
  inFlight: number,
): Promise<void> {
  const sessions = [0, 1].map((lane) => workload.session(engine, { seed: SEED, lane, lanes: 2 }));
  await runSessions(sessions, transactions, inFlight);
  const tally = addTallies(sessions.map((session) => session.tally()));
  expect(await workload.check(engine.rows, tally), `seed ${SEED}`).toEqual([]);
  expect(engine.retries()).toBeGreaterThanOrEqual(0);
}

/** One transaction after the other, each on both; then all rows. */
async function compareWithModel(
  { engine, workload }: Opened,
  name: WorkloadName,
  transactions: number,
): Promise<void> {
  const [model, store] = modelOf(name, engine);
  model.load(workload.rows());
  const both = comparing(store, model);
  const asEngine = {
    ...engine,
    ycsb: () => both,
    smallbank: () => both,
    tatp: () => both,
    tpcc: () => both,
    objects: () => both,
  } as never;
  const session = workload.session(asEngine, { seed: SEED, lane: 0, lanes: 1 });
  await runSessions([session], transactions, 1);
  for (const table of workload.tables) {
    expect(await rowsByKey(engine.rows, table), `seed ${SEED}`).toEqual(model.all(table));
  }
}

function modelOf(name: WorkloadName, engine: Engine): [ModelTables & object, object] {
  if (name === "smallbank") return [new SmallBankModel(), engine.smallbank()];
  if (name === "tatp") return [new TatpModel(), engine.tatp()];
  if (name.startsWith("tpcc")) return [new TpccModel(), tpccOf(engine)];
  if (name === "retwis") return [new ObjectModel(RetwisObjects), engine.objects(RetwisObjects)];
  const table = name === "ycsb-e" ? OrderedUserTable : UserTable;
  return [new YcsbModel(table), engine.ycsb(table)];
}

function tpccOf(engine: Engine): object {
  if (engine.tpcc === undefined) throw new Error("the engine has no TPC-C");
  return engine.tpcc();
}

type Method = (...parameters: unknown[]) => unknown;

function comparing(store: object, model: object): object {
  return new Proxy(store, {
    get: (_, name) => {
      const ours = Reflect.get(store, name) as Method;
      const theirs = Reflect.get(model, name) as Method;
      return async (...parameters: unknown[]): Promise<unknown> => {
        const call = `${String(name)}(${JSON.stringify(parameters)}), seed ${SEED}`;
        const answer = await ours.apply(store, parameters);
        expect(sorted(answer), call).toEqual(sorted(theirs.apply(model, parameters)));
        return answer;
      };
    },
  });
}

/** Destinations come in any order; rows of a scan do not. */
function sorted(answer: unknown): unknown {
  const isTexts = Array.isArray(answer) && typeof answer[0] === "string";
  return isTexts ? [...answer].sort() : answer;
}

/** Also what no workload draws: more writes than reads, writes alone. */
async function compareObjects(engine: Engine, rows: Parameters<ModelTables["load"]>[0]) {
  const model = new ObjectModel(Objects);
  model.load(rows);
  const store = engine.objects(Objects);
  const keys = [...model.all(Objects).values()].map((row) => row.key as number);
  const stream = new Stream(SEED, 0);
  for (let i = 0; i < 500; i++) {
    const reads = stream.below(6);
    const writes = reads === 0 ? 1 + stream.below(5) : stream.below(6);
    const chosen = new Set<number>();
    while (chosen.size < Math.max(reads, writes)) chosen.add(keys[stream.below(keys.length)]);
    const list = [...chosen];
    const text = String(i).padStart(31, "-");
    const sum = await store.access(list, reads, writes, i, text);
    expect(sum, `${i}, seed ${SEED}`).toBe(model.access(list, reads, writes, i, text));
  }
  expect(await rowsByKey(engine.rows, Objects)).toEqual(model.all(Objects));
}

async function countVersions({ engine }: Opened, linksHaveThem: boolean): Promise<void> {
  const links = engine.linkbench!();
  const [id, other] = [5_001, 5_002];
  await links.addNode(id, 1, "a");
  expect(await links.updateNode(id, 2, "b")).toBe(true);
  expect(await links.updateNode(id, 3, "c")).toBe(true);
  expect(await links.updateNode(other, 3, "c")).toBe(false);
  expect(await links.addLink(id, 0, other, 4, "d")).toBe(true);
  expect(await links.addLink(id, 0, other, 5, "e")).toBe(false);
  const find = async (table: Table, is: (row: Record<string, unknown>) => boolean) => {
    const found: unknown[] = [];
    for await (const row of engine.rows(table)) {
      if (is(row as Record<string, unknown>)) found.push({ ...(row as object) });
    }
    return found;
  };
  const nodes = await find(LinkNode as Table, (row) => row.id === id);
  expect(nodes).toEqual([{ id, version: 3, time: 3, data: "c" }]);
  const lists = await find(Link as Table, (row) => row.id1 === id);
  expect(lists).toHaveLength(1);
  expect(lists[0]).toMatchObject({ id2: other, time: 5 });
  if (linksHaveThem) expect(lists[0]).toMatchObject({ version: 2 });
}

async function twoProcesses(
  engineName: EngineName,
  withIt: WithEngine,
  name: WorkloadName,
  inFlight: number,
  transactions: number,
): Promise<void> {
  const size = sizeOf(name);
  const options: RunOptions = { ...small, size, workload: name, inFlight, processes: 2 };
  await withIt(options, async ({ engine, place, workload }) => {
    const children = await Promise.all(
      [0, 1].map((lane) => {
        const task: EngineTask = { engine: engineName, place, options, seed: SEED, lane };
        return MeasuringProcess.start<EngineOrder, Tally>(child, task);
      }),
    );
    const tallies = await Promise.all(children.map((each) => each.ask({ transactions })));
    await Promise.all(children.map((each) => each.stop()));
    const problems = await workload.check(engine.rows, addTallies(tallies));
    expect(problems, `seed ${SEED}`).toEqual([]);
  });
}

/** Two processes: with one alone an engine may need no file. */
async function filesOf(
  driver: EngineDriver,
  durability: Durability,
  folderOf: (place: Place) => string,
): Promise<string> {
  let folder = "";
  const options = { ...small, workload: "smallbank", inFlight: 1, durability } as const;
  await withEngine(driver, { ...options, processes: 2 }, async ({ place }) => {
    folder = folderOf(place);
    expect(existsSync(folder)).toBe(true);
  });
  return folder;
}
