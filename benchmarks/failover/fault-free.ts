// What it costs to survive when nothing happens: transfers on a cluster with etcd, leases and records that
// outlive their coordinators, against a checkout of an earlier version without them (`--before`), which only knows
// clusters of fixed nodes. Such a cluster of this version runs, too. All take turns. Beside the rate stands the
// processor time of a transfer, at the nodes and at the client: it depends less on who else uses the machine.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import * as situ from "situ";
import { accountTable, makeRow, type SituModule } from "../fabric/accounts.ts";
import { type Figure, missingFigure, timesFaster } from "../harness/figures.ts";
import { freePorts } from "../harness/free-ports.ts";
import { keyMask, randomPairs } from "../harness/random.ts";
import { loopback } from "../harness/server-process.ts";
import { summarize } from "../harness/statistics.ts";
import type { TrustMeasure } from "../trust/measure.ts";
import { Account, BenchCluster, COPIES, NODES } from "./cluster.ts";
import { WARM_UP } from "./load.ts";
import { BenchNode } from "./node.ts";
import { type TurnContestant, takeTurns } from "./turns.ts";

const NAMES = {
  etcd: "fault-free transfers, against the version before",
  fixed: "the same with fixed nodes",
};
const BAR = { atLeast: 0.95 };
const ROWS = 8_000;
const IN_FLIGHT = 64;
const TURN_MS = 2_500;
const ROWS_PER_TRANSACTION = 100;

export const faultFree: TrustMeasure = {
  name: "fault-free",
  async run({ options, progress, memoryFolder }) {
    const before = await moduleOf(options.before);
    if (typeof before === "string") return { figures: missing(before), notes: [] };
    progress.show("fault-free: starting three clusters");
    const [living, fixed, earlier] = await Promise.all([
      BenchCluster.start({ rows: ROWS, memoryFolder, durability: "none" }),
      startFixed(situ, undefined, memoryFolder),
      startFixed(before.module, before.dist, memoryFolder),
    ]);
    if (typeof living === "string") return { figures: missing(living), notes: [] };
    const pairs = randomPairs(ROWS, options.seed);
    const contestants = [
      contestant("before, fixed nodes", earlier, pairs),
      contestant("now, fixed nodes", fixed, pairs),
      contestant(
        "now, etcd",
        { db: living.db, nodes: living.nodes, Account, ledger: living.ledger },
        pairs,
      ),
    ];
    const [then, now, withEtcd] = await takeTurns(
      contestants,
      {
        inFlight: IN_FLIGHT,
        warmUp: WARM_UP,
        rounds: options.rounds,
        roundMs: options.quick ? 1_000 : TURN_MS,
      },
      progress,
    );
    await earlier.close();
    await fixed.close();
    await living.close();
    return {
      figures: [
        timesFaster(NAMES.etcd, BAR, withEtcd, then),
        timesFaster(NAMES.fixed, BAR, now, then),
      ],
      notes: [
        `fault-free: ${NODES} nodes, ${COPIES} copies, durability "none", ${IN_FLIGHT} transfers under way, ${options.rounds} rounds, ` +
          `interleaved, after ${WARM_UP} transfers of each`,
        ...[then, now, withEtcd].map(
          ({ name, values, cpuMicroseconds }) =>
            `fault-free: ${name}: ${values.map((value) => (1e9 / value).toFixed(0)).join(", ")} commits a second; ` +
            `${summarize(cpuMicroseconds).median.toFixed(0)} µs of processor time for each ` +
            `(${cpuMicroseconds.map((value) => value.toFixed(0)).join(", ")})`,
        ),
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

type AccountTable = ReturnType<typeof accountTable>;

interface Running {
  readonly db: situ.RemoteDatabase;
  readonly nodes: readonly BenchNode[];
  /** The table that it was opened with. */
  readonly Account: AccountTable;
  /** What transfers have added to each row, for what is checked in the end. */
  readonly ledger: Int32Array;
}

/** A cluster of fixed nodes, of this version or of another one. */
async function startFixed(
  { open, ...others }: SituModule,
  dist: string | undefined,
  memoryFolder: string,
): Promise<Running & { close(): Promise<void> }> {
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
  const own = accountTable({ open, ...others });
  const connect = ports.map((port) => `${loopback}:${port}`);
  const db = await open({ connect, cluster: "fixed", tables: [own] });
  for (let first = 0; first < ROWS; first += ROWS_PER_TRANSACTION) {
    await db.transact((tx) => {
      for (let id = first; id < first + ROWS_PER_TRANSACTION; id++) {
        void tx.put(own, makeRow(id));
      }
    });
  }
  return {
    db,
    nodes,
    Account: own,
    ledger: new Int32Array(ROWS),
    close: async () => {
      await db.close();
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

function contestant(
  name: string,
  { db, nodes, Account: own, ledger }: Running,
  pairs: Int32Array,
): TurnContestant {
  let cursor = 0;
  return {
    name,
    cpuMs: () => nodes.reduce((sum, node) => sum + node.cpuMs(), 0),
    async one() {
      cursor = (cursor + 2) & keyMask;
      const from = pairs[cursor];
      const to = pairs[cursor + 1];
      await db.transact(async (tx) => {
        const [giver, taker] = await Promise.all([tx.get(own, from), tx.get(own, to)]);
        if (giver === undefined || taker === undefined) throw new Error(`${name} lost a row`);
        void tx.put(own, { ...giver, balance: giver.balance - 1n });
        void tx.put(own, { ...taker, balance: taker.balance + 1n });
      });
      ledger[from]--;
      ledger[to]++;
    },
  };
}
