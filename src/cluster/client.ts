/**
 * A client of the cluster, as coroutines: validates and commits what was executed elsewhere, and calls
 * procedures. It knows the configuration, and numbers what it has nodes do, so that what a lost reply
 * was about is done once (session.ts, outcomes.ts).
 */

import type { NodeId } from "../fabric/fabric.ts";
import type { Outcome, Parts } from "../protocols/coordinator.ts";
import { OPEN_CALLS, OPEN_SESSION } from "../protocols/kinds.ts";
import type { Routine } from "../protocols/message.ts";
import { Validate } from "../protocols/phases/validate.ts";
import { SituError } from "../runtime/errors.ts";
import { type Called, callOnce, type Returned } from "./call.ts";
import { Describe, type Description, OpenTable } from "./describe.ts";
import { Sessions, type TimeLeft } from "./session.ts";
import { submitOnce } from "./submit.ts";
import type { ViewHolder } from "./view.ts";

export class ClusterClient {
  readonly view: ViewHolder;
  /** Names this client in all that it submits. */
  readonly id: string;
  readonly #submits: Sessions;
  readonly #calls: Sessions;

  constructor(id: string, view: ViewHolder) {
    this.id = id;
    this.view = view;
    this.#submits = new Sessions(`${id} s`, OPEN_SESSION);
    this.#calls = new Sessions(`${id} c`, OPEN_CALLS);
  }

  get nodes(): readonly NodeId[] {
    return this.view.current.nodes;
  }

  /** Makes itself known where it will submit transactions. */
  *openSessions(): Routine<void> {
    yield* this.#submits.open(this.nodes);
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

  #met(to: NodeId, { node, configuration }: Description): void {
    const [theirs, own] = [configuration.configurationId, this.view.current.configurationId];
    if (node !== to || theirs !== own) {
      throw new SituError(
        "SITU_STALE_CONFIGURATION",
        `node ${to} has configuration ${theirs}, this end has ${own}`,
      );
    }
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

  /** Has a node commit the transaction, within its time. */
  *submit(parts: Parts, coordinator: NodeId, time: TimeLeft): Routine<Outcome> {
    return yield* submitOnce(this.#submits, coordinator, parts, time);
  }

  /** Has a procedure run at a node, within its time. */
  *call(node: NodeId, called: Called, time: TimeLeft): Routine<Returned> {
    return yield* callOnce(this.#calls, node, called, time);
  }
}

function nobody(node: NodeId): SituError {
  return new SituError("SITU_UNREACHABLE", `node ${node} does not answer`);
}
