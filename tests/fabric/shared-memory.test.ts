/** The contract of fabrics over message rings, with verbs as messages and with direct ones. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CLIENT, type NodeId } from "../../src/fabric/fabric.ts";
import {
  openSharedMemory,
  type SharedMemoryEndpoint,
} from "../../src/fabric/shared-memory/endpoint.ts";
import type { NodePlace } from "../../src/fabric/shared-memory/options.ts";
import { bootId } from "../../src/memory/boot.ts";
import { Control, controlBytes } from "../../src/memory/control.ts";
import { MappedSegments } from "../../src/memory/mapped-segments.ts";
import { CONTROL_NAME, StoreMemory } from "../../src/memory/region.ts";
import { SMALL } from "../helpers/engine-store.ts";
import type { FabricMaker } from "../helpers/fabric-maker.ts";
import type { TestMemory } from "../helpers/fabric-memory.ts";
import { eventually } from "../helpers/fabric-tcp.ts";
import { testFabricContract } from "./contract.ts";

/** The memory of a store, in files, as other processes would find it. */
function makeMappedMemory(): TestMemory {
  const folder = mkdtempSync(join(tmpdir(), "situ-test-rings-memory-"));
  const segments = new MappedSegments(folder);
  const control = segments.create(CONTROL_NAME, controlBytes(SMALL));
  const format = new Control(control.buffer, SMALL);
  format.format(bootId());
  const memory = new StoreMemory(segments, control, SMALL);
  memory.createRegion(0, 0);
  format.publish();
  return {
    memory,
    close() {
      memory.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function ringMaker(name: string, isDirect: boolean): FabricMaker {
  return {
    name,
    ...(isDirect ? { makeMemory: makeMappedMemory } : {}),
    async make({ nodes, clients = 1, clientEpoch = 1 }) {
      const folder = mkdtempSync(join(tmpdir(), "situ-test-rings-"));
      const places = new Map<NodeId, NodePlace>();
      for (const [id, { memory }] of nodes.entries()) {
        const memoryFolder = memory?.segments.place;
        const direct = isDirect && memoryFolder !== undefined ? { memoryFolder } : {};
        places.set(id, { folder: join(folder, `node-${id}`), ...direct });
      }
      const made: SharedMemoryEndpoint[] = [];
      for (const [self, node] of nodes.entries()) {
        const listen = { folder: join(folder, `node-${self}`) };
        made.push(await openSharedMemory({ epoch: 1, ...node, self, nodes: places, listen }));
      }
      const others: SharedMemoryEndpoint[] = [];
      for (let i = 0; i < clients; i++) {
        const self = CLIENT;
        others.push(await openSharedMemory({ self, nodes: places, epoch: clientEpoch }));
      }
      return {
        nodes: made,
        clients: others,
        until: eventually,
        async close() {
          for (const endpoint of [...others, ...made]) await endpoint.close();
          rmSync(folder, { recursive: true, force: true });
        },
      };
    },
  };
}

testFabricContract(ringMaker("shared memory", false));
testFabricContract(ringMaker("shared memory, direct verbs", true));
