// The two sides: `situ serve` as users start it, and redis-server, each a process of its own.

import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePorts } from "../harness/free-ports.ts";
import type { RedisServer } from "../harness/redis-server.ts";
import { temporaryFolder } from "../harness/resources.ts";
import { accepts, ServerProcess } from "../harness/server-process.ts";

export interface Target {
  readonly name: string;
  readonly port: number;
}

export interface SituServer extends Target {
  readonly path: string;
  stop(): Promise<void>;
}

const memoryFolder = process.env.SITU_MEMORY_DIR ?? "/dev/shm";
/** Enough for a million keys. */
const memory = "1GiB";

export async function startSitu(threads: number): Promise<SituServer> {
  const [port] = await freePorts(1);
  const path = temporaryFolder(tmpdir());
  // In a folder that goes with the bench, and not where stores have their memory.
  const env = { ...process.env, SITU_MEMORY_DIR: temporaryFolder(memoryFolder) };
  const server = new ServerProcess(
    process.execPath,
    [
      cliScript(),
      ...["serve", "--path", path, "--port", String(port), "--threads", String(threads)],
      ...["--durability", "none", "--memory", memory],
    ],
    env,
  );
  await server.ready(() => accepts(port));
  const name = threads === 1 ? "situ serve" : `situ serve, ${threads} threads`;
  return { name, port, path, stop: () => server.stop() };
}

export function redisTarget({ port }: RedisServer): Target {
  return { name: "redis-server", port };
}

/** Beside the compiled benches. */
function cliScript(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "situ-cli.js"))) folder = dirname(folder);
  return join(folder, "situ-cli.js");
}
