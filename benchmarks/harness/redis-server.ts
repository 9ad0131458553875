// A Redis server of our own: free loopback port, unix socket and files in a temporary folder.

import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "./free-ports.ts";
import { firstLine, missingPeer, type Peer, peersFolder } from "./peers.ts";
import { temporaryFolder } from "./resources.ts";
import { accepts, loopback, ServerProcess } from "./server-process.ts";

export interface RedisServer {
  readonly host: string;
  readonly port: number;
  readonly socketFile: string;
  /** Resolves when the process has ended, and its folder is gone. */
  stop(): Promise<void>;
}

export interface RedisServerOptions {
  /** redis-none.conf, redis-lazy.conf or redis-sync.conf. */
  readonly durability: "none" | "lazy" | "sync";
  /** Where its folder is made. */
  readonly parent: string;
}

/** Another process may take the free port before Redis binds it. */
const attempts = 3;

export async function startRedisServer(
  options: RedisServerOptions = { durability: "none", parent: tmpdir() },
): Promise<Peer<RedisServer>> {
  const version = redisVersion();
  if (version === undefined) return missingPeer("redis-server is not installed");
  let reason = "";
  for (let attempt = 0; attempt < attempts; attempt++) {
    try {
      return { available: true, version, value: await startOnFreePort(options) };
    } catch (error) {
      reason = firstLine(error);
    }
  }
  return missingPeer(`redis-server did not start: ${reason}`);
}

async function startOnFreePort({ durability, parent }: RedisServerOptions): Promise<RedisServer> {
  const [port] = await freePorts(1);
  const folder = temporaryFolder(parent);
  const socketFile = join(folder, "redis.sock");
  const server = new ServerProcess("redis-server", [
    join(peersFolder, "redis.conf"),
    ...["--include", join(peersFolder, `redis-${durability}.conf`)],
    ...["--port", String(port), "--unixsocket", socketFile, "--dir", folder],
  ]);
  // The port first: the Unix socket is made a moment later.
  await server.ready(async () => (await accepts(port)) && (await accepts(socketFile)));
  const stop = async (): Promise<void> => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { host: loopback, port, socketFile, stop };
}

function redisVersion(): string | undefined {
  const { status, stdout } = spawnSync("redis-server", ["--version"], { encoding: "utf8" });
  return status === 0 ? (/v=(\S+)/.exec(stdout)?.[1] ?? "unknown") : undefined;
}
