/**
 * The NIC worker of a node: the thread that owns the sockets. It maps the node's memory for itself,
 * serves verbs and messages against it without the host's thread, and coordinates the commits of
 * clients. The host's thread is asked only for what the table of places, or a procedure, puts there.
 */

import { attach } from "../attach/attach.ts";
import type { NodeAddress } from "../cluster/configuration.ts";
import type { TellFilled } from "../cluster/copies.ts";
import { NodeService } from "../cluster/service.ts";
import { currentPlacement, View } from "../cluster/view.ts";
import { settingsOf } from "../database/open-options.ts";
import type { Executor } from "../engine/executor.ts";
import type { Gate } from "../fabric/exchange/shared.ts";
import type { ConfigurationId, FabricCounters } from "../fabric/fabric.ts";
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
import type { Candidate } from "./joining.ts";
import { Member, type MemberListener } from "./member.ts";
import type { NodeConfiguration } from "./node-configuration.ts";
import type { MemberStats } from "./node-membership.ts";
import { recoveringBy, type ServingGate } from "./serving-gate.ts";

/** What a node tells of itself. */
export interface NicStats {
  readonly counters: FabricCounters;
  readonly committed: number;
  readonly aborted: number;
  /** Transactions that hold locks here, records that are not applied, transactions not over. */
  readonly prepared: number;
  readonly logged: number;
  readonly open: number;
  /** In a cluster whose configuration changes. */
  readonly member: MemberStats | undefined;
}

export interface NicOptions {
  readonly configuration: NodeConfiguration;
  readonly life: number;
  /** Leads to the host's thread. */
  readonly end: ChannelEnd;
  /** In a cluster whose configuration changes. */
  readonly gate: ServingGate | undefined;
}

export class Nic {
  readonly endpoint: TcpEndpoint;
  readonly service: NodeService;
  readonly #link: HostLink;
  readonly #executor: Executor;
  readonly #options: NicOptions;
  readonly #sweeping: NodeJS.Timeout;
  #member: Member | undefined;

  private constructor(
    endpoint: TcpEndpoint,
    service: NodeService,
    link: HostLink,
    executor: Executor,
    options: NicOptions,
  ) {
    this.endpoint = endpoint;
    this.service = service;
    this.#link = link;
    this.#executor = executor;
    this.#options = options;
    this.#sweeping = setInterval(() => executor.sweep(), SWEEP_MS).unref();
  }

  /** Joins the store that the host has opened, and listens. */
  static async open(options: NicOptions): Promise<Nic> {
    const { configuration, life, end, gate } = options;
    const { id, path, cluster, secret, nodeSecret, tls, protocol, place, places } = configuration;
    const { instance: given, maxConnections, durability } = configuration;
    const executor = await attach(
      { ...settingsOf({ path }), isNode: true },
      (attached) => attached.executor,
    );
    let service: NodeService | undefined;
    let endpoint: TcpEndpoint | undefined;
    let nic: Nic | undefined;
    const filled: TellFilled = (known, partitions) => nic?.filled(known, partitions);
    const link = new HostLink(end, cluster.configurationId, (to, incoming) => {
      if (to === id) service!.serve(incoming);
      else {
        const { kind, body } = incoming;
        endpoint!.send(to, new Passed(kind, link.configurationId, body, incoming.defer()));
      }
    });
    try {
      endpoint = await openTcp({
        self: id,
        nodes: new Map(cluster.nodes.map(({ id: node, host, port }) => [node, { host, port }])),
        configurationId: cluster.configurationId,
        cluster: cluster.cluster,
        memory: executor.memory,
        service: (incoming) => service!.serve(incoming),
        ...(gate === undefined ? {} : { gate: gateOf(gate, () => endpoint!.configurationId) }),
        ...(given === undefined ? {} : { instance: given }),
        ...(secret === undefined ? {} : { secret }),
        ...(nodeSecret === undefined ? {} : { nodeSecret }),
        ...(tls === undefined ? {} : { tls }),
        ...(maxConnections === undefined ? {} : { maxConnections }),
      });
      const { instance } = endpoint;
      const view = {
        current: new View({
          self: id,
          instance,
          configuration: cluster,
          protocol,
          thread: place,
          places,
        }),
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
        ...(gate === undefined ? {} : recoveringBy(gate, view, filled)),
      });
      const { host, port } = configuration.listen ?? cluster.nodes.find((node) => node.id === id)!;
      await endpoint.listen({ host, port }).catch((error: unknown) => {
        throw cannotListen({ id, host, port }, error as NodeJS.ErrnoException);
      });
      service.settle();
      nic = new Nic(endpoint, service, link, executor, options);
      return nic;
    } catch (error) {
      link.close();
      await endpoint?.close();
      // What earlier lives have left may be locked already.
      executor.forgetRunning();
      executor.close();
      throw error;
    }
  }

  /** Becomes a member of the cluster, and follows its configurations. */
  async join(candidate: Candidate, listener: MemberListener): Promise<void> {
    this.#member = await Member.start({
      candidate,
      nic: this,
      link: this.#link,
      configuration: this.#options.configuration,
      gate: this.#options.gate!,
      listener,
    });
  }

  /** This node has copied these partitions, in a configuration. */
  filled(configurationId: ConfigurationId, partitions: readonly number[]): void {
    this.#member?.filled(configurationId, partitions);
  }

  stats(): NicStats {
    const { coordinator, participant, backup } = this.service;
    return {
      counters: this.endpoint.counters,
      ...coordinator.counters,
      prepared: participant.prepared,
      logged: backup?.logged ?? 0,
      open: coordinator.open,
      member: this.#member?.stats(),
    };
  }

  async close(): Promise<void> {
    await this.service.drain();
    clearInterval(this.#sweeping);
    await this.#member?.close();
    await this.endpoint.close();
    this.#link.close();
    this.service.close();
    this.#executor.close();
  }
}

function gateOf(gate: ServingGate, configurationId: () => ConfigurationId): Gate {
  return {
    mayServe: () => gate.mayServe(configurationId()),
    get isWhole() {
      return gate.isWhole(configurationId());
    },
  };
}

export function cannotListen({ id, host, port }: NodeAddress, cause: NodeJS.ErrnoException): Error {
  const where = `node ${id} cannot listen on ${host}:${port}`;
  if (cause.code === "EADDRINUSE") {
    const why = `${where}: another process does; is the node running already?`;
    return new SituError("SITU_IN_USE", why, { cause });
  }
  if (cause.syscall === undefined) return cause;
  const why = `${where}, which the cluster's configuration says: ${cause.message}`;
  return new SituError("SITU_CONFIG", why, { cause });
}
