/** From addresses to a database: finds a node that answers, and with it the cluster. */

import { ClusterClient } from "../../cluster/client.ts";
import { Describe, type Description } from "../../cluster/describe.ts";
import { clientView } from "../../cluster/view.ts";
import { CLIENT, type NodeId } from "../../fabric/fabric.ts";
import { openTcp, type TcpEndpoint } from "../../fabric/tcp/endpoint.ts";
import type { NodeAddress } from "../../fabric/tcp/tcp-options.ts";
import { Driver } from "../../protocols/driver.ts";
import type { Routine } from "../../protocols/message.ts";
import { SituError } from "../../runtime/errors.ts";
import { DEFAULT_MAX_SNAPSHOT_MS, FOLLOW_ANSWER_MS } from "../../runtime/limits.ts";
import { Random, uniqueId } from "../../runtime/random.ts";
import { connectNam } from "../nam/connect-nam.ts";
import type { NamDatabase } from "../nam/nam-database.ts";
import { connectXenic } from "../xenic/connect-xenic.ts";
import type { XenicDatabase } from "../xenic/xenic-database.ts";
import { type ConnectOptions, type ConnectSettings, connectSettingsOf } from "./connect-options.ts";
import { Follower } from "./follower.ts";
import { RemoteDatabase } from "./remote-database.ts";

export async function connect(
  options: ConnectOptions,
): Promise<RemoteDatabase | NamDatabase | XenicDatabase> {
  const settings = connectSettingsOf(options);
  const { configuration, protocol } = await descriptionFrom(settings);
  const { timeoutMs, maxSnapshotMs = DEFAULT_MAX_SNAPSHOT_MS, tables } = settings;
  const nodes = new Map(configuration.nodes.map(({ id, host, port }) => [id, { host, port }]));
  const endpoint = await endpointTo(settings, nodes, configuration.configurationId);
  if (protocol === "xenic") return connectXenic(settings, configuration, endpoint);
  if (protocol === "nam") return connectNam(settings, configuration, endpoint);
  const driver = new Driver(endpoint);
  const id = uniqueId();
  const view = clientView(id, configuration, protocol);
  const client = new ClusterClient(id, view);
  const readsByVerb = view.current.protocol.readsByVerb;
  const follower = new Follower({
    client,
    driver,
    random: new Random(),
    setNodes: (addresses) => endpoint.setNodes(addresses),
    askSeeds: () => descriptionFrom({ ...settings, timeoutMs: FOLLOW_ANSWER_MS }),
  });
  const db = new RemoteDatabase({
    endpoint,
    driver,
    client,
    timeoutMs,
    maxSnapshotMs,
    readsByVerb,
    follower,
  });
  try {
    await db.openTables(tables);
    return db;
  } catch (error) {
    await db.close();
    throw error;
  }
}

/** An endpoint of a client. */
export function endpointTo(
  { cluster, secret, tls }: ConnectSettings,
  nodes: ReadonlyMap<NodeId, NodeAddress>,
  configurationId: number,
): Promise<TcpEndpoint> {
  return openTcp({
    self: CLIENT,
    nodes,
    configurationId,
    cluster,
    ...(secret === undefined ? {} : { secret }),
    ...(tls === undefined ? {} : { tls }),
  });
}

/** Asks all at once; the first answer counts. */
export async function descriptionFrom(settings: ConnectSettings): Promise<Description> {
  const { seeds, timeoutMs } = settings;
  // These numbers are not those of the nodes: the connections are not kept.
  const anybody = new Map(seeds.map((seed, i) => [i, { ...seed, isAnybody: true }]));
  const endpoint = await endpointTo(settings, anybody, 0);
  const driver = new Driver(endpoint);
  try {
    const answers = seeds.map((_, seed) => driver.start(ask(seed), timeoutMs));
    return await Promise.any(answers);
  } catch (error) {
    const causes = error instanceof AggregateError ? (error.errors as unknown[]) : [error];
    const told = causes.find((cause) => cause instanceof SituError && cause.code !== "SITU_LOST");
    if (told instanceof SituError) throw told;
    const names = seeds.map(({ host, port }) => `${host}:${port}`).join(", ");
    throw new SituError("SITU_UNREACHABLE", `no node answers at ${names} within ${timeoutMs} ms`, {
      cause: causes[0],
    });
  } finally {
    driver.close();
    await endpoint.close();
  }
}

function* ask(seed: number): Routine<Description> {
  const message = new Describe(seed);
  yield [message];
  if (message.description === undefined) throw message.error;
  return message.description;
}
