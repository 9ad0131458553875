/**
 * The configuration of a cluster: its nodes, how data is placed on them, and its number, which all
 * messages and records carry (FaRM §5.1: ⟨i, S, F, CM⟩). It comes from a file and never changes, or
 * from etcd (etcd/), where it is replaced as a whole by one that has the next number.
 */

import { readFileSync } from "node:fs";
import type { ConfigurationId, NodeId } from "../fabric/fabric.ts";
import { SituError } from "../runtime/errors.ts";
import {
  DEFAULT_LEASE_MS,
  DEFAULT_PARTITIONS,
  DEFAULT_RINGS,
  MAX_LEASE_MS,
  MAX_NODES,
  MAX_PARTITIONS,
  MAX_UNSETTLED,
  MIN_LEASE_MS,
} from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import { packReplicas, type Replicas, replicasOf } from "./replicas.ts";

export interface NodeAddress {
  readonly id: NodeId;
  readonly host: string;
  readonly port: number;
  /** Names the life of the node that the configuration knows: it has another one after a restart. */
  readonly instance?: string;
  /** The configuration that took in this life of the node; 1 if it is not said. */
  readonly since?: ConfigurationId;
  /** What fails together with others of the same name, such as a rack. */
  readonly domain?: string;
  /** It gives all that it has to others, and gets nothing more: it is to leave. */
  readonly draining?: true;
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
  /** How long a node may serve since it last heard from the manager. */
  readonly leaseMs: number;
  /** The node that notices failures and changes the configuration (FaRM's CM). None in a fixed cluster. */
  readonly manager?: NodeId;
  /**
   * The nodes of earlier configurations whose leases may still run: before this one is committed, a majority of
   * each has to know it (membership/succession.ts).
   */
  readonly unsettled?: readonly (readonly NodeAddress[])[];
  /** One for each partition. Without it, consistent hashing says where they lie. */
  readonly placement?: readonly Replicas[];
}

/** Where configurations come from. */
export interface Configurations {
  /** The newest one that is known here. Its number never goes back. */
  readonly current: Configuration;
  /** Calls `changed` with each later one, in order; returns how to stop. */
  watch(changed: (next: Configuration) => void): () => void;
  /** Asks for the newest one there is, and makes it `current`. */
  read(): Promise<Configuration>;
  /**
   * Puts `next` in the place of `previous`, and says whether it did: it does not if another has done
   * so before, which is `current` then. If it fails, with SITU_UNREACHABLE, `next` may count or may not,
   * and `read` says so once it succeeds.
   */
  swap(previous: Configuration, next: Configuration): Promise<boolean>;
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

  async read(): Promise<Configuration> {
    return this.current;
  }

  async swap(): Promise<boolean> {
    const why = "the nodes of this cluster are fixed in files; with etcd they can change";
    throw new SituError("SITU_UNSUPPORTED", why);
  }
}

const KNOWN = [
  "cluster",
  "configurationId",
  "nodes",
  "backups",
  "rings",
  "partitions",
  "leaseMs",
  "manager",
  "unsettled",
  "placement",
];
/** Its number is a word of every frame. */
const MAX_CONFIGURATION_ID = 2 ** 31 - 1;
/** What `configurationId` was called in older files. */
const OLD_CONFIGURATION_ID = "epoch";

export function isClusterName(value: unknown): value is string {
  return typeof value === "string" && /^[\w.-]{1,64}$/.test(value);
}

/** How to check numbers; `refuse` is told what is wrong with one. */
export function wholeNumbers(refuse: (why: string) => never) {
  return (value: unknown, what: string, least: number, most: number): number => {
    if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) {
      return value as number;
    }
    return refuse(`${what} is a whole number from ${least} to ${most}, not ${show(value)}`);
  };
}

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
  if (!isClusterName(cluster)) {
    refuse(`cluster is a name of letters, digits, ".", "_" and "-", not ${show(cluster)}`);
  }
  const whole = wholeNumbers(refuse);
  if (!Array.isArray(nodes) || nodes.length === 0 || nodes.length > MAX_NODES) {
    return refuse(`nodes is a list of 1 to ${MAX_NODES} entries { "id", "host", "port" }`);
  }
  const addressOf = (each: unknown): NodeAddress => {
    const values = (each ?? {}) as Record<string, unknown>;
    const { id, host, port, instance, since, domain, draining } = values;
    if (typeof host !== "string" || host === "") return refuse(`a node has no host: ${show(each)}`);
    return {
      id: whole(id, "the id of a node", 0, MAX_NODES - 1),
      host,
      port: whole(port, `the port of node ${String(id)}`, 0, 65535),
      ...named("instance", instance, refuse),
      ...(since === undefined
        ? {}
        : { since: whole(since, `since of node ${String(id)}`, 1, MAX_CONFIGURATION_ID) }),
      ...named("domain", domain, refuse),
      ...(draining === true ? { draining } : {}),
    };
  };
  const list = nodes.map(addressOf);
  const members = new Set(list.map(({ id }) => id));
  if (members.size !== list.length) refuse("two nodes have the same id");
  const { backups = Math.min(2, list.length - 1), leaseMs = DEFAULT_LEASE_MS, manager } = values;
  if (manager !== undefined && !members.has(manager as NodeId)) {
    refuse(`manager is the id of one of the nodes, not ${show(manager)}`);
  }
  const checked: Configuration = {
    cluster: cluster as string,
    configurationId: whole(configurationId, "configurationId", 1, MAX_CONFIGURATION_ID),
    nodes: list.sort((a, b) => a.id - b.id),
    // Where placement is state, fewer nodes than there should be copies is a state, too.
    backups: whole(
      backups,
      "backups",
      0,
      (values.placement === undefined ? list.length : MAX_NODES) - 1,
    ),
    rings: whole(rings, "rings", 1, 10_000),
    partitions: whole(partitions, "partitions", 1, MAX_PARTITIONS),
    leaseMs: whole(leaseMs, "leaseMs", MIN_LEASE_MS, MAX_LEASE_MS),
    ...(manager === undefined ? {} : { manager: manager as NodeId }),
  };
  const { unsettled = [], placement } = values;
  if (!Array.isArray(unsettled) || unsettled.length > MAX_UNSETTLED) {
    return refuse(`unsettled is a list of at most ${MAX_UNSETTLED} lists of nodes`);
  }
  const earlier = unsettled.map((set: unknown) => {
    if (Array.isArray(set) && set.length <= MAX_NODES) return set.map(addressOf);
    return refuse(`unsettled has lists of up to ${MAX_NODES} nodes, not ${show(set)}`);
  });
  return {
    ...checked,
    ...(earlier.length === 0 ? {} : { unsettled: earlier }),
    ...(placement === undefined
      ? {}
      : { placement: placementOf(placement, checked, members, refuse) }),
  };
}

/** For JSON that `configurationOf` takes. */
export function packConfiguration(configuration: Configuration): object {
  const { placement, ...rest } = configuration;
  return { ...rest, placement: placement?.map(packReplicas) };
}

function placementOf(
  given: unknown,
  { partitions, backups, configurationId }: Configuration,
  members: ReadonlySet<NodeId>,
  refuse: (why: string) => never,
): readonly Replicas[] {
  if (!Array.isArray(given) || given.length !== partitions) {
    return refuse(`placement is a list of ${partitions} entries, one for each partition`);
  }
  const bounds = { members, backups, configurationId };
  return given.map((each: unknown, partition) =>
    replicasOf(each, bounds, (why) => refuse(`placement of partition ${partition}: ${why}`)),
  );
}

/** A name that may be left out. */
function named(
  what: "instance" | "domain",
  value: unknown,
  refuse: (why: string) => never,
): { [Key in typeof what]?: string } {
  if (value === undefined) return {};
  if (typeof value === "string" && /^[\w.:-]{1,64}$/.test(value)) return { [what]: value };
  return refuse(
    `the ${what} of a node is a name of letters, digits, ".", ":", "_" and "-", not ${show(value)}`,
  );
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
