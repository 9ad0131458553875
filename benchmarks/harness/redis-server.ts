// A Redis server of our own: free loopback port, temporary folder, no persistence, stopped by its
// pid. An already running server on the machine is never used or touched.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { firstLine, missingPeer, type Peer, peersFolder } from "./peers.ts";
import { onRelease, temporaryFolder } from "./resources.ts";

export interface RedisServer {
  readonly host: string;
  readonly port: number;
  /** Resolves when the process has ended. */
  stop(): Promise<void>;
}

const host = "127.0.0.1";
const startDeadlineMs = 10_000;
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
  const port = await freePort();
  const folder = temporaryFolder(tmpdir());
  const conf = join(peersFolder, "redis.conf");
  const child = spawn("redis-server", [conf, "--port", String(port), "--dir", folder], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const release = onRelease(() => {
    // By pid and not child.kill(): an exit handler must work while events no longer arrive.
    if (child.pid !== undefined && child.exitCode === null) killQuietly(child.pid);
  });
  const log = collect(child);
  const start = performance.now();
  while (!(await accepts(port))) {
    if (child.exitCode !== null || performance.now() - start > startDeadlineMs) {
      release();
      throw new Error(log().trim() || `exit code ${child.exitCode}`);
    }
    await sleep(20);
  }
  const stop = async (): Promise<void> => {
    release();
    await ended;
  };
  return { host, port, stop };
}

function redisVersion(): string | undefined {
  const { status, stdout } = spawnSync("redis-server", ["--version"], { encoding: "utf8" });
  return status === 0 ? (/v=(\S+)/.exec(stdout)?.[1] ?? "unknown") : undefined;
}

function collect(child: ChildProcess): () => string {
  let text = "";
  const append = (chunk: Buffer): void => {
    text = (text + chunk.toString()).slice(-2000);
  };
  child.stdout?.on("data", append);
  child.stderr?.on("data", append);
  child.on("error", (error) => append(Buffer.from(error.message)));
  return () => text;
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGTERM");
  } catch {
    // It ended by itself between the check and the signal.
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no free port");
  return address.port;
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, host);
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
