/**
 * One member of etcd on this machine. It keeps the configuration of the cluster: which nodes there are, and
 * which of them has what. In production, run three members on different machines.
 */

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ended, freePorts, isRunning, start } from "./processes.ts";

export interface Etcd {
  /** For nodes: `"etcd": [address]` in their files. */
  readonly address: string;
  readonly process: ChildProcess;
}

export async function startEtcd(folder: string, started: (etcd: Etcd) => void): Promise<void> {
  const [client, peer] = (await freePorts(2)).map((port) => `http://127.0.0.1:${port}`);
  const args = {
    "data-dir": join(folder, "etcd"),
    "listen-client-urls": client,
    "advertise-client-urls": client,
    "listen-peer-urls": peer,
    "initial-advertise-peer-urls": peer,
    "initial-cluster": `default=${peer}`,
    "log-level": "error",
  };
  const child = start(
    "etcd",
    Object.entries(args).map(([option, value]) => `--${option}=${value}`),
  );
  child.stdout?.resume();
  await once(child, "spawn").catch(() => {
    throw new Error(
      "etcd is not installed. On Debian and Ubuntu: sudo apt-get install etcd-server; " +
        "elsewhere see https://etcd.io/docs/latest/install",
    );
  });
  started({ address: client, process: child });
  while (!(await answers(client))) {
    if (!isRunning(child)) throw ended("etcd", child);
    await sleep(50);
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`)).ok;
  } catch {
    return false;
  }
}
