/**
 * The NIC worker of a node: the thread that owns the sockets. It maps the node's memory for itself,
 * serves verbs and messages against it without the host's thread, and coordinates the commits of
 * clients. The host's thread is asked only for what the table of places, or a procedure, puts there.
 */

import { attach } from "../attach/attach.ts";
import type { NodeAddress } from "../cluster/configuration.ts";
import { NodeService } from "../cluster/service.ts";
import { currentPlacement, View } from "../cluster/view.ts";
import { settingsOf } from "../database/open-options.ts";
import type { Executor } from "../engine/executor.ts";
import type { FabricCounters } from "../fabric/fabric.ts";
import type { ChannelEnd } from "../fabric/rings/channel.ts";
import { openTcp, type TcpEndpoint } from "../fabric/tcp/endpoint.ts";
import { AT_ONCE, SyncedDisk } from "../protocols/disk.ts";
import { LOG } from "../protocols/kinds.ts";
import { threadOf } from "../protocols/places.ts";
import { SituError } from "../runtime/errors.ts";
import { SWEEP_MS } from "../runtime/limits.ts";
import { keptRecords } from "../tables/served/kept-records.ts";
import { raiseLife } from "../tables/served/lives.ts";
import { StoreTables } from "../tables/served/served-tables.ts";
import { HostLink, Passed } from "./host-link.ts";
import type { NodeConfiguration } from "./node-configuration.ts";

/** What a node tells of itself. */
export interface NicStats {
  readonly counters: FabricCounters;
  readonly committed: number;
  readonly aborted: number;
  /** Transactions that hold locks here, records that are not applied, transactions not over. */
  readonly prepared: number;
  readonly logged: number;
  readonly open: number;
}

export class Nic {
  readonly endpoint: TcpEndpoint;
  readonly service: NodeService;
  readonly #link: HostLink;
  readonly #executor: Executor;
  readonly #sweeping: NodeJS.Timeout;

  private constructor(
    endpoint: TcpEndpoint,
    service: NodeService,
    link: HostLink,
    executor: Executor,
  ) {
    this.endpoint = endpoint;
    this.service = service;
    this.#link = link;
    this.#executor = executor;
    this.#sweeping = setInterval(() => executor.sweep(), SWEEP_MS).unref();
  }

  /** Joins the store that the host has opened, and listens. `end` leads to the host's thread. */
  static async open(configuration: NodeConfiguration, life: number, end: ChannelEnd): Promise<Nic> {
    const { id, path, cluster, secret, nodeSecret, tls, protocol, place } = configuration;
    const { instance: given, listen, maxConnections, durability } = configuration;
    const executor = await attach(
      { ...settingsOf({ path }), isNode: true },
      (attached) => attached.executor,
    );
    const own = cluster.nodes.find((node) => node.id === id)!;
    let service: NodeService | undefined;
    let endpoint: TcpEndpoint | undefined;
    const link = new HostLink(end, (to, incoming) => {
      if (to === id) service!.serve(incoming);
      else endpoint!.send(to, new Passed(incoming.kind, incoming.body, incoming.defer()));
    });
    try {
      endpoint = await openTcp({
        self: id,
        nodes: new Map(cluster.nodes.map(({ id: node, host, port }) => [node, { host, port }])),
        configurationId: cluster.configurationId,
        cluster: cluster.cluster,
        memory: executor.memory,
        service: (incoming) => service!.serve(incoming),
        ...(given === undefined ? {} : { instance: given }),
        ...(secret === undefined ? {} : { secret }),
        ...(nodeSecret === undefined ? {} : { nodeSecret }),
        ...(tls === undefined ? {} : { tls }),
        ...(maxConnections === undefined ? {} : { maxConnections }),
      });
      const { instance } = endpoint;
      const view = {
        current: new View({ self: id, instance, configuration: cluster, protocol, thread: place }),
      };
      service = new NodeService({
        view,
        endpoint,
        executor,
        tables: new StoreTables(executor, currentPlacement(view)),
        kept: keptRecords(executor, "nic", threadOf(view.current.protocol, LOG) === "nic"),
        disk: durability === "sync" ? new SyncedDisk(executor) : AT_ONCE,
        thread: "nic",
        passOn: (incoming) => link.pass(incoming),
        life,
        newLife: () => raiseLife(executor),
      });
      const { host, port } = listen ?? own;
      await endpoint.listen({ host, port }).catch((error: unknown) => {
        throw cannotListen({ id, host, port }, error as NodeJS.ErrnoException);
      });
      service.settle();
      return new Nic(endpoint, service, link, executor);
    } catch (error) {
      link.close();
      await endpoint?.close();
      executor.close();
      throw error;
    }
  }

  stats(): NicStats {
    const { coordinator, participant, backup } = this.service;
    return {
      counters: this.endpoint.counters,
      ...coordinator.counters,
      prepared: participant.prepared,
      logged: backup?.logged ?? 0,
      open: coordinator.open,
    };
  }

  async close(): Promise<void> {
    await this.service.drain();
    clearInterval(this.#sweeping);
    await this.endpoint.close();
    this.#link.close();
    this.service.close();
    this.#executor.close();
  }
}

function cannotListen({ id, host, port }: NodeAddress, cause: NodeJS.ErrnoException): Error {
  const where = `node ${id} cannot listen on ${host}:${port}`;
  if (cause.code === "EADDRINUSE") {
    const why = `${where}: another process does; is the node running already?`;
    return new SituError("SITU_IN_USE", why, { cause });
  }
  if (cause.syscall === undefined) return cause;
  const why = `${where}, which the cluster's configuration says: ${cause.message}`;
  return new SituError("SITU_CONFIG", why, { cause });
}
