/**
 * A client of a simulated cluster: the database that users have (src/database/remote), on an end of
 * the simulated fabric. Its time is the fabric's, and what it draws follows from the seed.
 */

import { ClusterClient } from "../../src/cluster/client.ts";
import type { Configuration } from "../../src/cluster/configuration.ts";
import { Describe, type Description } from "../../src/cluster/describe.ts";
import type { TimeLeft } from "../../src/cluster/session.ts";
import { clientView, type ViewHolder } from "../../src/cluster/view.ts";
import { Follower } from "../../src/database/remote/follower.ts";
import { RemoteDatabase } from "../../src/database/remote/remote-database.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import type { Outcome, Parts } from "../../src/protocols/coordinator.ts";
import { Driver } from "../../src/protocols/driver.ts";
import type { Routine } from "../../src/protocols/message.ts";
import { type ProtocolName, protocolOf } from "../../src/protocols/places.ts";
import { FOLLOW_ANSWER_MS } from "../../src/runtime/limits.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { Table } from "../../src/tables/table.ts";
import type { SimulatedEndpoint } from "../fabric/endpoint.ts";
import type { SimulatedFabric } from "../fabric/fabric.ts";

export interface ClientOptions {
  /** Different for all clients of a fabric, from 0 on. */
  readonly number: number;
  readonly configuration: Configuration;
  readonly timeoutMs: number;
  readonly protocol?: ProtocolName;
  /** One transaction in so many is submitted to any node, which may have none of its data. */
  readonly strayOneIn?: number;
  /** Whether it learns of later configurations by itself, as users' clients do. */
  readonly follows?: boolean;
}

export class SimulatedClient {
  /** Of its end on the fabric. */
  readonly id: number;
  readonly endpoint: SimulatedEndpoint;
  readonly driver: Driver;
  readonly session: ClusterClient;
  readonly db: RemoteDatabase;
  isGone = false;
  readonly #fabric: SimulatedFabric;
  readonly #timeoutMs: number;

  constructor(fabric: SimulatedFabric, options: ClientOptions) {
    const { number, configuration, timeoutMs, protocol = "rpc", strayOneIn = 0 } = options;
    const { follows = false } = options;
    this.id = -1 - number;
    this.#fabric = fabric;
    this.#timeoutMs = timeoutMs;
    this.endpoint = fabric.endpoint({
      self: this.id,
      configurationId: configuration.configurationId,
    });
    this.driver = new Driver(this.endpoint);
    const random = fabric.random(`client ${number}`);
    this.session = new StrayClient(
      `client ${number}`,
      clientView(`client ${number}`, configuration, protocol),
      random,
      strayOneIn,
    );
    this.db = new RemoteDatabase({
      endpoint: this.endpoint,
      driver: this.driver,
      client: this.session,
      timeoutMs,
      readsByVerb: protocolOf(protocol, "nic").readsByVerb,
      random,
      ...(follows ? { follower: this.#follower(random) } : {}),
    });
  }

  #follower(random: Random): Follower {
    const { driver, session } = this;
    return new Follower({
      client: session,
      driver,
      random,
      // Numbers are addresses here.
      setNodes: () => {},
      askSeeds: () => driver.start(anyDescription(session.nodes), FOLLOW_ANSWER_MS),
    });
  }

  /** Meets the nodes and makes tables known to them. */
  async arrive(tables: readonly Table[]): Promise<void> {
    await this.driver.start(this.session.meet(), this.#timeoutMs);
    await this.driver.start(this.session.openSessions(), this.#timeoutMs);
    await this.db.openTables(tables);
  }

  /** Goes on with a later configuration, at any moment. */
  adopt(configuration: Configuration): void {
    const { view, id } = this.session;
    const { configurationId, protocol } = view.current;
    if (configuration.configurationId <= configurationId || this.isGone) return;
    this.endpoint.configurationId = configuration.configurationId;
    this.session.adopt(clientView(id, configuration, protocol.name).current);
  }

  /** Its process is killed. */
  vanish(): void {
    this.isGone = true;
    this.#fabric.crash(this.id);
  }
}

function* anyDescription(nodes: readonly NodeId[]): Routine<Description> {
  const messages = nodes.map((node) => new Describe(node));
  yield messages;
  const found = messages.find(({ description }) => description !== undefined)?.description;
  if (found === undefined) throw messages[0].error;
  return found;
}

/** Now and then submits to a node that has none of the data: who then has all of it gets it from there. */
class StrayClient extends ClusterClient {
  readonly #random: Random;
  readonly #oneIn: number;

  constructor(id: string, view: ViewHolder, random: Random, oneIn: number) {
    super(id, view);
    this.#random = random;
    this.#oneIn = oneIn;
  }

  override submit(parts: Parts, coordinator: NodeId, time: TimeLeft): Routine<Outcome> {
    const isAstray = this.#oneIn > 0 && this.#random.below(this.#oneIn) === 0;
    const { nodes } = this;
    const to = isAstray ? nodes[this.#random.below(nodes.length)] : coordinator;
    return super.submit(parts, to, time);
  }
}
