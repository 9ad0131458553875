// What it costs to survive when nothing happens: transfers on a cluster with etcd, leases and records that
// outlive their coordinators, against a checkout of an earlier version without them (`--before`), which only knows
// clusters of fixed nodes. Such a cluster of this version runs, too. All take turns.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import * as situ from "situ";
import { accountTable, makeRow, type SituModule } from "../fabric/accounts.ts";
import { type Figure, measured, missingFigure, timesFaster } from "../harness/figures.ts";
import { type InFlightContestant, measureInFlight } from "../harness/in-flight.ts";
import { keyMask, randomPairs } from "../harness/random.ts";
import { freePorts, loopback } from "../harness/server-process.ts";
import type { TrustMeasure } from "../trust/measure.ts";
import { BenchCluster, COPIES, NODES } from "./cluster.ts";
import { BenchNode } from "./node.ts";

const NAMES = {
  etcd: "fault-free transfers, against the version before",
  fixed: "the same with fixed nodes",
};
const BAR = { atLeast: 0.95 };
const ROWS = 20_000;
const IN_FLIGHT = 64;
const WARM_UP_MS = 4_000;
const TURN_MS = 3_000;
const ROWS_PER_TRANSACTION = 100;

export const faultFree: TrustMeasure = {
  name: "fault-free",
  async run({ options, progress, memoryFolder }) {
    const before = await moduleOf(options.before);
    if (typeof before === "string") return { figures: missing(before), notes: [] };
    progress.show("fault-free: starting three clusters");
    const living = await BenchCluster.start({ rows: ROWS, memoryFolder, durability: "none" });
    if (typeof living === "string") return { figures: missing(living), notes: [] };
    const fixed = await startFixed(situ, undefined, memoryFolder);
    const earlier = await startFixed(before.module, before.dist, memoryFolder);
    const pairs = randomPairs(ROWS, options.seed);
    const contestants = [
      contestant("before, fixed nodes", before.module, earlier.db, pairs),
      contestant("now, fixed nodes", situ, fixed.db, pairs),
      contestant("now, etcd", situ, living.db, pairs),
    ];
    const plan = {
      inFlight: IN_FLIGHT,
      warmUpMs: options.quick ? 500 : WARM_UP_MS,
      rounds: options.rounds,
      roundMs: options.quick ? 500 : TURN_MS,
    };
    const timings = await measureInFlight(contestants, plan, progress);
    await earlier.close();
    await fixed.close();
    await living.close();
    const [then, now, withEtcd] = contestants.map(({ name }) => measured(timings, name));
    const rate = (values: readonly number[]): string =>
      values.map((nanoseconds) => (1e9 / nanoseconds).toFixed(0)).join(", ");
    return {
      figures: [
        timesFaster(NAMES.etcd, BAR, withEtcd, then),
        timesFaster(NAMES.fixed, BAR, now, then),
      ],
      notes: [
        `fault-free: ${NODES} nodes, ${COPIES} copies, durability "none", ${IN_FLIGHT} transfers under way, ${options.rounds} rounds, ` +
          `interleaved; commits a second before ${rate(then.values)}; now, fixed nodes ${rate(now.values)}; now, ` +
          `etcd ${rate(withEtcd.values)}`,
      ],
    };
  },
};

function missing(why: string): Figure[] {
  return [missingFigure(NAMES.etcd, BAR, why), missingFigure(NAMES.fixed, BAR, why)];
}

/** The library of another checkout, or why there is none. */
async function moduleOf(
  checkout: string | undefined,
): Promise<{ readonly module: SituModule; readonly dist: string } | string> {
  if (checkout === undefined) return "give --before <dir>, a built checkout of another version";
  const dist = join(resolve(checkout), "dist");
  const file = join(dist, "situ.js");
  if (!existsSync(file)) return `${file} does not exist`;
  return { module: (await import(pathToFileURL(file).href)) as SituModule, dist };
}

/** A cluster of fixed nodes, of this version or of another one. */
async function startFixed(
  { open, ...others }: SituModule,
  dist: string | undefined,
  memoryFolder: string,
): Promise<{ readonly db: situ.RemoteDatabase; close(): Promise<void> }> {
  const ports = await freePorts(NODES);
  const cluster = {
    cluster: "fixed",
    nodes: ports.map((port, id) => ({ id, host: loopback, port })),
    backups: COPIES - 1,
  };
  const file = { cluster, durability: "none", memoryBytes: 64 * 2 ** 20 };
  const nodes = ports.map(
    (port, id) =>
      new BenchNode({ id, port, file, memoryFolder, ...(dist === undefined ? {} : { dist }) }),
  );
  for (const node of nodes) node.start();
  for (const node of nodes) await node.listening();
  const Account = accountTable({ open, ...others });
  const connect = ports.map((port) => `${loopback}:${port}`);
  const db = await open({ connect, cluster: "fixed", tables: [Account] });
  for (let first = 0; first < ROWS; first += ROWS_PER_TRANSACTION) {
    await db.transact((tx) => {
      for (let id = first; id < first + ROWS_PER_TRANSACTION; id++) {
        void tx.put(Account, makeRow(id));
      }
    });
  }
  return {
    db,
    close: async () => {
      await db.close();
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

function contestant(
  name: string,
  module: SituModule,
  db: situ.RemoteDatabase,
  pairs: Int32Array,
): InFlightContestant {
  const Account = accountTable(module);
  let cursor = 0;
  return {
    name,
    one() {
      cursor = (cursor + 2) & keyMask;
      const from = pairs[cursor];
      const to = pairs[cursor + 1];
      return db.transact(async (tx) => {
        const [giver, taker] = await Promise.all([tx.get(Account, from), tx.get(Account, to)]);
        if (giver === undefined || taker === undefined) throw new Error(`${name} lost a row`);
        void tx.put(Account, { ...giver, balance: giver.balance - 1n });
        void tx.put(Account, { ...taker, balance: taker.balance + 1n });
      });
    },
  };
}
