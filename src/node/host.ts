/**
 * The host's side of a node: runs procedures, and takes part in transactions as the protocol's table
 * says. It works with the executor of the node's open store, so what procedures read and lock at their
 * own node they read and lock here, without a message; all else goes through the NIC worker. Only one
 * thread keeps the node's copies for others, for they must be applied in one order.
 */

import { ClusterClient } from "../cluster/client.ts";
import { NodeService } from "../cluster/service.ts";
import { currentPlacement, View } from "../cluster/view.ts";
import { RemoteDatabase } from "../database/remote/remote-database.ts";
import type { Executor } from "../engine/executor.ts";
import type { ChannelEnd } from "../fabric/rings/channel.ts";
import { AT_ONCE, SyncedDisk } from "../protocols/disk.ts";
import { CALL, LOG, OPEN_CALLS, TRUNCATE } from "../protocols/kinds.ts";
import { threadOf } from "../protocols/places.ts";
import { DEFAULT_TIMEOUT_MS } from "../runtime/limits.ts";
import { keptRecords } from "../tables/served/kept-records.ts";
import { raiseLife } from "../tables/served/lives.ts";
import { StoreTables } from "../tables/served/served-tables.ts";
import { HostEndpoint } from "./host-endpoint.ts";
import { HostLink } from "./host-link.ts";
import type { NodeConfiguration } from "./node-configuration.ts";
import type { ProcedureHost, Procedures } from "./procedures.ts";

export class Host implements ProcedureHost {
  readonly service: NodeService;
  readonly db: RemoteDatabase;
  readonly #client: ClusterClient;
  readonly #link: HostLink;
  #meeting: Promise<unknown> | undefined;

  /** `executor` is that of the open store; `end` leads to the NIC worker, whose instance is the node's. */
  constructor(
    configuration: NodeConfiguration,
    procedures: Procedures,
    instance: string,
    life: number,
    executor: Executor,
    end: ChannelEnd,
  ) {
    const { id, cluster, protocol, place, durability } = configuration;
    const current = new View({
      self: id,
      instance,
      configuration: cluster,
      protocol,
      thread: place,
    });
    const view = { current };
    const isHere = (kind: number): boolean => threadOf(current.protocol, kind) === "host";
    this.#link = new HostLink(end, (_, incoming) => this.service.serve(incoming));
    const endpoint = new HostEndpoint(id, cluster.configurationId, this.#link);
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
      isServedHere: (kind) => !isOfBackup(kind) || isHere(kind),
    });
    this.service.handle({
      kind: CALL,
      sender: "anyone",
      begins: false,
      serve: (_, incoming) => procedures.serve(this, incoming),
    });
    this.service.handle({
      kind: OPEN_CALLS,
      sender: "anyone",
      begins: false,
      serve: (_, incoming) => procedures.serveOpen(incoming),
    });
    this.service.settle();
    const { driver, coordinator } = this.service;
    this.#client = new ClusterClient(`host ${id} ${instance}`, view);
    this.db = new RemoteDatabase({
      endpoint,
      driver,
      client: this.#client,
      timeoutMs: DEFAULT_TIMEOUT_MS,
      readsByVerb: current.protocol.execute === "verb",
      own: {
        commit: (parts, held, time, origin) =>
          held === undefined
            ? this.service.commit(parts, time, origin)
            : coordinator.commit(parts, held, origin),
        locks: current.protocol.locksOnRead ? coordinator : undefined,
      },
    });
  }

  /** Knows the other nodes, as soon as they are there. */
  async meet(): Promise<void> {
    const { driver } = this.service;
    this.#meeting ??= driver
      .start(this.#client.meet(), DEFAULT_TIMEOUT_MS)
      .catch((error: unknown) => {
        this.#meeting = undefined;
        throw error;
      });
    await this.#meeting;
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
