/**
 * The file of a node with `"protocol": "xenic"` (docs/CLUSTER.md). Its rows are in memory only, in as many nodes as the cluster's
 * `backups` say and one more; it has no folder and no log on disk, and the set of nodes is fixed. What other nodes have
 * and these do not is refused here, with the way out.
 */

import { dirname, resolve } from "node:path";
import { type Configuration, readJson } from "../../cluster/configuration.ts";
import type { TlsOptions } from "../../fabric/tcp/tcp-options.ts";
import { ALL_ON, type Switches } from "../../protocols/xenic/ports.ts";
import { SituError } from "../../runtime/errors.ts";
import { XENIC_MEMORY_BYTES, XENIC_NIC_MEMORY_BYTES } from "../../runtime/limits.ts";
import { show } from "../../runtime/show.ts";
import { isInEtcd } from "../etcd-cluster.ts";
import { fixedCluster, secretOf, tlsOf, wholeOrNone } from "../node-configuration.ts";

export interface XenicNodeConfiguration {
  readonly id: number;
  readonly cluster: Configuration;
  readonly secret: string | undefined;
  readonly nodeSecret: string | undefined;
  readonly tls: TlsOptions | undefined;
  readonly maxConnections: number | undefined;
  /** For all copies of tables that this node has. */
  readonly memoryBytes: number;
  /** For the NIC's indexes of the rows whose primary this node is. */
  readonly nicMemoryBytes: number;
  readonly procedures: readonly string[];
  /** Techniques of the paper, each of which can be left out to see what it is worth. */
  readonly switches: Switches;
}

const TECHNIQUES = ["combines", "runsAtNic", "hops"] as const;

const KNOWN = [
  "id",
  "cluster",
  "secret",
  "secretFile",
  "nodeSecret",
  "nodeSecretFile",
  "tls",
  "protocol",
  "durability",
  "memoryBytes",
  "nicMemoryBytes",
  "maxConnections",
  "procedures",
  "techniques",
];

/** What other nodes have, and why these do not. */
const ABSENT: Readonly<Record<string, string>> = {
  path: "keeps its rows in memory and has no folder: leave out path",
  place: "serves all messages at its NIC: leave out place",
  places: "has a place for each phase already: leave out places",
  metrics: "has no metrics yet: leave it out",
  listen: "is in a cluster of fixed nodes, and listens at its address there: leave out listen",
};

/** The file of such a node; undefined if it is that of another. */
export function readXenicNodeFile(file: string): XenicNodeConfiguration | undefined {
  const given = readJson(file);
  const isOne = typeof given === "object" && given !== null && "protocol" in given;
  if (!isOne || given.protocol !== "xenic") return undefined;
  return xenicNodeOf(given as Record<string, unknown>, dirname(resolve(file)), file);
}

export function xenicNodeOf(
  values: Record<string, unknown>,
  folder: string,
  from: string,
): XenicNodeConfiguration {
  const refuse = (why: string): never => {
    throw new SituError("SITU_CONFIG", `${from}: ${why}`);
  };
  const unsupported = (why: string): never => {
    throw new SituError("SITU_UNSUPPORTED", `${from}: a node with the protocol "xenic" ${why}`);
  };
  for (const name of Object.keys(values)) {
    if (KNOWN.includes(name)) continue;
    if (Object.hasOwn(ABSENT, name)) unsupported(ABSENT[name]);
    refuse(`unknown ${show(name)}; there are ${KNOWN.join(", ")}`);
  }
  const { id, durability = "none", procedures = [] } = values;
  if (durability !== "none") {
    unsupported(`writes nothing to disk: its durability is "none", not ${show(durability)}`);
  }
  if (isInEtcd(values.cluster)) {
    unsupported("is in a cluster of fixed nodes: name them in a file, not in etcd");
  }
  if (!Array.isArray(procedures) || procedures.some((each) => typeof each !== "string")) {
    refuse("procedures is a list of modules");
  }
  const { techniques = {} } = values;
  const isTable =
    typeof techniques === "object" &&
    techniques !== null &&
    Object.entries(techniques).every(
      ([name, value]) => TECHNIQUES.some((each) => each === name) && typeof value === "boolean",
    );
  if (!isTable) refuse(`techniques says true or false for each of ${TECHNIQUES.join(", ")}`);
  const cluster = fixedCluster(values, folder, from);
  const own = cluster.nodes.find((node) => node.id === id);
  if (own === undefined) {
    return refuse(`id is the number of one of the cluster's nodes, not ${show(id)}`);
  }
  const secret = secretOf(values, "secret", process.env.SITU_SECRET, folder, refuse);
  const nodeSecret = secretOf(values, "nodeSecret", process.env.SITU_NODE_SECRET, folder, refuse);
  if (secret !== undefined && nodeSecret === undefined && cluster.nodes.length > 1) {
    refuse(
      "with a secret for clients, nodes need one of their own, which clients do not know: set " +
        "nodeSecret, nodeSecretFile or SITU_NODE_SECRET, to the same at all nodes",
    );
  }
  return {
    id: own.id,
    cluster,
    secret,
    nodeSecret,
    tls: tlsOf(values.tls, folder, refuse),
    maxConnections: wholeOrNone(values.maxConnections, "maxConnections", refuse),
    memoryBytes: wholeOrNone(values.memoryBytes, "memoryBytes", refuse) ?? XENIC_MEMORY_BYTES,
    nicMemoryBytes:
      wholeOrNone(values.nicMemoryBytes, "nicMemoryBytes", refuse) ?? XENIC_NIC_MEMORY_BYTES,
    procedures: (procedures as string[]).map((each) => resolve(folder, each)),
    switches: { ...ALL_ON, ...(techniques as Partial<Switches>) },
  };
}
