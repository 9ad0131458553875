/**
 * A node of a simulated cluster: a store of this process, and the same service that a node's NIC
 * worker runs, on the simulated fabric. Two seams let tests plant bugs: what serves messages, and
 * the end through which the node sends its own.
 */

import type { Configuration } from "../../src/cluster/configuration.ts";
import { RingPlacement } from "../../src/cluster/placement.ts";
import { NodeService, type ServiceOptions } from "../../src/cluster/service.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import { Executor } from "../../src/engine/executor.ts";
import { DescriptorLeases } from "../../src/engine/leases/descriptor.ts";
import type { Endpoint, Incoming, NodeId } from "../../src/fabric/fabric.ts";
import { createControl, geometryOf } from "../../src/folder/memory-creation.ts";
import { segmentSizes } from "../../src/memory/store-memory.ts";
import { ThreadSegments } from "../../src/memory/thread-segments.ts";
import { createCatalogue } from "../../src/tables/catalogue.ts";
import { StoreBackupLog } from "../../src/tables/served/backup-log.ts";
import { StoreTables } from "../../src/tables/served/served-tables.ts";
import type { SimulatedFabric } from "../fabric/fabric.ts";

const SLOTS = 2;
const JOURNAL_BYTES = 4 * 1024 * 1024;
const MEMORY_BYTES = 16 * 1024 * 1024;
const LEASE_BYTES = 8;

export interface SimulatedNodeOptions {
  readonly protocol?: string;
  readonly clockRate?: number;
  readonly makeService?: (options: ServiceOptions) => NodeService;
  readonly wrapEndpoint?: (endpoint: Endpoint) => Endpoint;
}

export class SimulatedNode {
  readonly id: NodeId;
  readonly executor: Executor;
  readonly endpoint: Endpoint;
  readonly service: NodeService;
  readonly tables: StoreTables;

  constructor(
    fabric: SimulatedFabric,
    id: NodeId,
    configuration: Configuration,
    options: SimulatedNodeOptions = {},
  ) {
    const { protocol = "rpc", makeService, wrapEndpoint, clockRate = 1 } = options;
    this.id = id;
    this.executor = newExecutor(`/simulated/${id}`);
    // The same in every run, another one at every node.
    this.executor.newHashSeed = () => id + 1;
    const placement = new RingPlacement(configuration);
    this.tables = new StoreTables(this.executor, placement);
    const endpoint = fabric.endpoint({
      self: id,
      epoch: configuration.epoch,
      memory: this.executor.memory,
      clockRate,
      service: (incoming: Incoming) => this.service.serve(incoming),
    });
    this.endpoint = wrapEndpoint?.(endpoint) ?? endpoint;
    const serviceOptions: ServiceOptions = {
      endpoint: this.endpoint,
      executor: this.executor,
      tables: this.tables,
      placement,
      log: new StoreBackupLog(this.executor),
      description: { node: id, instance: instanceOf(id), configuration, protocol },
      place: 0,
      firstSequence: 1,
    };
    this.service = makeService?.(serviceOptions) ?? new NodeService(serviceOptions);
    for (const other of configuration.nodes) {
      if (other.id !== id) this.service.instances.set(other.id, instanceOf(other.id));
    }
  }

  /** Lets go of the store. Not while transactions are prepared in it. */
  async close(): Promise<void> {
    await this.endpoint.close();
    this.executor.forgetRunning();
    this.executor.close();
  }
}

function instanceOf(id: NodeId): string {
  return `life-1-of-${id}`;
}

function newExecutor(path: string): Executor {
  const settings = settingsOf({ path, sharing: "threads", memoryBytes: MEMORY_BYTES });
  const geometry = geometryOf(settings, SLOTS, JOURNAL_BYTES);
  const buffers = new Map<string, SharedArrayBuffer>();
  for (const [name, bytes] of segmentSizes(geometry)) {
    buffers.set(name, new SharedArrayBuffer(bytes));
  }
  const leases = new SharedArrayBuffer(SLOTS * LEASE_BYTES);
  const memory = createControl(new ThreadSegments(buffers), geometry);
  const executor = Executor.open(memory, new DescriptorLeases(leases));
  createCatalogue(executor);
  executor.memory.control.publish();
  return executor;
}
