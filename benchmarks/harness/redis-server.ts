// A Redis server of our own: free loopback port, temporary folder, no persistence.
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { firstLine, missingPeer, type Peer, peersFolder } from "./peers.ts";
import { temporaryFolder } from "./resources.ts";
import { accepts, freePorts, loopback, ServerProcess } from "./server-process.ts";

export interface RedisServer {
  readonly host: string;
  readonly port: number;
  /** Resolves when the process has ended. */
  stop(): Promise<void>;
}

/** Another process may take the free port before Redis binds it. */
const attempts = 3;

export async function startRedisServer(): Promise<Peer<RedisServer>> {
  const version = redisVersion();
  if (version === undefined) return missingPeer("redis-server is not installed");
  let reason = "";
  for (let attempt = 0; attempt < attempts; attempt++) {
    try {
      return { available: true, version, value: await startOnFreePort() };
    } catch (error) {
      reason = firstLine(error);
    }
  }
  return missingPeer(`redis-server did not start: ${reason}`);
}

async function startOnFreePort(): Promise<RedisServer> {
  const [port] = await freePorts(1);
  const folder = temporaryFolder(tmpdir());
  const conf = join(peersFolder, "redis.conf");
  const args = [conf, "--port", String(port), "--dir", folder];
  const server = new ServerProcess("redis-server", args);
  await server.ready(() => accepts(port));
  return { host: loopback, port, stop: () => server.stop() };
}

function redisVersion(): string | undefined {
  const { status, stdout } = spawnSync("redis-server", ["--version"], { encoding: "utf8" });
  return status === 0 ? (/v=(\S+)/.exec(stdout)?.[1] ?? "unknown") : undefined;
}
