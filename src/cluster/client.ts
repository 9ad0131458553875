/**
 * A client of the cluster, as coroutines: validates and commits what was executed elsewhere. It knows
 * the configuration and which life of each node it talks to, and numbers its transactions, so that
 * one whose reply was lost is committed once (outcomes.ts).
 */

import type { NodeId } from "../fabric/fabric.ts";
import { ABORTED, COMMITTED, type Outcome, type Parts } from "../protocols/coordinator.ts";
import { isLost, type Routine } from "../protocols/message.ts";
import { Validate } from "../protocols/phases/validate.ts";
import { SituError } from "../runtime/errors.ts";
import { Describe, type Description, OpenTable } from "./describe.ts";
import { Submit } from "./submit.ts";
import type { ViewHolder } from "./view.ts";

export class ClusterClient {
  readonly view: ViewHolder;
  /** Names this client in all that it submits. */
  readonly id: string;
  readonly #instances = new Map<NodeId, string>();
  #next = 0;
  readonly #open = new Set<number>();

  constructor(id: string, view: ViewHolder) {
    this.id = id;
    this.view = view;
  }

  get nodes(): readonly NodeId[] {
    return this.view.current.nodes;
  }

  /** Meets all nodes. */
  *meet(): Routine<Description[]> {
    const messages = this.nodes.map((node) => new Describe(node));
    yield messages;
    return messages.map((message) => {
      const { description, error } = message;
      if (description === undefined) throw error ?? nobody(message.to);
      this.#met(message.to, description);
      return description;
    });
  }

  #met(to: NodeId, { node, instance, configuration }: Description): void {
    const [theirs, own] = [configuration.configurationId, this.view.current.configurationId];
    if (node !== to || theirs !== own) {
      throw new SituError(
        "SITU_STALE_CONFIGURATION",
        `node ${to} has configuration ${theirs}, this end has ${own}`,
      );
    }
    this.#instances.set(node, instance);
  }

  /** Opens a table at all nodes; gives what each says of it, in the order of the nodes. */
  *openTable(schema: string): Routine<string[]> {
    const messages = this.nodes.map((node) => new OpenTable(node, schema));
    yield messages;
    return messages.map(({ error, place }) => {
      if (error !== undefined) throw error;
      return place;
    });
  }

  /** Whether all that was read is still so: what a transaction that writes nothing needs. */
  *validate(parts: Parts): Routine<boolean> {
    const messages: Validate[] = [];
    for (const [node, part] of parts) {
      if (part.dependencyCount > 0) messages.push(new Validate(node, part));
    }
    if (messages.length === 0) return true;
    yield messages;
    for (const { error } of messages) if (error !== undefined) throw error;
    return messages.every(({ isValid }) => isValid);
  }

  /** Has a node commit the transaction. */
  *submit(parts: Parts, coordinator: NodeId): Routine<Outcome> {
    const number = this.#next++;
    this.#open.add(number);
    try {
      const instance = this.#instances.get(coordinator) ?? "";
      const numbered = { instance, client: this.id, number, low: this.#low };
      const message = new Submit(coordinator, numbered, parts);
      yield [message];
      return message.error === undefined
        ? message.outcome
        : yield* this.#failed(message, coordinator);
    } finally {
      this.#open.delete(number);
    }
  }

  *#failed({ error, attempts }: Submit, coordinator: NodeId): Routine<Outcome> {
    if (error === undefined) return COMMITTED;
    if (error.code === "SITU_UNKNOWN_OUTCOME") {
      // The node was started anew. What was sent only once, to a life that had ended, was not done.
      yield* this.meetAgain(coordinator);
      if (attempts === 1) return ABORTED;
    }
    if (isLost(error) || error.code === "SITU_CLOSED") {
      const why = `node ${coordinator} did not answer: the transaction may or may not have been committed`;
      return {
        kind: "unknown",
        error: new SituError("SITU_UNKNOWN_OUTCOME", why, { cause: error }),
      };
    }
    return { kind: error.code === "SITU_UNKNOWN_OUTCOME" ? "unknown" : "refused", error };
  }

  /** Asks a node who it is now. */
  *meetAgain(node: NodeId): Routine<void> {
    const message = new Describe(node);
    yield [message];
    if (message.description !== undefined) this.#met(node, message.description);
  }

  instanceOf(node: NodeId): string {
    return this.#instances.get(node) ?? "";
  }

  /** A number for something else that is to be done once: a call. `heard` ends it. */
  number(): { number: number; low: number } {
    const number = this.#next++;
    this.#open.add(number);
    return { number, low: this.#low };
  }

  heard(number: number): void {
    this.#open.delete(number);
  }

  get #low(): number {
    for (const number of this.#open) return number;
    return this.#next;
  }
}

function nobody(node: NodeId): SituError {
  return new SituError("SITU_UNREACHABLE", `node ${node} does not answer`);
}
