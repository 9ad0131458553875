/**
 * Four nodes on this machine. On four machines it is the same: a file like the one below on each, and the
 * command
 *
 *   situ node --config node.json
 *
 * Nodes find each other through etcd. The first three form the cluster, for three copies of each row; the
 * fourth joins it. One that was killed and is started again with its folder joins, too.
 */

import { type ChildProcess, execFile } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ended, freePorts, start, stop } from "./processes.ts";

/** Where the command line is: next to the library. Installed, it is `npx situ`. */
const SITU = fileURLToPath(new URL("situ-cli.js", import.meta.resolve("situ")));
const PROCEDURES = fileURLToPath(new URL("procedures.js", import.meta.url));
const run = promisify(execFile);

export interface Node {
  readonly id: number;
  readonly address: string;
  /** The folder of its store. */
  readonly path: string;
  readonly config: string;
  process: ChildProcess;
}

/** Writes a file for each node, starts all of them, and waits until they listen. */
export async function startNodes(
  folder: string,
  count: number,
  etcd: string,
  started: (node: Node) => void,
): Promise<void> {
  const ports = await freePorts(count);
  const nodes = ports.map((port, id): Node => {
    const path = join(folder, `node-${id}`);
    const config = join(folder, `node-${id}.json`);
    const file = {
      id,
      path,
      listen: { host: "127.0.0.1", port },
      cluster: { cluster: "bank", etcd: [etcd], backups: 2 },
      procedures: [PROCEDURES],
      memoryBytes: 64 * 2 ** 20,
    };
    writeFileSync(config, JSON.stringify(file, undefined, 2));
    return { id, address: `127.0.0.1:${port}`, path, config, process: startNode(config) };
  });
  nodes.forEach(started);
  await Promise.all(nodes.map(listening));
}

/** Starts a node again that was killed. */
export async function restart(node: Node): Promise<void> {
  node.process = startNode(node.config);
  await listening(node);
}

function startNode(config: string): ChildProcess {
  return start(process.execPath, [SITU, "node", "--config", config, "--json"]);
}

/** Its first line says that it listens; a node that cannot start says why, and ends. */
async function listening({ id, process: child }: Node): Promise<void> {
  const lines = createInterface({ input: child.stdout! });
  const end = once(child, "close").then(() => {
    throw ended(`node ${id}`, child);
  });
  end.catch(() => {});
  await Promise.race([once(lines, "line"), end]);
}

/** SIGTERM lets a node finish what it does and close its store. */
export async function stopNodes(nodes: readonly Node[]): Promise<Error[]> {
  const codes = await Promise.all(nodes.map(({ process: child }) => stop(child, "SIGTERM")));
  const failed = nodes.filter((_, i) => codes[i] !== 0);
  return failed.map(({ id, process: child }) => ended(`node ${id}`, child));
}

/** What `situ cluster status` says first: how the cluster is, and what to do. */
export async function status(nodes: readonly Node[]): Promise<string> {
  const connect = nodes.map(({ address }) => address).join();
  const args = [SITU, "cluster", "status", "--connect", connect, "--cluster", "bank"];
  // Its exit code is 1 while rows cannot be used.
  const { stdout } = await run(process.execPath, args).catch((error: { stdout: string }) => error);
  return stdout.split("\n", 1)[0];
}
