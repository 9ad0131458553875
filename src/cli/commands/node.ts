/** `situ node`: one node of a cluster. */

import { COMMON, command } from "../command.ts";
import { inEnvironment, path, required } from "../option-kinds.ts";

export const NODE = command({
  summary: "runs a node of a cluster; SIGINT or SIGTERM stops it",
  synopsis: "--config node.json",
  about: [
    "What stands in the node's file is in docs/CLUSTER.md. The file is not situ.config.json.",
  ],
  options: {
    config: inEnvironment(
      "SITU_NODE_CONFIG",
      required(path("FILE", "the node's file, as node.json")),
    ),
    json: COMMON.json,
  },
  examples: [["situ node --config node.json", "until it is told to stop"]],
});
