/** How a fabric is made for the suite that runs over all of them (tests/fabric/contract.ts). */

import type { Endpoint, Service } from "../../src/fabric/fabric.ts";
import type { StoreMemory } from "../../src/memory/store-memory.ts";
import type { TestMemory } from "./fabric-memory.ts";

export interface NodePlan {
  readonly service?: Service;
  readonly memory?: StoreMemory;
  /** 1 if not given. */
  readonly configurationId?: number;
}

export interface FabricPlan {
  readonly nodes: readonly NodePlan[];
  /** 1 if not given. */
  readonly clients?: number;
  /** 1 if not given. */
  readonly clientConfigurationId?: number;
}

export interface TestFabric {
  /** Node i has self === i; each can send to every other. */
  readonly nodes: readonly Endpoint[];
  readonly clients: readonly Endpoint[];
  /** Lets the fabric run until something has happened; rejects if it does not. */
  until(done: () => boolean): Promise<void>;
  /** Closes all that the test has not closed. */
  close(): Promise<void>;
}

export interface FabricMaker {
  readonly name: string;
  make(plan: FabricPlan): Promise<TestFabric>;
  /** Where the fabric needs another memory than that of fabric-memory.ts. */
  readonly makeMemory?: () => TestMemory;
  /** False where clients cannot be refused writing verbs. */
  readonly clientsAreRefusedWrites?: boolean;
}
