/**
 * The host's side of a node: runs procedures, and takes part in transactions as the table of places
 * says. It has its own executor in the node's memory, so what procedures read and lock at their own
 * node they read and lock here, without a message; all else goes through the NIC worker. Only one
 * thread keeps the node's copies for others, for they must be applied in one order.
 */

import { attach } from "../attach/attach.ts";
import { RingPlacement } from "../cluster/placement.ts";
import { NodeService } from "../cluster/service.ts";
import { Session } from "../cluster/session.ts";
import { settingsOf } from "../database/open-options.ts";
import { RemoteDatabase } from "../database/remote/remote-database.ts";
import type { Executor } from "../engine/executor.ts";
import type { Incoming, NodeId } from "../fabric/fabric.ts";
import type { ChannelEnd } from "../fabric/rings/channel.ts";
import { CALL, LOG, TRUNCATE } from "../protocols/kinds.ts";
import { placesOf, threadOf } from "../protocols/places.ts";
import { wallClockMs } from "../runtime/clock.ts";
import { DEFAULT_TIMEOUT_MS } from "../runtime/limits.ts";
import { StoreBackupLog } from "../tables/served/backup-log.ts";
import { StoreTables } from "../tables/served/served-tables.ts";
import type { NodeConfiguration } from "./configuration.ts";
import { HostEndpoint } from "./host-endpoint.ts";
import { HostLink } from "./host-link.ts";
import { SEQUENCES_PER_MS } from "./nic.ts";
import type { ProcedureHost, Procedures } from "./procedures.ts";

export class Host implements ProcedureHost {
  readonly service: NodeService;
  readonly db: RemoteDatabase;
  readonly #session: Session;
  readonly #link: HostLink;
  readonly #executor: Executor;
  readonly #instance: string;
  #meeting: Promise<unknown> | undefined;

  private constructor(
    configuration: NodeConfiguration,
    procedures: Procedures,
    instance: string,
    executor: Executor,
    end: ChannelEnd,
  ) {
    const { id, cluster, protocol, place } = configuration;
    const placement = new RingPlacement(cluster);
    const places = placesOf(protocol, place);
    this.#executor = executor;
    this.#instance = instance;
    this.#link = new HostLink(end, (_, incoming) => this.#serve(incoming, procedures));
    const endpoint = new HostEndpoint(id, cluster.epoch, this.#link);
    this.service = new NodeService({
      endpoint,
      executor,
      tables: new StoreTables(executor, placement),
      placement,
      log: places.log === "host" ? new StoreBackupLog(executor) : undefined,
      description: { node: id, instance, configuration: cluster, protocol },
      place: 1,
      firstSequence: wallClockMs() * SEQUENCES_PER_MS,
      isServedHere: (kind) => !isOfBackup(kind) || threadOf(places, kind) === "host",
    });
    const { driver, coordinator } = this.service;
    this.#session = new Session(`host ${id} ${instance}`, cluster);
    this.db = new RemoteDatabase({
      endpoint,
      driver,
      session: this.#session,
      timeoutMs: DEFAULT_TIMEOUT_MS,
      readsByVerb: places.execute === "verb",
      own: {
        commit: (parts, held) =>
          held === undefined ? this.service.commit(parts) : coordinator.commit(parts, held),
        locks: places.locksOnRead ? coordinator : undefined,
      },
    });
  }

  static async open(
    configuration: NodeConfiguration,
    procedures: Procedures,
    instance: string,
    end: ChannelEnd,
  ): Promise<Host> {
    const settings = { ...settingsOf({ path: configuration.path }), isNode: true };
    const executor = await attach(settings, (attached) => attached.executor);
    try {
      return new Host(configuration, procedures, instance, executor, end);
    } catch (error) {
      executor.close();
      throw error;
    }
  }

  instanceOf(node: NodeId): string {
    return node === this.service.self ? this.#instance : this.#session.instanceOf(node);
  }

  /** Knows the other nodes, as soon as they are there. */
  async meet(): Promise<void> {
    this.#meeting ??= this.#meet().catch((error: unknown) => {
      this.#meeting = undefined;
      throw error;
    });
    await this.#meeting;
  }

  async #meet(): Promise<void> {
    const met = await this.service.driver.start(this.#session.meet(), DEFAULT_TIMEOUT_MS);
    for (const { node, instance } of met) this.service.instances.set(node, instance);
  }

  async meetAgain(node: NodeId): Promise<void> {
    await this.service.driver.start(this.#session.meetAgain(node), DEFAULT_TIMEOUT_MS);
    this.service.instances.set(node, this.#session.instanceOf(node));
  }

  async close(): Promise<void> {
    await this.service.drain();
    this.#link.close();
    this.service.close();
    this.#executor.close();
  }

  #serve(incoming: Incoming, procedures: Procedures): void {
    if (incoming.kind === CALL) procedures.serve(this, incoming);
    else this.service.serve(incoming);
  }
}

/** Only one thread keeps the node's copies; all else the host can do for itself. */
function isOfBackup(kind: number): boolean {
  return kind === LOG || kind === TRUNCATE;
}
