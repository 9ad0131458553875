// One server of a cluster on loopback: a memory server, or a node with the protocol "rpc". It tells its counters when it is asked.
import { memoryNodeOf } from "../../src/node/memory-configuration.ts";
import { MemoryNode } from "../../src/node/memory-node.ts";
import { SituNode } from "../../src/node/node.ts";
import { nodeFileOf } from "../../src/node/node-configuration.ts";

/** Of one server, since it was started. */
export interface ServerCounts {
  /** Requests that it has served, from clients and from other servers. */
  readonly served: number;
  /** Writes to its sockets: frames that leave at once share one. */
  readonly writes: number;
}

const [given] = process.argv.slice(2);
const file = JSON.parse(given) as { readonly protocol: string };

function died(error: Error): void {
  throw error;
}

const node =
  file.protocol === "nam"
    ? await MemoryNode.start(memoryNodeOf(file, ".", "the bench"), died)
    : await SituNode.start(nodeFileOf(file, ".", "the bench"), { died });

process.on("message", async (wanted: "counts" | "end") => {
  if (wanted === "counts") {
    const { counters } = await node.stats();
    const counts: ServerCounts = { served: counters.requestsServed, writes: counters.writes };
    process.send?.(counts);
    return;
  }
  await node.close();
  process.disconnect();
});
process.send?.("ready");
