// A cluster of our own on loopback: three `situ node` processes, three copies of each row, nothing on
// disk; and the client of this process.

import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as situ from "situ";
import { type Configuration, configurationOf } from "../../src/cluster/configuration.ts";
import { ClusterPlacement } from "../../src/cluster/placement.ts";
import { f64, i64, table, u32 } from "../../src/index.ts";
import { RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import type { ProtocolName } from "../../src/protocols/places.ts";
import { freePorts } from "../harness/free-ports.ts";
import { keyMask, randomPairs } from "../harness/random.ts";
import { temporaryFolder } from "../harness/resources.ts";
import { accepts, loopback, ServerProcess } from "../harness/server-process.ts";
import { accountTable, checkRow, checkTotal, makeRow } from "./accounts.ts";

export const Account = accountTable(situ);

export const nodeCount = 3;
export const backupCount = 2;
const memoryBytes = 256 * 2 ** 20;
const rowsPerTransaction = 100;
const readsAtOnce = 256;
/** Another process may take a free port before a node binds it. */
const attempts = 3;

export type Bank = Awaited<ReturnType<typeof connect>>;

export interface Cluster {
  readonly db: Bank;
  readonly configuration: Configuration;
  /** Checks that no transfer lost money, then ends client and nodes. */
  close(): Promise<void>;
}

export async function startCluster(
  protocol: ProtocolName,
  rows: number,
  memoryFolder: string,
): Promise<Cluster> {
  const { configuration, nodes } = await startNodes(protocol, memoryFolder);
  const db = await connect(configuration);
  await load(db, rows);
  return {
    db,
    configuration,
    close: async () => {
      await check(db, `situ, ${protocol}`, rows);
      await db.close();
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

interface Nodes {
  readonly configuration: Configuration;
  readonly nodes: readonly ServerProcess[];
}

async function startNodes(protocol: ProtocolName, memoryFolder: string): Promise<Nodes> {
  for (let attempt = 1; ; attempt++) {
    const ports = await freePorts(nodeCount);
    const configuration = configurationOf(
      {
        cluster: `bench-${process.pid}`,
        nodes: ports.map((port, id) => ({ id, host: loopback, port })),
        backups: backupCount,
      },
      "the bench",
    );
    const nodes = ports.map((_, id) => startNode(id, configuration, protocol, memoryFolder));
    try {
      for (const [id, node] of nodes.entries()) await node.ready(() => accepts(ports[id]));
      return { configuration, nodes };
    } catch (error) {
      await Promise.all(nodes.map((node) => node.stop()));
      if (attempt === attempts) throw error;
    }
  }
}

function startNode(
  id: number,
  cluster: Configuration,
  protocol: ProtocolName,
  memoryFolder: string,
): ServerProcess {
  const folder = temporaryFolder(tmpdir());
  const file = join(folder, "node.json");
  const procedures = [fileURLToPath(new URL("./procedures.js", import.meta.url))];
  const path = join(folder, "store");
  const node = { id, path, cluster, protocol, procedures, memoryBytes, durability: "none" };
  writeFileSync(file, JSON.stringify(node));
  const cli = join(dirname(fileURLToPath(import.meta.resolve("situ"))), "situ-cli.js");
  const env = { ...process.env, SITU_MEMORY_DIR: temporaryFolder(memoryFolder) };
  return new ServerProcess(process.execPath, [cli, "node", "--config", file], env);
}

export function connect({ nodes, cluster }: Configuration) {
  return situ.open({
    connect: nodes.map(({ host, port }) => `${host}:${port}`),
    cluster,
    tables: [Account],
  });
}

/** One at a time: while a table is small and grows, bulk loads are in each other's way. */
async function load(db: Bank, rows: number): Promise<void> {
  for (let first = 0; first < rows; first += rowsPerTransaction) {
    await db.transact((tx) => {
      const end = Math.min(first + rowsPerTransaction, rows);
      for (let id = first; id < end; id++) void tx.put(Account, makeRow(id));
    });
  }
  for (const id of [0, 1, rows >> 1, rows - 1]) checkRow("situ", await db.get(Account, id), id);
}

async function check(db: Bank, name: string, rows: number): Promise<void> {
  const balances: bigint[] = [];
  for (let first = 0; first < rows; first += readsAtOnce) {
    const ids = Array.from({ length: Math.min(readsAtOnce, rows - first) }, (_, i) => first + i);
    const found = await Promise.all(ids.map((id) => db.get(Account, id)));
    for (const [i, row] of found.entries()) {
      checkRow(name, row, first + i);
      if (row !== undefined) balances.push(row.balance);
    }
  }
  checkTotal(name, balances, rows);
}

/** The primary of each key. */
function primariesOf(configuration: Configuration, rows: number): Uint8Array {
  // The client's table is of the bundle, which keeps its placement to itself.
  const own = accountTable({ table, u32, i64, f64 } as unknown as typeof situ);
  const remote = new RemoteTable(
    own as unknown as ConstructorParameters<typeof RemoteTable>[0],
    new ClusterPlacement(configuration),
  );
  return Uint8Array.from({ length: rows }, (_, id) => remote.primaryOf(remote.partitionOf(id)));
}

/** A key of each primary. */
export function keyOfEachPrimary(configuration: Configuration): number[] {
  const primaries = primariesOf(configuration, 1_000);
  return configuration.nodes.map(({ id }) => primaries.indexOf(id));
}

/** Random keys; those at 2n and 2n + 1 have different primaries. */
export function pairsOnTwoPrimaries(
  configuration: Configuration,
  rows: number,
  seed: number,
): Int32Array {
  const primaries = primariesOf(configuration, rows);
  const pairs = randomPairs(rows, seed);
  for (let index = 0; index <= keyMask; index += 2) {
    const primary = primaries[pairs[index]];
    while (primaries[pairs[index + 1]] === primary) {
      pairs[index + 1] = (pairs[index + 1] + 1) % rows;
    }
  }
  return pairs;
}
