/**
 * The configuration of a cluster: its nodes, how data is placed on them, and its number,
 * which all messages and records carry. Here it comes from a file and never changes; a configuration
 * that changes (membership in etcd) will be another implementation of `Configurations`.
 */

import { readFileSync } from "node:fs";
import type { ConfigurationId, NodeId } from "../fabric/fabric.ts";
import { SituError } from "../runtime/errors.ts";
import { DEFAULT_PARTITIONS, DEFAULT_RINGS, MAX_NODES, MAX_PARTITIONS } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";

export interface NodeAddress {
  readonly id: NodeId;
  readonly host: string;
  readonly port: number;
}

export interface Configuration {
  /** Names the cluster: nodes and clients of another one are refused. */
  readonly cluster: string;
  /** Grows with every change. */
  readonly configurationId: ConfigurationId;
  readonly nodes: readonly NodeAddress[];
  /** Copies of each row beside the primary's (f). */
  readonly backups: number;
  /** Virtual rings of consistent hashing (k). */
  readonly rings: number;
  readonly partitions: number;
}

/** Where configurations come from. */
export interface Configurations {
  readonly current: Configuration;
  /** Calls `changed` with each later one, in order; returns how to stop. */
  watch(changed: (next: Configuration) => void): () => void;
}

/** The configuration of a file, for good. */
export class StaticConfiguration implements Configurations {
  readonly current: Configuration;

  constructor(current: Configuration) {
    this.current = current;
  }

  static read(path: string): StaticConfiguration {
    return new StaticConfiguration(configurationOf(readJson(path), path));
  }

  watch(): () => void {
    return () => {};
  }
}

const KNOWN = ["cluster", "configurationId", "nodes", "backups", "rings", "partitions"];
/** What `configurationId` was called in older files. */
const OLD_CONFIGURATION_ID = "epoch";

/** Checks what a file or a node says. `from` names it in messages. */
export function configurationOf(given: unknown, from: string): Configuration {
  const refuse = (why: string): never => {
    throw new SituError("SITU_CONFIG", `${from}: ${why}`);
  };
  if (typeof given !== "object" || given === null) return refuse("a configuration is an object");
  const values = given as Record<string, unknown>;
  for (const name of Object.keys(values)) {
    if (KNOWN.includes(name) || name === OLD_CONFIGURATION_ID) continue;
    refuse(`unknown ${show(name)}; there are ${KNOWN.join(", ")}`);
  }
  const { cluster = "situ", configurationId = values[OLD_CONFIGURATION_ID] ?? 1, nodes } = values;
  const { rings = DEFAULT_RINGS, partitions = DEFAULT_PARTITIONS } = values;
  if (typeof cluster !== "string" || !/^[\w.-]{1,64}$/.test(cluster)) {
    refuse(`cluster is a name of letters, digits, ".", "_" and "-", not ${show(cluster)}`);
  }
  const whole = (value: unknown, what: string, least: number, most: number): number => {
    if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) {
      return value as number;
    }
    return refuse(`${what} is a whole number from ${least} to ${most}, not ${show(value)}`);
  };
  if (!Array.isArray(nodes) || nodes.length === 0 || nodes.length > MAX_NODES) {
    return refuse(`nodes is a list of 1 to ${MAX_NODES} entries { "id", "host", "port" }`);
  }
  const list = nodes.map((each: unknown): NodeAddress => {
    const { id, host, port } = (each ?? {}) as Record<string, unknown>;
    if (typeof host !== "string" || host === "") return refuse(`a node has no host: ${show(each)}`);
    return {
      id: whole(id, "the id of a node", 0, MAX_NODES - 1),
      host,
      port: whole(port, `the port of node ${String(id)}`, 0, 65535),
    };
  });
  if (new Set(list.map(({ id }) => id)).size !== list.length) refuse("two nodes have the same id");
  const { backups = Math.min(2, list.length - 1) } = values;
  return {
    cluster: cluster as string,
    configurationId: whole(configurationId, "configurationId", 1, 2 ** 31 - 1),
    nodes: list.sort((a, b) => a.id - b.id),
    backups: whole(backups, "backups", 0, list.length - 1),
    rings: whole(rings, "rings", 1, 10_000),
    partitions: whole(partitions, "partitions", 1, MAX_PARTITIONS),
  };
}

export function readJson(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new SituError("SITU_CONFIG", `${path} cannot be read`, { cause });
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    const { message } = cause as Error;
    throw new SituError("SITU_CONFIG", `${path} is not JSON: ${message}`, { cause });
  }
}
