/**
 * Those who run transactions in a simulation: clients with an end of their own, and procedures at a
 * node. Both run a workload's program; a client can vanish at any moment.
 */

import { ClusterClient } from "../../src/cluster/client.ts";
import type { Configuration } from "../../src/cluster/configuration.ts";
import { RingPlacement } from "../../src/cluster/placement.ts";
import { clientView } from "../../src/cluster/view.ts";
import type { Endpoint } from "../../src/fabric/fabric.ts";
import type { Outcome } from "../../src/protocols/coordinator.ts";
import { Driver } from "../../src/protocols/driver.ts";
import { RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import { PROTOCOLS, type ProtocolName } from "../../src/protocols/places.ts";
import { SituError } from "../../src/runtime/errors.ts";
import type { Random } from "../../src/runtime/random.ts";
import { schemaOf } from "../../src/tables/schema.ts";
import type { Table } from "../../src/tables/table.ts";
import type { SimulatedFabric } from "../fabric/fabric.ts";
import { type Program, pause, perform, runProgram } from "./program.ts";
import type { SimulatedNode } from "./sim-node.ts";
import {
  ClientTransaction,
  NodeTransaction,
  type ReadRows,
  type RowKey,
  type SimulatedTransaction,
} from "./transaction.ts";

/** How long a transaction of a simulation insists on an answer. */
const TIMEOUT_MS = 4_000;
const MAX_PAUSE_MS = 50;

/** How one attempt ended, and what its body returned. */
export type Attempt<T> =
  | { readonly kind: "ok"; readonly result: T }
  | { readonly kind: "failed"; readonly error: SituError | undefined }
  | { readonly kind: "unknown"; readonly result: T };

/** "locked": somebody was in the way; the attempt has failed. */
export type Body<T> = (tx: SimulatedTransaction) => Program<T | "locked">;

export interface Worker {
  /** Different for all that ever take part. */
  readonly number: number;
  readonly random: Random;
  readonly driver: Driver;
  readonly isGone: boolean;
  tableOf(table: Table): RemoteTable;
  begin(): SimulatedTransaction;
}

export abstract class BaseWorker implements Worker {
  readonly number: number;
  readonly random: Random;
  abstract readonly driver: Driver;
  isGone = false;
  readonly #tables = new Map<Table, RemoteTable>();
  readonly #placement: RingPlacement;

  constructor(number: number, random: Random, configuration: Configuration) {
    this.number = number;
    this.random = random;
    this.#placement = new RingPlacement(configuration);
  }

  tableOf(table: Table): RemoteTable {
    let found = this.#tables.get(table);
    if (found === undefined) {
      found = new RemoteTable(table, this.#placement);
      this.#tables.set(table, found);
    }
    return found;
  }

  abstract begin(): SimulatedTransaction;

  run(program: Program<void>, ended: () => void): void {
    runProgram(program, this.driver, ended, (error) => {
      // One who has vanished is told nothing but that.
      if (this.isGone) ended();
      else throw error;
    });
  }
}

export class ClientWorker extends BaseWorker {
  readonly driver: Driver;
  readonly endpoint: Endpoint;
  readonly session: ClusterClient;
  readonly #readsByVerb: boolean;

  constructor(
    fabric: SimulatedFabric,
    number: number,
    random: Random,
    configuration: Configuration,
    protocol: ProtocolName,
    wrapEndpoint: (endpoint: Endpoint) => Endpoint = (endpoint) => endpoint,
  ) {
    super(number, random, configuration);
    this.endpoint = wrapEndpoint(
      fabric.endpoint({ self: -1 - number, configurationId: configuration.configurationId }),
    );
    this.#readsByVerb = PROTOCOLS[protocol].execute === "verb";
    this.driver = new Driver(this.endpoint);
    const id = `client ${number}`;
    this.session = new ClusterClient(id, clientView(id, configuration, protocol));
  }

  /** Meets the nodes and makes tables known to them, however long that takes. */
  *arrive(tables: readonly Table[]): Program<void> {
    yield* perform(this.session.meet(), Number.MAX_SAFE_INTEGER);
    for (const table of tables) {
      const schema = JSON.stringify(schemaOf(table));
      const places = yield* perform(this.session.openTable(schema), Number.MAX_SAFE_INTEGER);
      if (this.#readsByVerb) this.tableOf(table).openPlaces(this.session.nodes, places);
    }
  }

  begin(): SimulatedTransaction {
    return new ClientTransaction(this.session, this.random);
  }

  vanish(): void {
    this.isGone = true;
    void this.endpoint.close();
  }
}

export class ProcedureWorker extends BaseWorker {
  readonly node: SimulatedNode;

  constructor(node: SimulatedNode, number: number, random: Random, configuration: Configuration) {
    super(number, random, configuration);
    this.node = node;
  }

  get driver(): Driver {
    return this.node.service.driver;
  }

  begin(): SimulatedTransaction {
    return new NodeTransaction(this.node.service.coordinator);
  }
}

/** One attempt of a transaction. Whatever goes wrong in it is told, not thrown. */
export function* attempt<T>(worker: Worker, body: Body<T>): Program<Attempt<T>> {
  const tx = worker.begin();
  let result: T | "locked";
  try {
    result = yield* body(tx);
  } catch (error) {
    if (!(error instanceof SituError)) throw error;
    tx.giveUp();
    return { kind: "failed", error };
  }
  if (result === "locked") {
    tx.giveUp();
    return { kind: "failed", error: undefined };
  }
  let outcome: Outcome;
  try {
    outcome = yield* perform(tx.commit(), TIMEOUT_MS);
  } catch (error) {
    // Reads that could not be validated; a submit says "unknown" and does not throw.
    if (!(error instanceof SituError)) throw error;
    return { kind: "failed", error };
  }
  if (outcome.kind === "committed") return { kind: "ok", result };
  if (outcome.kind === "unknown") return { kind: "unknown", result };
  return { kind: "failed", error: outcome.kind === "refused" ? outcome.error : undefined };
}

/** Reads within the time-out of a transaction. */
export function* read(tx: SimulatedTransaction, keys: readonly RowKey[]): Program<ReadRows> {
  return yield* perform(tx.read(keys), TIMEOUT_MS);
}

/** The pause before an attempt is repeated: random, and longer each time. */
export function* backOff({ random }: Worker, attempts: number): Program<void> {
  const mostMs = Math.min(0.1 * 2 ** Math.min(attempts, 12), MAX_PAUSE_MS);
  yield* pause((mostMs * (1 + random.below(1_000))) / 1_000);
}
