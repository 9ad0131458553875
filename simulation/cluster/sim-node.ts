/**
 * A node of a simulated cluster: a store of this process, and the same service that a node's NIC
 * worker runs, on the simulated fabric. It can be killed between any two events and come back on the
 * memory of its store, as a process that is started again on the same machine: all that a life had
 * outside of that memory is gone with it. Two seams let tests plant bugs: what serves messages, and
 * the end through which the node sends its own.
 */

import type { Configuration } from "../../src/cluster/configuration.ts";
import { RingPlacement } from "../../src/cluster/placement.ts";
import { NodeService, type ServiceOptions } from "../../src/cluster/service.ts";
import { Session } from "../../src/cluster/session.ts";
import { settingsOf } from "../../src/database/options.ts";
import { RemoteDatabase } from "../../src/database/remote/remote-database.ts";
import { Executor } from "../../src/engine/executor.ts";
import type { Clock, Endpoint, Incoming, NodeId } from "../../src/fabric/fabric.ts";
import { createControl, geometryOf } from "../../src/folder/memory-creation.ts";
import { type StoreMemory, segmentSizes } from "../../src/memory/store-memory.ts";
import { ThreadSegments } from "../../src/memory/thread-segments.ts";
import { Driver } from "../../src/protocols/driver.ts";
import type { Routine } from "../../src/protocols/message.ts";
import { PROTOCOLS, type ProtocolName } from "../../src/protocols/places.ts";
import { assert } from "../../src/runtime/assert.ts";
import type { Random } from "../../src/runtime/random.ts";
import { createCatalogue } from "../../src/tables/catalogue.ts";
import { StoreBackupLog } from "../../src/tables/served/backup-log.ts";
import { StoreTables } from "../../src/tables/served/served-tables.ts";
import type { SimulatedFabric } from "../fabric/fabric.ts";
import { SimulatedLeases } from "./leases.ts";

const SLOTS = 2;
const JOURNAL_BYTES = 4 * 1024 * 1024;
const MEMORY_BYTES = 16 * 1024 * 1024;
/** As a real node's: more than it can use up between two lives. */
const SEQUENCES_PER_US = 2;

export interface SimulatedNodeOptions {
  readonly protocol?: ProtocolName;
  readonly clockRate?: number;
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
}

export class SimulatedNode {
  readonly id: NodeId;
  isUp = true;
  readonly #fabric: SimulatedFabric;
  readonly #configuration: Configuration;
  readonly #options: SimulatedNodeOptions;
  readonly #leases = new SimulatedLeases();
  readonly #memory: StoreMemory;
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
    this.#configuration = configuration;
    this.#options = options;
    this.#memory = newMemory(`/simulated/${id}`);
    fabric.machine(id).hasPrograms = false;
    const executor = this.#newExecutor();
    createCatalogue(executor);
    executor.memory.control.publish();
    this.#life = this.#begin(executor);
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
    this.#leases.died(this.#lives);
  }

  /** The process is started again, and finds the memory of its store. */
  comeBack(): void {
    assert(!this.isUp, "only a node that has crashed can come back");
    const executor = this.#newExecutor();
    executor.sweep();
    this.#life = this.#begin(executor);
    this.isUp = true;
  }

  /** The database as procedures of this node have it: it coordinates, and locks what it reads (rpc). */
  database(name: string, random: Random, timeoutMs: number): RemoteDatabase {
    const { endpoint, procedures, service } = this.#life;
    const { coordinator } = service;
    const driver = new PromisingDriver(endpoint, service, () => this.#fabric.promised());
    procedures.push(driver);
    const { execute, locksOnRead } = PROTOCOLS[this.#options.protocol ?? "rpc"];
    return new RemoteDatabase({
      endpoint: withClock(endpoint, this.clock),
      driver,
      session: new Session(name, this.#configuration),
      timeoutMs,
      readsByVerb: execute === "verb",
      random,
      own: {
        commit: (parts, held) =>
          held === undefined ? service.commit(parts) : coordinator.commit(parts, held),
        locks: locksOnRead ? coordinator : undefined,
      },
    });
  }

  /** Lets go of the store. Not while transactions are prepared in it. */
  async close(): Promise<void> {
    await this.endpoint.close();
    if (!this.isUp) return;
    this.executor.forgetRunning();
    this.executor.close();
  }

  get #drivers(): Driver[] {
    return [this.service.driver, ...this.#life.procedures];
  }

  #newExecutor(): Executor {
    const executor = Executor.open(this.#memory, this.#leases.of(++this.#lives));
    // The same in every run, another one at every node.
    executor.newHashSeed = () => this.id + 1;
    return executor;
  }

  #begin(executor: Executor): Life {
    const { id } = this;
    const configuration = this.#configuration;
    const { protocol = "rpc", makeService, wrapEndpoint, clockRate = 1 } = this.#options;
    const placement = new RingPlacement(configuration);
    const tables = new StoreTables(executor, placement);
    let service: NodeService | undefined;
    const bare = this.#fabric.endpoint({
      self: id,
      epoch: configuration.epoch,
      memory: executor.memory,
      clockRate,
      service: (incoming: Incoming) => service?.serve(incoming),
    });
    const endpoint = wrapEndpoint?.(bare) ?? bare;
    const serviceOptions: ServiceOptions = {
      endpoint,
      executor,
      tables,
      placement,
      log: new StoreBackupLog(executor),
      description: { node: id, instance: this.instance, configuration, protocol },
      place: 0,
      firstSequence: 1 + Math.floor(this.#fabric.nowUs * SEQUENCES_PER_US),
    };
    service = makeService?.(serviceOptions) ?? new NodeService(serviceOptions);
    return { executor, endpoint, service, tables, procedures: [] };
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

/** Nodes that are up tell each other who they are, so that they can ship transactions. */
export function introduce(nodes: readonly SimulatedNode[]): void {
  for (const { id, service } of nodes) {
    for (const other of nodes) {
      if (other.id !== id) service.instances.set(other.id, other.instance);
    }
  }
}

/** Tells the fabric when a coroutine ends that a promise waits for. */
class PromisingDriver extends Driver {
  readonly #promised: () => void;

  constructor(endpoint: Endpoint, service: NodeService, promised: () => void) {
    super(endpoint, (incoming) => service.serve(incoming));
    this.#promised = promised;
  }

  override run<T>(
    routine: Routine<T>,
    timeoutMs: number,
    done: (result: T) => void,
    failed: (error: unknown) => void,
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
    );
  }
}

/** The same end, for one who looks at another clock. */
function withClock(endpoint: Endpoint, clock: Clock): Endpoint {
  return {
    self: endpoint.self,
    clock,
    epoch: endpoint.epoch,
    counters: endpoint.counters,
    send: (to, request) => endpoint.send(to, request),
    // Its databases come and go; the node's end stays.
    close: async () => {},
  };
}

function newMemory(path: string): StoreMemory {
  const settings = settingsOf({ path, sharing: "threads", memoryBytes: MEMORY_BYTES });
  const geometry = geometryOf(settings, SLOTS, JOURNAL_BYTES);
  const buffers = new Map<string, SharedArrayBuffer>();
  for (const [name, bytes] of segmentSizes(geometry)) {
    buffers.set(name, new SharedArrayBuffer(bytes));
  }
  return createControl(new ThreadSegments(buffers), geometry);
}
