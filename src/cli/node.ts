/** `situ node`: runs one node of a cluster until it is told to stop. */

import { parseArgs } from "node:util";
import { readNodeConfiguration } from "../node/configuration.ts";
import { SituNode } from "../node/node.ts";
import { SituError } from "../runtime/errors.ts";

export const NODE_HELP = `  situ node --config node.json    runs a node of a cluster; SIGINT or SIGTERM stops it
      --json                      says what happens as lines of JSON`;

export async function runNode(values: readonly string[]): Promise<void> {
  const { values: flags } = parseArgs({
    args: [...values],
    options: {
      config: { type: "string" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (flags.help) {
    console.log(NODE_HELP);
    return;
  }
  if (flags.config === undefined) {
    throw new SituError("SITU_CONFIG", "say which node this is: --config node.json");
  }
  const configuration = readNodeConfiguration(flags.config);
  const say = (event: string, text: string, more: object = {}): void =>
    console.log(flags.json ? JSON.stringify({ event, ...more }) : text);
  // Before it says that it listens: whoever hears that may tell it to stop at once.
  const stopped = new Promise<void>((resolve) => {
    process.once("SIGINT", () => resolve());
    process.once("SIGTERM", () => resolve());
  });
  const node = await SituNode.start(configuration, (error) => {
    console.error(`situ node: ${error.stack ?? error.message}`);
    process.exit(1);
  });
  const { id, host, port } = node;
  const { cluster, epoch, nodes } = configuration.cluster;
  const where = `node ${id} of ${nodes.length} in cluster ${cluster}`;
  say("listening", `situ: ${where} (configuration ${epoch}) listens on ${host}:${port}`, {
    node: id,
    host,
    port,
    cluster,
    epoch,
  });
  await stopped;
  await node.close();
  say("closed", `situ: node ${id} has closed`, { node: id });
}
