// etcd of our own: one member or several on free loopback ports, data in memory (a folder of tmpfs),
// so that no disk slows its log down. Debian's etcd-server has the program.

import { spawnSync } from "node:child_process";
import { freePorts } from "./free-ports.ts";
import { firstLine, missingPeer, type Peer } from "./peers.ts";
import { temporaryFolder } from "./resources.ts";
import { loopback, ServerProcess } from "./server-process.ts";

export interface EtcdServer {
  /** Of all members, for clients. */
  readonly urls: readonly string[];
  /** Has all members stand still, or go on. */
  pause(isPaused: boolean): void;
  /** Resolves when all processes have ended. */
  stop(): Promise<void>;
}

const attempts = 3;
const healthDeadlineMs = 1_000;
/** Above what the bench writes, so that etcd never refuses for its size. */
const quotaBytes = 4 * 2 ** 30;

export async function startEtcd(members: number, memoryFolder: string): Promise<Peer<EtcdServer>> {
  const version = etcdVersion();
  if (version === undefined) return missingPeer("etcd is not installed (Debian: etcd-server)");
  let reason = "";
  for (let attempt = 0; attempt < attempts; attempt++) {
    try {
      return { available: true, version, value: await startMembers(members, memoryFolder) };
    } catch (error) {
      reason = firstLine(error);
    }
  }
  const what = members === 1 ? "etcd" : `etcd of ${members} members`;
  return missingPeer(`${what} did not start: ${reason}`);
}

async function startMembers(count: number, memoryFolder: string): Promise<EtcdServer> {
  const ports = await freePorts(2 * count);
  const members = Array.from({ length: count }, (_, index) => ({
    name: `member${index}`,
    client: `http://${loopback}:${ports[2 * index]}`,
    peer: `http://${loopback}:${ports[2 * index + 1]}`,
  }));
  const cluster = members.map(({ name, peer }) => `${name}=${peer}`).join(",");
  const servers: ServerProcess[] = [];
  try {
    for (const { name, client, peer } of members) {
      const args = {
        name,
        "data-dir": temporaryFolder(memoryFolder),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": cluster,
        "initial-cluster-token": `situ-bench-${process.pid}-${ports[0]}`,
        "log-level": "error",
        "quota-backend-bytes": String(quotaBytes),
        // Versions that a bench has left behind must not add up to gigabytes.
        "auto-compaction-mode": "revision",
        "auto-compaction-retention": "1000",
      };
      const list = Object.entries(args).map(([option, value]) => `--${option}=${value}`);
      servers.push(new ServerProcess("etcd", list, cleanEnvironment()));
    }
    for (const [index, server] of servers.entries()) {
      await server.ready(() => isHealthy(members[index].client));
    }
  } catch (error) {
    await Promise.all(servers.map((server) => server.stop()));
    throw error;
  }
  return {
    urls: members.map(({ client }) => client),
    pause: (isPaused) => {
      for (const server of servers) server.pause(isPaused);
    },
    stop: async () => {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

/** Whether a member has a leader and takes part. */
async function isHealthy(url: string): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(healthDeadlineMs);
    const answer = await fetch(`${url}/health`, { signal });
    return ((await answer.json()) as { health?: unknown }).health === "true";
  } catch {
    return false;
  }
}

/** etcd takes options from the environment, too: those of the machine's own one are not for ours. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(([name]) => !name.startsWith("ETCD_"));
  return Object.fromEntries(entries);
}

function etcdVersion(): string | undefined {
  const { status, stdout } = spawnSync("etcd", ["--version"], { encoding: "utf8" });
  return status === 0 ? (/Version: (\S+)/.exec(stdout)?.[1] ?? "unknown") : undefined;
}
