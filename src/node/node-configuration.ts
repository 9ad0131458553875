/** What a node is started with: a file in JSON, checked, with everything that was left out filled in. */

import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { DurabilityMode } from "../attach/settings.ts";
import {
  type Configuration,
  configurationOf,
  readJson,
  StaticConfiguration,
  wholeNumbers,
} from "../cluster/configuration.ts";
import type { TlsOptions } from "../fabric/tcp/tcp-options.ts";
import {
  type Places,
  PROTOCOLS,
  type ProtocolName,
  placesOf,
  protocolOf,
  type Thread,
} from "../protocols/places.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_NODES } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import { type EtcdCluster, etcdClusterOf, isInEtcd, type ListenAddress } from "./etcd-cluster.ts";

export interface MetricsAddress {
  readonly host: string;
  readonly port: number;
}

export interface NodeConfiguration {
  /** Which of the configuration's nodes this is. */
  readonly id: number;
  /** The folder of its store. */
  readonly path: string;
  readonly cluster: Configuration;
  /** Where it listens, if that is not the address of the configuration. */
  readonly listen?: ListenAddress;
  /** Names this life of it in the configuration; otherwise it gives itself a name. */
  readonly instance?: string;
  /** What clients must know. */
  readonly secret: string | undefined;
  /** What nodes must know, and clients do not. */
  readonly nodeSecret: string | undefined;
  readonly tls: TlsOptions | undefined;
  readonly protocol: ProtocolName;
  /** Whether messages are served by the NIC worker or by the host's thread. */
  readonly place: Thread;
  /** Phases of transactions that are elsewhere (protocols/places.ts). */
  readonly places?: Partial<Places>;
  readonly durability: DurabilityMode | undefined;
  readonly memoryBytes: number | undefined;
  readonly maxConnections: number | undefined;
  /** Where its metrics are served, if anywhere. */
  readonly metrics?: MetricsAddress;
  /** Modules with procedures. */
  readonly procedures: readonly string[];
}

/** The same of a node whose cluster is in etcd: what it is there is known when it has joined. */
export interface EtcdNodeConfiguration extends Omit<NodeConfiguration, "id" | "cluster"> {
  readonly id: number | undefined;
  readonly etcd: EtcdCluster;
}

export type NodeFile = NodeConfiguration | EtcdNodeConfiguration;

const KNOWN = [
  "id",
  "path",
  "cluster",
  "listen",
  "secret",
  "secretFile",
  "nodeSecret",
  "nodeSecretFile",
  "tls",
  "protocol",
  "place",
  "places",
  "durability",
  "memoryBytes",
  "maxConnections",
  "metrics",
  "procedures",
];

/** Reads a node's file. Paths in it are relative to it. */
export function readNodeFile(file: string): NodeFile {
  const folder = dirname(resolve(file));
  return nodeFileOf(readJson(file), folder, file);
}

export function nodeFileOf(given: unknown, folder: string, from: string): NodeFile {
  const refuse = (why: string): never => {
    throw new SituError("SITU_CONFIG", `${from}: ${why}`);
  };
  if (typeof given !== "object" || given === null)
    return refuse("a node's configuration is an object");
  const values = given as Record<string, unknown>;
  for (const name of Object.keys(values)) {
    if (!KNOWN.includes(name)) refuse(`unknown ${show(name)}; there are ${KNOWN.join(", ")}`);
  }
  const { id, path, protocol = "rpc", place = "nic", durability, procedures = [] } = values;
  if (typeof path !== "string" || path === "") refuse("path is the folder of the node's store");
  if (!Object.hasOwn(PROTOCOLS, String(protocol))) {
    refuse(
      `protocol is one of ${Object.keys(PROTOCOLS).join(", ")}, xenic, nam, not ${show(protocol)}`,
    );
  }
  if (place !== "nic" && place !== "host") refuse(`place is "nic" or "host", not ${show(place)}`);
  const places = mixtureOf(values.places, protocol as ProtocolName, place as Thread, refuse);
  if (durability !== undefined && !["sync", "lazy", "none"].includes(durability as string)) {
    refuse(`durability is "sync", "lazy" or "none", not ${show(durability)}`);
  }
  if (!Array.isArray(procedures) || procedures.some((each) => typeof each !== "string")) {
    refuse("procedures is a list of modules");
  }
  const etcd = isInEtcd(values.cluster)
    ? etcdClusterOf(values.cluster, values.listen, folder, from)
    : undefined;
  const cluster = etcd === undefined ? fixedCluster(values, folder, from) : undefined;
  if (cluster !== undefined && !cluster.nodes.some((node) => node.id === id)) {
    refuse(`id is the number of one of the cluster's nodes, not ${show(id)}`);
  }
  if (etcd !== undefined && id !== undefined && !isNodeId(id)) {
    refuse(`id is a whole number from 0 to ${MAX_NODES - 1}, or left out, not ${show(id)}`);
  }
  const nodes = cluster?.nodes.length ?? etcd!.settings.backups + 1;
  const secret = secretOf(values, "secret", process.env.SITU_SECRET, folder, refuse);
  const nodeSecret = secretOf(values, "nodeSecret", process.env.SITU_NODE_SECRET, folder, refuse);
  if (secret !== undefined && nodeSecret === undefined && nodes > 1) {
    refuse(
      "with a secret for clients, nodes need one of their own, which clients do not know: set " +
        "nodeSecret, nodeSecretFile or SITU_NODE_SECRET, to the same at all nodes",
    );
  }
  if (nodeSecret !== undefined && nodeSecret === secret) {
    refuse("nodeSecret is the secret of clients: they could pass for nodes");
  }
  const rest = {
    path: resolve(folder, path as string),
    secret,
    nodeSecret,
    tls: tlsOf(values.tls, folder, refuse),
    protocol: protocol as ProtocolName,
    place: place as Thread,
    ...(places === undefined ? {} : { places }),
    durability: durability as DurabilityMode | undefined,
    memoryBytes: wholeOrNone(values.memoryBytes, "memoryBytes", refuse),
    maxConnections: wholeOrNone(values.maxConnections, "maxConnections", refuse),
    ...metricsOf(values.metrics, refuse),
    procedures: (procedures as string[]).map((each) => resolve(folder, each)),
  };
  return cluster === undefined
    ? { ...rest, id: id as number | undefined, etcd: etcd!, listen: etcd!.listen }
    : { ...rest, id: id as number, cluster };
}

/** The same of a node whose cluster is fixed in files. */
export function nodeConfigurationOf(
  given: unknown,
  folder: string,
  from: string,
): NodeConfiguration {
  const file = nodeFileOf(given, folder, from);
  if ("cluster" in file) return file;
  throw new SituError("SITU_CONFIG", `${from}: the nodes of this cluster are in etcd`);
}

export function readNodeConfiguration(file: string): NodeConfiguration {
  return nodeConfigurationOf(readJson(file), dirname(resolve(file)), file);
}

export function fixedCluster(
  { cluster, listen }: Record<string, unknown>,
  folder: string,
  from: string,
): Configuration {
  if (listen !== undefined) {
    const why = "listen is for clusters in etcd; here the cluster's nodes have their addresses";
    throw new SituError("SITU_CONFIG", `${from}: ${why}`);
  }
  const { current } =
    typeof cluster === "string"
      ? StaticConfiguration.read(resolve(folder, cluster))
      : new StaticConfiguration(configurationOf(cluster, `${from}: cluster`));
  return current;
}

/** Which phases are elsewhere than the others: refused if the protocol cannot be had that way. */
function mixtureOf(
  given: unknown,
  protocol: ProtocolName,
  place: Thread,
  refuse: (why: string) => never,
): Partial<Places> | undefined {
  if (given === undefined) return undefined;
  try {
    const places = placesOf(given);
    protocolOf(protocol, place, places);
    return places;
  } catch (error) {
    return refuse((error as SituError).message);
  }
}

function isNodeId(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < MAX_NODES;
}

export function wholeOrNone(
  value: unknown,
  what: string,
  refuse: (why: string) => never,
): number | undefined {
  if (value === undefined || (Number.isInteger(value) && (value as number) > 0)) {
    return value as number | undefined;
  }
  return refuse(`${what} is a whole number above 0, not ${show(value)}`);
}

function metricsOf(
  given: unknown,
  refuse: (why: string) => never,
): { readonly metrics?: MetricsAddress } {
  if (given === undefined) return {};
  const { host = "127.0.0.1", port, ...rest } = Object(given) as Record<string, unknown>;
  const whole = wholeNumbers(refuse);
  if (typeof host !== "string" || host === "" || Object.keys(rest).length > 0) {
    return refuse(`metrics is { "host", "port" }, not ${show(given)}`);
  }
  return { metrics: { host, port: whole(port, "metrics.port", 0, 65535) } };
}

/** In the environment or a file of its own, so that it need not be in the configuration. */
export function secretOf(
  values: Record<string, unknown>,
  name: string,
  ofEnvironment: string | undefined,
  folder: string,
  refuse: (why: string) => never,
): string | undefined {
  const { [name]: secret, [`${name}File`]: file } = values;
  if (file !== undefined) {
    if (typeof file !== "string") return refuse(`${name}File is a path`);
    const text = readText(resolve(folder, file), refuse).trim();
    return text !== "" ? text : refuse(`${name}File is empty`);
  }
  if (secret === undefined) return ofEnvironment || undefined;
  return typeof secret === "string" && secret !== "" ? secret : refuse(`${name} is a string`);
}

export function tlsOf(
  given: unknown,
  folder: string,
  refuse: (why: string) => never,
): TlsOptions | undefined {
  if (given === undefined) return undefined;
  const { key, cert, ca, servername, requestCert } = (given ?? {}) as Record<string, unknown>;
  if (typeof key !== "string" || typeof cert !== "string") {
    return refuse("tls has the paths of a key and a cert, and perhaps of a ca");
  }
  const read = (path: string): string => readText(resolve(folder, path), refuse);
  return {
    key: read(key),
    cert: read(cert),
    ...(typeof ca === "string" ? { ca: read(ca) } : {}),
    ...(typeof servername === "string" ? { servername } : {}),
    ...(requestCert === true ? { requestCert } : {}),
  };
}

function readText(path: string, refuse: (why: string) => never): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    return refuse(`${path} cannot be read: ${(error as Error).message}`);
  }
}
