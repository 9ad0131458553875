/** What operators of a cluster need. */

import { COMMON, command } from "../command.ts";
import { defaulted, duration, flag, path, required, secret, text, whole } from "../option-kinds.ts";

/** Where the cluster is. */
export const CONNECTION = {
  connect: required(text("HOST:PORT", "a node of the cluster, or several with commas between")),
  cluster: defaulted("situ", text("NAME", "the name of the cluster (situ)")),
  secretFile: path("FILE", "a file with the secret of the cluster"),
  secret: secret("the secret of the cluster"),
  ca: path("FILE", "connects with TLS: the certificate of those who signed the nodes' ones"),
};

const MOST_NODE_ID = 127;
const node = required(whole(0, MOST_NODE_ID, "the number of the node; also without the flag"));
const watched = duration("how long to watch (until it is done); the cluster goes on by itself");

export const CLUSTER_STATUS = command({
  summary: "says how a cluster is: its health, its nodes, its partitions",
  synopsis: "--connect HOST:PORT",
  about: [
    "The first line is a sentence on health: what works, how many more nodes may fail, and what to do. The",
    "exit code is 1 if rows cannot be used.",
  ],
  options: {
    ...CONNECTION,
    timeout: defaulted(2_000, duration("how long to wait for the nodes (2s)")),
    ...COMMON,
  },
  examples: [
    ["situ cluster status --connect 10.0.0.1:7000 --cluster shop", "health, nodes, partitions"],
  ],
});

export const CLUSTER_DRAIN = command({
  summary: "moves all partitions of a node to the others, so that it can leave",
  synopsis: "NODE --connect HOST:PORT",
  about: [
    "The node goes on serving what it still has, and every row keeps all its copies meanwhile. It is refused if",
    "too few nodes would be left for the copies. Interrupted, the command ends and the cluster goes on. A node",
    "that restarts while it is being drained begins anew, and this command asks for it again.",
  ],
  options: {
    node,
    cancel: flag("lets the node stay: it gets partitions again"),
    ...CONNECTION,
    timeout: watched,
    ...COMMON,
  },
  argument: "node",
  examples: [
    ["situ cluster drain 3 --connect 10.0.0.1:7000 --cluster shop", "empties node 3"],
    ["situ cluster drain 3 --cancel --connect 10.0.0.1:7000 --cluster shop", "or keeps it"],
  ],
});

export const CLUSTER_REMOVE = command({
  summary: "removes a drained node from the cluster",
  synopsis: "NODE --connect HOST:PORT",
  about: [
    "The node's process ends by itself, and its folder can be deleted. A node that still has partitions is",
    "refused: drain it first. A node that has died needs no removal: the cluster has gone on without it.",
  ],
  options: { node, ...CONNECTION, timeout: watched, ...COMMON },
  argument: "node",
  examples: [
    ["situ cluster remove 3 --connect 10.0.0.1:7000 --cluster shop", "node 3 leaves the cluster"],
  ],
});

export const CLUSTER_REBALANCE = command({
  summary: "spreads partitions evenly over the nodes, and shows the progress",
  synopsis: "--connect HOST:PORT",
  about: [
    "The cluster does this by itself when nodes have joined or left; the command has it begin at once, and",
    "watches until nothing would lie better elsewhere.",
  ],
  options: { ...CONNECTION, timeout: watched, ...COMMON },
  examples: [
    ["situ cluster rebalance --connect 10.0.0.1:7000 --cluster shop", "until it is balanced"],
  ],
});
