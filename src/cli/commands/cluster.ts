/** What operators of a cluster need. */

import { COMMON, command } from "../command.ts";
import { defaulted, duration, path, required, secret, text } from "../option-kinds.ts";

export const CLUSTER_STATUS = command({
  summary: "says how a cluster is: its health, its nodes, its partitions",
  synopsis: "--connect HOST:PORT",
  about: [
    "The first line is a sentence on health: what works, how many more nodes may fail, and what to do. The",
    "exit code is 1 if rows cannot be used.",
  ],
  options: {
    connect: required(text("HOST:PORT", "a node of the cluster, or several with commas between")),
    cluster: defaulted("situ", text("NAME", "the name of the cluster (situ)")),
    secretFile: path("FILE", "a file with the secret of the cluster"),
    secret: secret("the secret of the cluster"),
    ca: path("FILE", "connects with TLS: the certificate of those who signed the nodes' ones"),
    timeout: defaulted(2_000, duration("how long to wait for the nodes (2s)")),
    ...COMMON,
  },
  examples: [
    ["situ cluster status --connect 10.0.0.1:7000 --cluster shop", "health, nodes, partitions"],
  ],
});
