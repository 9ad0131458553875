// A cluster of our own on loopback: three `situ node` processes, three copies of each row.

import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { diskFolder } from "../../durable/disk.ts";
import { freePorts } from "../../harness/free-ports.ts";
import { temporaryFolder } from "../../harness/resources.ts";
import { accepts, loopback, ServerProcess } from "../../harness/server-process.ts";
import type { StartOptions } from "../engine.ts";
import { bundleFolder, memoryBytesFor } from "../situ/version.ts";

export const nodeCount = 3;
const backups = 2;
const memoryFolder = process.env.SITU_MEMORY_DIR ?? "/dev/shm";
/** Another process may take a free port before a node binds it. */
const attempts = 3;

export interface Nodes {
  readonly cluster: string;
  readonly connect: readonly string[];
  stop(): Promise<void>;
}

interface Node {
  readonly server: ServerProcess;
  readonly folders: readonly string[];
}

export async function startNodes(options: StartOptions): Promise<Nodes> {
  for (let attempt = 1; ; attempt++) {
    const ports = await freePorts(nodeCount);
    const name = `suite-${process.pid}-${ports[0]}`;
    const addresses = ports.map((port, id) => ({ id, host: loopback, port }));
    const cluster = { cluster: name, epoch: 1, backups, nodes: addresses };
    const nodes = ports.map((_, id) => startNode(id, cluster, options));
    try {
      for (const [id, { server }] of nodes.entries()) await server.ready(() => accepts(ports[id]));
      const connect = ports.map((port) => `${loopback}:${port}`);
      return { cluster: name, connect, stop: () => stopAll(nodes) };
    } catch (error) {
      await stopAll(nodes);
      if (attempt === attempts) throw error;
    }
  }
}

function startNode(
  id: number,
  cluster: object,
  { durability, bytes, protocol, techniques }: StartOptions,
): Node {
  const folder = temporaryFolder(durability === "none" ? tmpdir() : diskFolder());
  const memoryDir = temporaryFolder(memoryFolder);
  const file = join(folder, "node.json");
  const path = join(folder, "store");
  const memoryBytes = memoryBytesFor(bytes);
  const procedures = [fileURLToPath(new URL("./procedures.js", import.meta.url))];
  // A NIC that commits keeps its rows in memory, without a folder.
  const folders = protocol === "xenic" ? { techniques } : { path, durability };
  const node = { id, cluster, ...folders, memoryBytes, protocol, procedures };
  writeFileSync(file, JSON.stringify(node));
  const cli = join(bundleFolder, "situ-cli.js");
  const env = { ...process.env, SITU_MEMORY_DIR: memoryDir };
  const server = new ServerProcess(process.execPath, [cli, "node", "--config", file], env);
  return { server, folders: [folder, memoryDir] };
}

async function stopAll(nodes: readonly Node[]): Promise<void> {
  await Promise.all(nodes.map(({ server }) => server.stop()));
  for (const { folders } of nodes) {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  }
}
