/** `situ node`: one node of a cluster. */

import { COMMON, command } from "../command.ts";
import { inEnvironment, path, required } from "../option-kinds.ts";

export const NODE = command({
  summary: "runs a node of a cluster; SIGINT or SIGTERM stops it",
  synopsis: "--config node.json",
  about: ["docs/CLUSTER.md describes the node's file, which is not situ.config.json."],
  options: {
    config: inEnvironment(
      "SITU_NODE_CONFIG",
      required(path("FILE", "the node's file, such as node.json")),
    ),
    json: COMMON.json,
  },
  examples: [["situ node --config node.json", "runs until it is stopped"]],
});
