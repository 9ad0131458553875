/**
 * A node of a simulated cluster: a store of this process, and the same service that a node's NIC
 * worker runs, on the simulated fabric. It can be killed between any two events and come back: on the
 * memory of its store, as a process that is started again on the same machine, or from its log, after
 * the machine lost its power. All else that a life had is gone with it. Two seams let tests plant bugs: what serves messages, and
 * the end through which the node sends its own.
 */

import { ClusterClient } from "../../src/cluster/client.ts";
import type { Configuration } from "../../src/cluster/configuration.ts";
import type { TellFilled } from "../../src/cluster/copies.ts";
import { NodeService, type ServiceOptions } from "../../src/cluster/service.ts";
import { currentPlacement, View } from "../../src/cluster/view.ts";
import type { Procedure } from "../../src/database/procedure.ts";
import { RemoteDatabase } from "../../src/database/remote/remote-database.ts";
import type { Executor } from "../../src/engine/executor.ts";
import type {
  Clock,
  ConfigurationId,
  Endpoint,
  Incoming,
  NodeId,
} from "../../src/fabric/fabric.ts";
import { Procedures } from "../../src/node/procedures.ts";
import { AT_ONCE, SyncedDisk } from "../../src/protocols/disk.ts";
import { Driver } from "../../src/protocols/driver.ts";
import { CALL, CALL_OUTCOME, OPEN_CALLS } from "../../src/protocols/kinds.ts";
import type { Routine } from "../../src/protocols/message.ts";
import type { ProtocolName } from "../../src/protocols/places.ts";
import type { Head } from "../../src/protocols/records.ts";
import type { Decision, Settled } from "../../src/protocols/recovery/recovery.ts";
import { assert } from "../../src/runtime/assert.ts";
import type { Random } from "../../src/runtime/random.ts";
import { keptRecords } from "../../src/tables/served/kept-records.ts";
import { raiseLife } from "../../src/tables/served/lives.ts";
import { StoreTables } from "../../src/tables/served/served-tables.ts";
import type { SimulatedFabric } from "../fabric/fabric.ts";
import { SimulatedStore } from "./sim-store.ts";

/** Of what a procedure does beside its transaction, which has the time of its call. */
const CALL_TIMEOUT_MS = 4_000;
/** Between two rounds of the log. */
const LOG_EVERY_US = 1_000;

export interface SimulatedNodeOptions {
  readonly protocol?: ProtocolName;
  readonly clockRate?: number;
  /** Whether it has a log, and can come back from it. */
  readonly isLogged?: boolean;
  /** Whether its configuration may change. */
  readonly recovers?: boolean;
  /** With it: whether it has a lease, and whom it tells what it has copied. */
  readonly mayServe?: () => boolean;
  readonly filled?: TellFilled;
  /** What clients can call. */
  readonly procedures?: readonly Procedure[];
  /** Told what it settles in a recovery. */
  readonly settled?: Settled;
  readonly makeService?: (options: ServiceOptions) => NodeService;
  readonly wrapEndpoint?: (endpoint: Endpoint) => Endpoint;
}

/** All that a process has beside the memory of its store. */
interface Life {
  readonly executor: Executor;
  readonly endpoint: Endpoint;
  readonly service: NodeService;
  readonly tables: StoreTables;
  /** Each runs the transactions of one database of procedures. */
  readonly procedures: Driver[];
  /** Those of its databases, which hear of configurations. */
  readonly clients: ClusterClient[];
}

export class SimulatedNode {
  readonly id: NodeId;
  isUp = true;
  readonly #fabric: SimulatedFabric;
  /** That which its next life begins with. */
  configuration: Configuration;
  readonly #options: SimulatedNodeOptions;
  readonly #store: SimulatedStore;
  #lives = 0;
  #life: Life;

  constructor(
    fabric: SimulatedFabric,
    id: NodeId,
    configuration: Configuration,
    options: SimulatedNodeOptions = {},
  ) {
    this.id = id;
    this.#fabric = fabric;
    this.configuration = configuration;
    this.#options = options;
    this.#store = new SimulatedStore(id, options.isLogged ?? false);
    fabric.machine(id).hasPrograms = false;
    this.#life = this.#begin();
  }

  get executor(): Executor {
    return this.#life.executor;
  }

  get endpoint(): Endpoint {
    return this.#life.endpoint;
  }

  /** For its procedures. */
  get clock(): Clock {
    return this.#promising(this.endpoint.clock);
  }

  get service(): NodeService {
    return this.#life.service;
  }

  get tables(): StoreTables {
    return this.#life.tables;
  }

  get instance(): string {
    return `life-${this.#lives}-of-${this.id}`;
  }

  get roundTrips(): number {
    return this.#drivers.reduce((sum, { roundTrips }) => sum + roundTrips, 0);
  }

  /** Coroutines that run. */
  get running(): number {
    return this.#drivers.reduce((sum, { running }) => sum + running, 0);
  }

  /** The process is killed. */
  crash(): void {
    assert(this.isUp, "only a node that is up can crash");
    this.isUp = false;
    this.#fabric.crash(this.id);
    // Nothing of what is left of its program may reach the memory, which another life may have.
    for (const driver of this.#drivers) driver.close();
    this.#store.died();
  }

  /** After it has crashed: the memory of its store is lost, and what was not synced on its disk. */
  losePower(random: Random): void {
    assert(!this.isUp, "who loses power has crashed");
    this.#store.lostPower(random);
  }

  /** The process is started again, and finds the memory of its store, or its log. */
  comeBack(): void {
    assert(!this.isUp, "only a node that has crashed can come back");
    this.#life = this.#begin();
    this.isUp = true;
  }

  /** The database as procedures of this node have it: it coordinates, and locks what it reads (rpc). */
  database(name: string, random: Random, timeoutMs: number): RemoteDatabase {
    return this.#database(this.#life, name, random, timeoutMs);
  }

  #database(life: Life, name: string, random: Random, timeoutMs: number): RemoteDatabase {
    const { endpoint, procedures, service, clients } = life;
    const { coordinator } = service;
    const driver = new PromisingDriver(endpoint, service, () => this.#fabric.promised());
    procedures.push(driver);
    const { readsByVerb, locksOnRead } = service.view.current.protocol;
    const client = new ClusterClient(name, service.view);
    clients.push(client);
    return new RemoteDatabase({
      endpoint: withClock(endpoint, this.#promising(endpoint.clock)),
      driver,
      client,
      timeoutMs,
      readsByVerb,
      random,
      own: {
        commit: (parts, held, time, origin) =>
          held === undefined
            ? service.commit(parts, time, origin)
            : coordinator.commit(parts, held, origin),
        locks: locksOnRead ? coordinator : undefined,
      },
    });
  }

  /** There is a new configuration. */
  adopt(next: View): void {
    const before = this.service.view.current;
    if (!this.service.adopt(next)) return;
    for (const client of this.#life.clients) client.adopted(before, next);
  }

  /** Serves calls, as the host's thread does. */
  #serveCalls(life: Life, all: readonly Procedure[]): void {
    const { service, endpoint } = life;
    const clock = this.#promising(endpoint.clock);
    const procedures = new Procedures(new Map(all.map((each) => [each.name, each])), clock);
    const random = this.#fabric.random(`calls of ${this.instance}`);
    const db = this.#database(life, `host of ${this.instance}`, random, CALL_TIMEOUT_MS);
    const host = { db, service };
    const serve = (kind: number, by: (incoming: Incoming) => void): void =>
      service.handle({
        kind,
        serve: (_, incoming) => {
          this.#fabric.promised();
          by(incoming);
        },
      });
    serve(OPEN_CALLS, (incoming) => procedures.serveOpen(incoming));
    serve(CALL, (incoming) => procedures.serve(host, incoming));
    serve(CALL_OUTCOME, (incoming) => procedures.serveOutcome(incoming));
  }

  /** Where it has a log: whether the disk takes nothing more. */
  set isDiskFull(isFull: boolean) {
    this.#store.setDiskFull(isFull);
  }

  /** Lets go of the store. Not while transactions are prepared in it. */
  async close(): Promise<void> {
    await this.endpoint.close();
    if (!this.isUp) return;
    this.#store.close();
    this.executor.forgetRunning();
    this.executor.close();
  }

  get #drivers(): Driver[] {
    return [this.service.driver, ...this.#life.procedures];
  }

  #begin(): Life {
    const { id } = this;
    this.#lives++;
    const executor = this.#store.open();
    // The same in every run, another one at every node.
    executor.newHashSeed = () => id + 1;
    const { configuration } = this;
    const { mayServe, filled } = this.#options;
    const { protocol = "rpc", makeService, wrapEndpoint, clockRate = 1 } = this.#options;
    const current = new View({ self: id, instance: this.instance, configuration, protocol });
    const view = { current };
    const tables = new StoreTables(executor, currentPlacement(view));
    let service: NodeService | undefined;
    const bare = this.#fabric.endpoint({
      self: id,
      configurationId: configuration.configurationId,
      memory: executor.memory,
      clockRate,
      service: (incoming: Incoming) => service?.serve(incoming),
      isWhole: () => service?.hasBlocked !== true && mayServe?.() !== false,
    });
    const endpoint = wrapEndpoint?.(bare) ?? bare;
    const disk = this.#options.isLogged === true ? new SimulatedDisk(executor) : undefined;
    const serviceOptions: ServiceOptions = {
      endpoint,
      executor,
      tables,
      view,
      kept: keptRecords(executor, "nic", true),
      disk: disk ?? AT_ONCE,
      thread: "nic",
      life: this.#newLife(executor),
      newLife: () => this.#newLife(executor),
      recovers: this.#options.recovers ?? false,
      ...(mayServe === undefined ? {} : { mayServe }),
      ...(filled === undefined ? {} : { filled }),
    };
    service =
      makeService?.(serviceOptions) ?? new SettlingService(serviceOptions, this.#options.settled);
    service.settle();
    if (this.#options.isLogged === true) {
      this.#fabric.every(LOG_EVERY_US, id, () => {
        this.#store.round();
        disk?.look();
      });
    }
    const life = { executor, endpoint, service, tables, procedures: [], clients: [] };
    if (this.#options.procedures !== undefined) this.#serveCalls(life, this.#options.procedures);
    return life;
  }

  /** On disk before anything is sent, where there is one. */
  #newLife(executor: Executor): number {
    const life = raiseLife(executor);
    this.#store.round();
    return life;
  }

  /** Whoever waits for a moment of this clock waits with a promise. */
  #promising(clock: Clock): Clock {
    return {
      nowMs: () => clock.nowMs(),
      after: (ms, run) =>
        clock.after(ms, () => {
          this.#fabric.promised();
          run();
        }),
    };
  }
}

/** Says what it settles. */
class SettlingService extends NodeService {
  readonly #told: Settled | undefined;

  constructor(options: ServiceOptions, told: Settled | undefined) {
    super(options);
    this.#told = told;
  }

  protected override settled(head: Head, outcome: Decision): void {
    super.settled(head, outcome);
    this.#told?.(head, outcome);
  }
}

/** Answers wait for the rounds of the log. */
class SimulatedDisk extends SyncedDisk {
  protected override begin(): void {}
}

/** Tells the fabric when a coroutine ends that a promise waits for. */
class PromisingDriver extends Driver {
  readonly #promised: () => void;

  constructor(endpoint: Endpoint, service: NodeService, promised: () => void) {
    super(endpoint, (incoming) => service.serveAlone(incoming));
    this.#promised = promised;
  }

  override run<T>(
    routine: Routine<T>,
    timeoutMs: number,
    done: (result: T) => void,
    failed: (error: unknown) => void,
    configurationId?: ConfigurationId,
  ): void {
    const promised = this.#promised;
    super.run(
      routine,
      timeoutMs,
      (result) => {
        promised();
        done(result);
      },
      (error) => {
        promised();
        failed(error);
      },
      configurationId,
    );
  }
}

/** The same end, for one who looks at another clock. */
function withClock(endpoint: Endpoint, clock: Clock): Endpoint {
  return {
    self: endpoint.self,
    clock,
    get configurationId() {
      return endpoint.configurationId;
    },
    counters: endpoint.counters,
    send: (to, request) => endpoint.send(to, request),
    // Its databases come and go; the node's end stays.
    close: async () => {},
  };
}
