/**
 * The file of a memory server (`"protocol": "nam"`, docs/CLUSTER.md). It has no store and no folder: what it holds is in its
 * memory, and gone when it ends. Those who connect may write that memory, within its guard, so a secret is
 * required where others than this machine can connect.
 */

import { dirname, resolve } from "node:path";
import { type Configuration, readJson, wholeNumbers } from "../cluster/configuration.ts";
import type { TlsOptions } from "../fabric/tcp/tcp-options.ts";
import type { MemorySettings } from "../protocols/nam/formation.ts";
import { SituError } from "../runtime/errors.ts";
import {
  MAX_TIMEOUT_MS,
  NAM_COPIES,
  NAM_JOURNAL_BYTES,
  NAM_LONGEST_TRANSACTION_MS,
  NAM_MAX_THREADS,
  NAM_MEMORY_BYTES,
  NAM_OVERFLOW_BYTES,
  NAM_THREADS,
} from "../runtime/limits.ts";
import { isLoopback } from "../runtime/loopback-address.ts";
import { show } from "../runtime/show.ts";
import { isInEtcd } from "./etcd-cluster.ts";
import { fixedCluster, secretOf, tlsOf, wholeOrNone } from "./node-configuration.ts";

export interface MemoryNodeConfiguration {
  readonly id: number;
  readonly cluster: Configuration;
  readonly secret: string | undefined;
  readonly tls: TlsOptions | undefined;
  readonly maxConnections: number | undefined;
  readonly memoryBytes: number;
  readonly settings: MemorySettings;
}

const KNOWN = [
  "id",
  "cluster",
  "secret",
  "secretFile",
  "tls",
  "protocol",
  "durability",
  "memoryBytes",
  "maxConnections",
  "threads",
  "overflowBytes",
  "longestTransactionMs",
  "copies",
];

/** The file of a memory server; undefined if it is that of another node. */
export function readMemoryNodeFile(file: string): MemoryNodeConfiguration | undefined {
  const given = readJson(file);
  const isOne = typeof given === "object" && given !== null && "protocol" in given;
  if (!isOne || given.protocol !== "nam") return undefined;
  return memoryNodeOf(given as Record<string, unknown>, dirname(resolve(file)), file);
}

export function memoryNodeOf(
  values: Record<string, unknown>,
  folder: string,
  from: string,
): MemoryNodeConfiguration {
  const refuse = (why: string): never => {
    throw new SituError("SITU_CONFIG", `${from}: ${why}`);
  };
  for (const name of Object.keys(values)) {
    if (KNOWN.includes(name)) continue;
    refuse(`a memory server has no ${show(name)}; there are ${KNOWN.join(", ")}`);
  }
  const { id, durability = "none" } = values;
  if (durability !== "none") {
    refuse(`a memory server has no log: its durability is "none", not ${show(durability)}`);
  }
  if (isInEtcd(values.cluster)) {
    throw new SituError(
      "SITU_UNSUPPORTED",
      `${from}: memory servers agree on their members among themselves, so their cluster is fixed in files, not in etcd`,
    );
  }
  const cluster = fixedCluster(values, folder, from);
  const own = cluster.nodes.find((node) => node.id === id);
  if (own === undefined) {
    return refuse(`id is the number of one of the cluster's nodes, not ${show(id)}`);
  }
  const secret = secretOf(values, "secret", process.env.SITU_SECRET, folder, refuse);
  if (secret === undefined && !isLoopback(own.host)) {
    refuse(
      `clients write the memory of this server, and ${own.host} can be reached by others: set secret, secretFile or SITU_SECRET`,
    );
  }
  const whole = wholeNumbers(refuse);
  const { threads = NAM_THREADS, overflowBytes = NAM_OVERFLOW_BYTES } = values;
  const { longestTransactionMs = NAM_LONGEST_TRANSACTION_MS } = values;
  const { length } = cluster.nodes;
  // Fewer than three cannot agree to go on without one of them.
  const { copies = length < 3 ? 1 : NAM_COPIES } = values;
  const overflow = whole(overflowBytes, "overflowBytes", 2 ** 12, 2 ** 32);
  if (!Number.isInteger(Math.log2(overflow))) refuse("overflowBytes is a power of two");
  return {
    id: own.id,
    cluster,
    secret,
    tls: tlsOf(values.tls, folder, refuse),
    maxConnections: wholeOrNone(values.maxConnections, "maxConnections", refuse),
    memoryBytes: wholeOrNone(values.memoryBytes, "memoryBytes", refuse) ?? NAM_MEMORY_BYTES,
    settings: {
      threads: whole(threads, "threads", 1, NAM_MAX_THREADS),
      journalWords: NAM_JOURNAL_BYTES / 4,
      overflowWords: overflow / 4,
      longestTransactionMs: whole(longestTransactionMs, "longestTransactionMs", 1, MAX_TIMEOUT_MS),
      copies: whole(copies, "copies", 1, length),
    },
  };
}
