/**
 * The host's side of a node: runs procedures, and takes part in transactions as the protocol's table
 * says. It works with the executor of the node's open store, so what procedures read and lock at their
 * own node they read and lock here, without a message; all else goes through the NIC worker. Only one
 * thread keeps the node's copies for others, for they must be applied in one order.
 */

import { ClusterClient } from "../cluster/client.ts";
import { type Configuration, configurationOf } from "../cluster/configuration.ts";
import type { TellFilled } from "../cluster/copies.ts";
import { MembershipRequest } from "../cluster/membership/membership-request.ts";
import { NodeService } from "../cluster/service.ts";
import { currentPlacement, View } from "../cluster/view.ts";
import { RemoteDatabase } from "../database/remote/remote-database.ts";
import type { Executor } from "../engine/executor.ts";
import { FIRST_MESSAGE_KIND, type Incoming, MEMBERSHIP_KIND } from "../fabric/fabric.ts";
import type { ChannelEnd } from "../fabric/rings/channel.ts";
import { AT_ONCE, SyncedDisk } from "../protocols/disk.ts";
import { CALL, CALL_OUTCOME, LOG, OPEN_CALLS, READ, SCAN, TRUNCATE } from "../protocols/kinds.ts";
import { threadOf } from "../protocols/places.ts";
import { DEFAULT_TIMEOUT_MS } from "../runtime/limits.ts";
import { keptRecords } from "../tables/served/kept-records.ts";
import { raiseLife } from "../tables/served/lives.ts";
import { StoreTables } from "../tables/served/served-tables.ts";
import { HostEndpoint } from "./host-endpoint.ts";
import { HostLink } from "./host-link.ts";
import type { Announced } from "./member.ts";
import type { NodeConfiguration } from "./node-configuration.ts";
import type { ProcedureHost, Procedures } from "./procedures.ts";
import { recoveringBy, type ServingGate } from "./serving-gate.ts";

export interface HostOptions {
  readonly configuration: NodeConfiguration;
  readonly procedures: Procedures;
  /** That of the NIC worker, which is the node's. */
  readonly instance: string;
  readonly life: number;
  /** That of the open store. */
  readonly executor: Executor;
  /** Leads to the NIC worker. */
  readonly end: ChannelEnd;
  /** In a cluster whose configuration changes. */
  readonly gate: ServingGate | undefined;
}

export class Host implements ProcedureHost {
  readonly service: NodeService;
  readonly db: RemoteDatabase;
  readonly #client: ClusterClient;
  readonly #link: HostLink;
  readonly #viewOf: (configuration: Configuration) => View;

  constructor({ configuration, procedures, instance, life, executor, end, gate }: HostOptions) {
    const { id, cluster, protocol, place, places, durability } = configuration;
    const viewOf = (known: Configuration): View =>
      new View({ self: id, instance, configuration: known, protocol, thread: place, places });
    const current = viewOf(cluster);
    const view = { current };
    const isHere = (kind: number): boolean => threadOf(current.protocol, kind) === "host";
    this.#viewOf = viewOf;
    this.#link = new HostLink(end, cluster.configurationId, (_, incoming) => {
      if (incoming.kind === MEMBERSHIP_KIND) this.#announced(incoming);
      else this.service.serveAlone(incoming);
    });
    const endpoint = new HostEndpoint(id, this.#link);
    // The NIC worker speaks with the manager.
    const filled: TellFilled = (configurationId, partitions) => {
      const message = { what: "filled", configurationId, instance, partitions } as const;
      endpoint.send(id, new MembershipRequest(message));
    };
    this.service = new NodeService({
      view,
      endpoint,
      executor,
      tables: new StoreTables(executor, currentPlacement(view)),
      kept: keptRecords(executor, "host", isHere(LOG)),
      disk: durability === "sync" ? new SyncedDisk(executor) : AT_ONCE,
      thread: "host",
      life,
      newLife: () => raiseLife(executor),
      isServedHere: (kind) => isHere(kind) || !(gate === undefined ? isOfBackup : isKept)(kind),
      ...(gate === undefined ? {} : recoveringBy(gate, view, filled)),
    });
    this.service.handle({
      kind: CALL,
      serve: (_, incoming) => procedures.serve(this, incoming),
    });
    this.service.handle({
      kind: OPEN_CALLS,
      serve: (_, incoming) => procedures.serveOpen(incoming),
    });
    this.service.handle({
      kind: CALL_OUTCOME,
      serve: (_, incoming) => procedures.serveOutcome(incoming),
    });
    this.service.settle();
    const { driver, coordinator } = this.service;
    this.#client = new ClusterClient(`host ${id} ${instance}`, view);
    this.db = new RemoteDatabase({
      endpoint,
      driver,
      client: this.#client,
      timeoutMs: DEFAULT_TIMEOUT_MS,
      readsByVerb: current.protocol.readsByVerb,
      own: {
        commit: (parts, held, time, origin) =>
          held === undefined
            ? this.service.commit(parts, time, origin)
            : coordinator.commit(parts, held, origin),
        locks: current.protocol.locksOnRead ? coordinator : undefined,
      },
    });
  }

  /** The NIC worker has adopted a configuration, or knows that it is committed. */
  #announced(incoming: Incoming): void {
    const { what, configuration } = JSON.parse(incoming.body.text()) as Announced;
    const known = configurationOf(configuration, "the NIC worker");
    const before = this.service.view.current;
    const { configurationId } = before;
    if (what === "adopted" && known.configurationId > configurationId) {
      const next = this.#viewOf(known);
      if (this.service.adopt(next)) this.#client.adopted(before, next);
    } else if (what === "committed" && known.configurationId === configurationId) {
      this.service.recover();
    }
    incoming.reply();
  }

  /** This life of the node has left the cluster. */
  leave(): void {
    this.service.leave();
  }

  /** The executor stays with the open store. */
  async close(): Promise<void> {
    await this.service.drain();
    this.#link.close();
    this.service.close();
  }
}

/** Only one thread keeps the node's copies; all else the host can do for itself. */
function isOfBackup(kind: number): boolean {
  return kind === LOG || kind === TRUNCATE;
}

/** Where nodes are recovered, one thread knows all that is locked, too. The host reads for itself. */
function isKept(kind: number): boolean {
  return kind !== READ && kind !== SCAN && kind >= FIRST_MESSAGE_KIND;
}
