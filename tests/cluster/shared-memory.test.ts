/**
 * The same protocols over the third fabric: nodes and a client of one machine, messages through rings,
 * verbs done directly in the memory of the node.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { configurationOf } from "../../src/cluster/configuration.ts";
import { RingPlacement } from "../../src/cluster/placement.ts";
import { NodeService } from "../../src/cluster/service.ts";
import { Session } from "../../src/cluster/session.ts";
import { attach } from "../../src/database/attach.ts";
import { settingsOf } from "../../src/database/options.ts";
import { RemoteDatabase } from "../../src/database/remote/remote-database.ts";
import { StoreBackupLog } from "../../src/database/served/backup-log.ts";
import { StoreTables } from "../../src/database/served/served-tables.ts";
import { memoryFolder, readIdentity } from "../../src/database/store-files.ts";
import { CLIENT, type Incoming, type NodeId } from "../../src/fabric/fabric.ts";
import { openSharedMemory } from "../../src/fabric/shared-memory/endpoint.ts";
import type { NodePlace } from "../../src/fabric/shared-memory/options.ts";
import { destroy, i64, open, table, u32 } from "../../src/index.ts";
import { Driver } from "../../src/protocols/driver.ts";

const Account = table("accounts", { id: u32(), balance: i64() }, { key: "id" });
const NODES: readonly NodeId[] = [0, 1, 2];
const ROWS = 60;
const configuration = configurationOf(
  { nodes: NODES.map((id) => ({ id, host: "here", port: id })), backups: 2 },
  "the test",
);

/** How to undo what a test has set up, the last first. */
const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (let each = undo.pop(); each !== undefined; each = undo.pop()) await each();
});

async function startNodes(root: string): Promise<ReadonlyMap<NodeId, NodePlace>> {
  const places = new Map<NodeId, NodePlace>();
  for (const id of NODES) {
    const path = join(root, `node-${id}`);
    const db = await open({ path, durability: "none", memoryBytes: 32 * 2 ** 20 });
    undo.push(() => destroy(path));
    undo.push(() => db.close());
    const folder = join(root, `rings-${id}`);
    places.set(id, { folder, memoryFolder: memoryFolder(readIdentity(path)!) });
  }
  for (const id of NODES) await startNode(root, id, places);
  return places;
}

async function startNode(
  root: string,
  id: NodeId,
  nodes: ReadonlyMap<NodeId, NodePlace>,
): Promise<void> {
  const settings = settingsOf({ path: join(root, `node-${id}`) });
  const executor = await attach(settings, (attached) => attached.executor);
  const placement = new RingPlacement(configuration);
  let service: NodeService | undefined;
  const endpoint = await openSharedMemory({
    self: id,
    nodes,
    epoch: configuration.epoch,
    listen: { folder: nodes.get(id)!.folder },
    memory: executor.memory,
    service: (incoming: Incoming) => service!.serve(incoming),
  });
  service = new NodeService({
    endpoint,
    executor,
    tables: new StoreTables(executor, placement),
    placement,
    log: new StoreBackupLog(executor),
    description: { node: id, instance: `node ${id}`, configuration, protocol: "one-sided" },
    place: 0,
    firstSequence: 1,
  });
  undo.push(async () => {
    await service.drain();
    await endpoint.close();
    service.close();
    executor.close();
  });
}

describe.each([
  ["by message", false],
  ["by verb", true],
])("a cluster whose fabric is shared memory, read %s", (_, readsByVerb) => {
  test("transfers between rows of all nodes keep the sum", async () => {
    const root = mkdtempSync(join(tmpdir(), "situ-test-shm-cluster-"));
    undo.push(() => rmSync(root, { recursive: true, force: true }));
    const nodes = await startNodes(root);
    const endpoint = await openSharedMemory({ self: CLIENT, nodes, epoch: configuration.epoch });
    const driver = new Driver(endpoint);
    const session = new Session("client", configuration);
    const db = new RemoteDatabase({ endpoint, driver, session, timeoutMs: 120_000, readsByVerb });
    undo.push(() => db.close());
    await driver.start(session.meet(), 20_000);
    await db.openTables([Account]);

    await db.transact(async (tx) => {
      for (let id = 0; id < ROWS; id++) await tx.insert(Account, { id, balance: 100n });
    });
    const transfer = (from: number, to: number): Promise<void> =>
      db.transact(async (tx) => {
        const [a, b] = await tx.getMany(Account, [from, to]);
        await tx.update(Account, from, { balance: a!.balance - 1n });
        await tx.update(Account, to, { balance: b!.balance + 1n });
      });
    const pairs = Array.from({ length: 200 }, (_, i) => [i % ROWS, (i * 7 + 1) % ROWS] as const);
    for (let at = 0; at < pairs.length; at += 8) {
      const some = pairs.slice(at, at + 8).filter(([from, to]) => from !== to);
      await Promise.all(some.map(([from, to]) => transfer(from, to)));
    }
    const rows = await Promise.all(Array.from({ length: ROWS }, (_, id) => db.get(Account, id)));
    expect(rows.reduce((sum, row) => sum + row!.balance, 0n)).toBe(100n * BigInt(ROWS));
    expect(new Set(rows.map((row) => row!.balance)).size).toBeGreaterThan(1);
    expect(await db.get(Account, ROWS)).toBeUndefined();
  });
});
