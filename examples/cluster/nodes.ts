/**
 * Three nodes on this machine. On three machines it is the same: a node.json on each, with the same
 * cluster in it, and the command
 *
 *   situ node --config node.json
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** Where the command line is: next to the library. Installed, it is `npx situ`. */
const SITU = fileURLToPath(new URL("situ-cli.js", import.meta.resolve("situ")));
const PROCEDURES = fileURLToPath(new URL("procedures.js", import.meta.url));

export interface Node {
  readonly id: number;
  readonly address: string;
  /** The folder of its store. */
  readonly path: string;
  readonly process: ChildProcess;
}

/** Writes a configuration for each node, starts all of them, and waits until they listen. */
export async function startNodes(
  folder: string,
  count: number,
  started: (node: Node) => void,
): Promise<void> {
  const ports = await freePorts(count);
  const cluster = {
    nodes: ports.map((port, id) => ({ id, host: "127.0.0.1", port })),
    // Copies of each row beside the primary's.
    backups: 1,
  };
  const ready = ports.map(async (port, id) => {
    const path = join(folder, `node-${id}`);
    const config = join(folder, `node-${id}.json`);
    const configuration = {
      id,
      path,
      cluster,
      procedures: [PROCEDURES],
      memoryBytes: 64 * 2 ** 20,
    };
    writeFileSync(config, JSON.stringify(configuration, undefined, 2));
    const child = spawn(process.execPath, [SITU, "node", "--config", config, "--json"], {
      stdio: ["ignore", "pipe", "inherit"],
      // Ctrl-C is for the program that started them: it stops them in its own order.
      detached: true,
    });
    started({ id, address: `127.0.0.1:${port}`, path, process: child });
    await listening(child, id);
  });
  await Promise.all(ready);
}

/** Its first line says that it listens; a node that cannot start says why, and ends. */
async function listening(child: ChildProcess, id: number): Promise<void> {
  const lines = createInterface({ input: child.stdout! });
  const ended = once(child, "exit").then(() => {
    throw new Error(`node ${id} has ended`);
  });
  ended.catch(() => {});
  await Promise.race([once(lines, "line"), ended]);
}

/** SIGTERM lets a node finish what it does and close its store. */
export async function stopNodes(nodes: readonly Node[]): Promise<boolean> {
  const codes = nodes.map(async ({ process: child }) => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    }
    return child.exitCode;
  });
  return (await Promise.all(codes)).every((code) => code === 0);
}

/** The nodes must know each other's ports before any of them listens. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}
