/** `situ node`: one node of a cluster. */

import { COMMON, command } from "../command.ts";
import { choice, inEnvironment, path, required } from "../option-kinds.ts";

export const NODE = command({
  summary: "runs a node of a cluster; SIGINT or SIGTERM stops it",
  synopsis: "--config node.json",
  about: [
    "docs/CLUSTER.md describes the node's file, which is not situ.config.json. With --role memory it is a memory",
    'server, whose clients commit by themselves; its file says "protocol": "nam".',
  ],
  options: {
    config: inEnvironment(
      "SITU_NODE_CONFIG",
      required(path("FILE", "the node's file, such as node.json")),
    ),
    role: choice(
      ["memory"],
      "what the node must be: a memory server; otherwise what its file says",
    ),
    json: COMMON.json,
  },
  examples: [
    ["situ node --config node.json", "runs until it is stopped"],
    ["situ node --role memory --config memory-0.json", "runs a memory server"],
  ],
});
