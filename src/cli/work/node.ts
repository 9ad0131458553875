/** `situ node`: runs one node of a cluster until it is told to stop. */

import { SituNode } from "../../node/node.ts";
import { readNodeFile } from "../../node/node-configuration.ts";
import { counted } from "../../runtime/units.ts";
import { EXIT_FAILED, EXIT_OK } from "../failures.ts";
import { type Run, untilStopped } from "./context.ts";

export const runNode: Run<"node"> = async ({ config }, { screen, signal }) => {
  const file = readNodeFile(config);
  const say = (event: string, text: string, more: object): void => {
    screen.line(text);
    screen.json({ event, ...more });
  };
  const died = (error: Error): never => {
    screen.note(`situ node: ${error.stack ?? error.message}`);
    process.exit(EXIT_FAILED);
  };
  const node = await SituNode.start(file, died, {
    waiting: (missing) => {
      screen.note(`situ node: waiting for ${counted(missing, "more node")} to form the cluster`);
    },
    signal,
  });
  const { id, host, port } = node;
  const { cluster, configurationId, nodes } = node.configuration.cluster;
  const where = `node ${id} of ${nodes.length} in cluster ${cluster}`;
  say(
    "listening",
    `situ: ${where} (configuration ${configurationId}) listening on ${host}:${port}`,
    {
      node: id,
      host,
      port,
      cluster,
      configurationId,
    },
  );
  await untilStopped(signal);
  await node.close();
  say("closed", `situ: node ${id} closed`, { node: id });
  return EXIT_OK;
};
