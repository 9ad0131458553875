/**
 * How a node finds its place in a cluster whose configuration is in etcd. The first backups + 1 nodes form
 * the cluster: each adds itself to the record by a swap, and the one whose swap completes the set makes the
 * first configuration with the same swap. So there is never a configuration of too few, nor two.
 *
 * A node that comes later only finds out who it is to be; the manager takes it in (membership/membership.ts).
 *
 * A node's id is given, or the smallest free one. Before a node claims one, it notes in its store's folder
 * which id, and under the name of which life (its instance): a node that dies around its swap finds out
 * afterwards whether it counted. Who has been a member takes up its id with its store only, and not while
 * another process answers under it.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { nowMs, sleep } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  DEFAULT_LEASE_MS,
  DEFAULT_PARTITIONS,
  DEFAULT_RINGS,
  FORMING_PATIENCE_MS,
  FORMING_POLL_MS,
} from "../../runtime/limits.ts";
import { uniqueId } from "../../runtime/random.ts";
import type { Configuration, NodeAddress } from "../configuration.ts";
import { initialPlacement } from "../planning/planning.ts";
import type { EtcdRecord, Forming, ReadRecord } from "./record.ts";

/** What a node's store remembers of its cluster. */
export interface Membership {
  readonly cluster: string;
  readonly identity: string;
  readonly id: NodeId;
  /** That of the claim. */
  readonly instance: string;
  /** Whether the claim is known to have counted. */
  readonly isMember: boolean;
  /** Whether it was drained, and has left the cluster. */
  readonly hasLeft?: boolean;
}

/** What the cluster is to be, if this node is among the first; otherwise, what it must be. */
export interface ClusterSettings {
  readonly cluster: string;
  readonly backups: number;
  readonly partitions: number | undefined;
  readonly leaseMs: number | undefined;
}

export interface Applicant {
  readonly settings: ClusterSettings;
  /** Undefined: the smallest free one. */
  readonly id: NodeId | undefined;
  readonly host: string;
  readonly port: number;
  readonly domain: string | undefined;
  readonly instance: string;
  /** In the store's folder. */
  readonly memory: { load(): Membership | undefined; save(membership: Membership): void };
  /** Which life of which node answers at an address, if any. */
  probe(address: NodeAddress): Promise<{ node: NodeId; instance: string } | undefined>;
  /** Told how many nodes are still missing. */
  waiting(missing: number): void;
  readonly signal?: AbortSignal;
}

export interface Joined {
  readonly id: NodeId;
  /** Whether it was a member, and has what it had then. */
  readonly hasItsData: boolean;
  /** With a configuration, in which the node may not be yet. */
  readonly read: ReadRecord;
}

/** Comes to the node's id and the cluster's configuration, or says why this node has no place in it. */
export async function joinCluster(record: EtcdRecord, applicant: Applicant): Promise<Joined> {
  const deadlineMs = nowMs() + FORMING_PATIENCE_MS;
  let told: number | undefined;
  for (;;) {
    applicant.signal?.throwIfAborted();
    const read = await record.read();
    const { forming, configuration } = read.record ?? {};
    if (configuration !== undefined) {
      const place = await placeIn(read.record?.identity ?? "", configuration, applicant);
      return { ...place, read };
    }
    if (!(await isWaiting(record, read, forming, applicant))) continue;
    const missing = applicant.settings.backups + 1 - (forming?.nodes.length ?? 0);
    if (told !== missing) applicant.waiting(missing);
    told = missing;
    if (nowMs() > deadlineMs) throw tooFew(applicant, missing);
    await sleep(FORMING_POLL_MS);
  }
}

/** In a cluster that is forming: whether this node has its place, and waits for the others. */
async function isWaiting(
  record: EtcdRecord,
  read: ReadRecord,
  forming: Forming | undefined,
  applicant: Applicant,
): Promise<boolean> {
  const { settings, instance, memory } = applicant;
  const identity = read.record?.identity ?? uniqueId();
  const nodes = forming?.nodes ?? [];
  if (nodes.some((each) => each.instance === instance)) return true;
  if (forming !== undefined) checkSettings(forming, settings);
  const { id, isMember } = await claimedId(identity, nodes, applicant);
  const own = addressOf(id, applicant);
  const all = [...nodes.filter((each) => each.id !== id), own].sort((a, b) => a.id - b.id);
  memory.save({ cluster: settings.cluster, identity, id, instance, isMember });
  const next = { ...(forming ?? newCluster(settings)), nodes: all };
  const isWhole = all.length > next.backups;
  await record.replace(
    read,
    isWhole
      ? { identity, configuration: firstConfiguration(next, own.id) }
      : { identity, forming: next },
  );
  return false;
}

function newCluster({ cluster, backups, partitions, leaseMs }: ClusterSettings): Forming {
  return {
    cluster,
    configurationId: 1,
    nodes: [],
    backups,
    rings: DEFAULT_RINGS,
    partitions: partitions ?? DEFAULT_PARTITIONS,
    leaseMs: leaseMs ?? DEFAULT_LEASE_MS,
  };
}

function firstConfiguration(forming: Forming, manager: NodeId): Configuration {
  const { nodes, partitions, backups } = forming;
  return { ...forming, manager, placement: initialPlacement(nodes, partitions, backups) };
}

/** The id that this node may claim while the cluster is forming, and whether it has it already. */
async function claimedId(
  identity: string,
  nodes: readonly NodeAddress[],
  applicant: Applicant,
): Promise<{ id: NodeId; isMember: boolean }> {
  const remembered = rememberedId(identity, nodes, applicant);
  const id = remembered ?? applicant.id ?? smallestFree(nodes);
  const holder = nodes.find((each) => each.id === id);
  if (holder === undefined) return { id, isMember: false };
  await refuseIfRunning(holder, applicant);
  if (remembered === undefined) throw taken(holder, applicant);
  return { id, isMember: true };
}

/** In a cluster that is there: which node this one was, or is to become. Nothing is written: nodes admit it. */
async function placeIn(
  identity: string,
  configuration: Configuration,
  applicant: Applicant,
): Promise<Omit<Joined, "read">> {
  const { settings, memory, instance } = applicant;
  const { nodes } = configuration;
  checkSettings(configuration, settings);
  const remembered = rememberedId(identity, nodes, applicant);
  const id = remembered ?? applicant.id ?? smallestFree(nodes);
  const holder = nodes.find((each) => each.id === id);
  if (holder !== undefined && holder.instance !== instance) {
    await refuseIfRunning(holder, applicant);
    if (remembered === undefined) throw taken(holder, applicant);
  }
  const hasItsData = remembered !== undefined;
  memory.save({ cluster: settings.cluster, identity, id, instance, isMember: hasItsData });
  return { id, hasItsData };
}

/** The id of which the store says that it is this node's, if the cluster says so, too. */
function rememberedId(
  identity: string,
  nodes: readonly NodeAddress[],
  { memory, settings, id: given }: Applicant,
): NodeId | undefined {
  const membership = memory.load();
  if (membership === undefined) return undefined;
  const { id, instance, isMember, hasLeft } = membership;
  const { cluster } = settings;
  if (membership.cluster !== cluster || (isMember && membership.identity !== identity)) {
    const whose = `this store is that of node ${id} in another cluster (${membership.cluster})`;
    const why = membership.cluster === cluster ? ", whose configuration etcd has not" : "";
    throw new SituError("SITU_CONFIG", `${whose}${why}; use another folder`);
  }
  if (hasLeft === true) {
    const why = `this store is that of node ${id}, which has left cluster ${cluster}`;
    throw new SituError("SITU_CONFIG", `${why}; use an empty folder to start a new node`);
  }
  // A claim that did not count is forgotten.
  const counted = nodes.some((each) => each.id === id && each.instance === instance);
  if (!isMember && !(counted && membership.identity === identity)) return undefined;
  if (given !== undefined && given !== id) {
    throw new SituError("SITU_CONFIG", `this store is that of node ${id}, not of node ${given}`);
  }
  return id;
}

async function refuseIfRunning(holder: NodeAddress, applicant: Applicant): Promise<void> {
  const found = await applicant.probe(holder);
  if (found === undefined || found.node !== holder.id || found.instance !== holder.instance) return;
  const { id, host, port } = holder;
  const why = `node ${id} of cluster ${applicant.settings.cluster} runs already, at ${host}:${port}`;
  throw new SituError("SITU_IN_USE", why);
}

function taken({ id, host, port }: NodeAddress, { settings }: Applicant): SituError {
  const whose = `node ${id} of cluster ${settings.cluster} is one at ${host}:${port} with another store`;
  return new SituError("SITU_CONFIG", `${whose}; choose another id, or leave it out`);
}

function checkSettings(there: Forming, given: ClusterSettings): void {
  for (const name of ["backups", "partitions", "leaseMs"] as const) {
    if (given[name] === undefined || there[name] === given[name]) continue;
    const why = `cluster ${there.cluster} has ${name} ${there[name]}, and this node's file says ${given[name]}`;
    throw new SituError("SITU_CONFIG", why);
  }
}

function addressOf(id: NodeId, { host, port, domain, instance }: Applicant): NodeAddress {
  return { id, host, port, instance, ...(domain === undefined ? {} : { domain }) };
}

function smallestFree(nodes: readonly NodeAddress[]): NodeId {
  const used = new Set(nodes.map(({ id }) => id));
  let id = 0;
  while (used.has(id)) id++;
  return id;
}

function tooFew({ settings }: Applicant, missing: number): SituError {
  const { cluster, backups } = settings;
  const why = `cluster ${cluster} needs ${backups + 1} nodes to begin, and ${missing} are missing`;
  return new SituError("SITU_UNREACHABLE", `${why} after ${FORMING_PATIENCE_MS / 60_000} minutes`);
}
