/** Between a node's file and its cluster in etcd: joins, and comes to what the node is started with. */

import type { NodeAddress } from "../cluster/configuration.ts";
import type { EtcdOptions } from "../cluster/etcd/endpoints.ts";
import { joinCluster } from "../cluster/etcd/forming.ts";
import { EtcdGateway } from "../cluster/etcd/gateway.ts";
import { EtcdRecord } from "../cluster/etcd/record.ts";
import { descriptionFrom } from "../database/remote/connect.ts";
import { SituError } from "../runtime/errors.ts";
import { PROBE_MS } from "../runtime/limits.ts";
import { uniqueId } from "../runtime/random.ts";
import { MembershipFile } from "./membership-file.ts";
import type { EtcdNodeConfiguration, NodeConfiguration } from "./node-configuration.ts";

/** For nodes that wait for others, so that a cluster can be formed. */
export interface Waiting {
  /** Told how many nodes are still missing. */
  readonly waiting?: (missing: number) => void;
  readonly signal?: AbortSignal;
}

/** How a node takes part in a cluster whose configuration is in etcd. */
export interface Candidate {
  readonly address: NodeAddress & { readonly instance: string };
  readonly etcd: EtcdOptions;
  readonly hasItsData: boolean;
}

export interface JoinedNode {
  readonly configuration: NodeConfiguration;
  readonly candidate: Candidate;
  /** Whether its id was free and no more than that: another node may be taken in under it first. */
  readonly hasFreeId: boolean;
  /** Its store remembers that it is a member. */
  admitted(): void;
  /** And that it has left, so that whatever starts it again does not bring it back. */
  left(): void;
}

/** The node's store is open. */
export async function joinedNode(
  file: EtcdNodeConfiguration,
  { waiting = () => {}, signal }: Waiting,
): Promise<JoinedNode> {
  const { etcd: given, ...rest } = file;
  const { settings, etcd, domain, listen, advertised } = given;
  const instance = uniqueId();
  const gateway = new EtcdGateway(etcd);
  const record = new EtcdRecord(gateway, settings.cluster);
  const stop = (): void => gateway.close();
  signal?.addEventListener("abort", stop);
  try {
    const memory = new MembershipFile(file.path);
    const { id, read, hasItsData } = await joinCluster(record, {
      settings,
      id: file.id,
      host: advertised,
      port: listen.port,
      domain,
      instance,
      memory,
      probe: (address) => probe(file, address),
      waiting,
      ...(signal === undefined ? {} : { signal }),
    });
    const cluster = read.record!.configuration!;
    const address = { id, host: advertised, port: listen.port, instance, ...inDomain(domain) };
    return {
      configuration: { ...rest, id, cluster, instance, listen },
      candidate: { address, etcd, hasItsData },
      hasFreeId: file.id === undefined && !hasItsData,
      admitted: () => memory.save({ ...memory.load()!, isMember: true }),
      left: () => memory.save({ ...memory.load()!, hasLeft: true }),
    };
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
    gateway.close();
  }
}

function inDomain(domain: string | undefined): Pick<NodeAddress, "domain"> {
  return domain === undefined ? {} : { domain };
}

/** Who answers at an address; nobody, if it is not known to be a node of this cluster. */
async function probe(
  { etcd, secret, tls }: EtcdNodeConfiguration,
  { host, port }: { host: string; port: number },
): Promise<{ node: number; instance: string } | undefined> {
  const { cluster } = etcd.settings;
  const seeds = [{ host, port }];
  try {
    return await descriptionFrom({ seeds, tables: [], cluster, secret, tls, timeoutMs: PROBE_MS });
  } catch (error) {
    const isNobody =
      error instanceof SituError && ["SITU_UNREACHABLE", "SITU_CONFIG"].includes(error.code);
    if (isNobody) return undefined;
    throw error;
  }
}
