// Three nodes with the protocol "xenic" in this process, each with its threads, so that their figures can be asked for.
import { fileURLToPath } from "node:url";
import { xenicNodeOf } from "../../src/node/xenic/xenic-configuration.ts";
import { XenicNode } from "../../src/node/xenic/xenic-node.ts";
import { freePorts } from "../harness/free-ports.ts";
import { type CountedCommit, countCommits, type KindName } from "./commits.ts";

export async function countHere(): Promise<ReadonlyMap<KindName, CountedCommit>> {
  const ports = await freePorts(3);
  const cluster = { nodes: ports.map((port, id) => ({ id, host: "127.0.0.1", port })), backups: 2 };
  const procedures = [fileURLToPath(new URL("./procedures.js", import.meta.url))];
  const nodes = await Promise.all(
    [...ports.keys()].map((id) => {
      const values = { id, cluster, protocol: "xenic", procedures };
      return XenicNode.start(xenicNodeOf(values, ".", "the bench"), (error) => {
        throw error;
      });
    }),
  );
  try {
    return await countCommits(
      nodes,
      ports.map((port) => `127.0.0.1:${port}`),
    );
  } finally {
    await Promise.all(nodes.map((node) => node.close()));
  }
}
