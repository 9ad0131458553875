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
import { type Call, type Called, callOnce, type Returned } from "./call.ts";
import { Describe, type Description, OpenTable } from "./describe.ts";
import { type NumberedMessage, Sessions, type TimeLeft } from "./session.ts";
import { type Submit, submitOnce, submittedOutcome } from "./submit.ts";
import type { View, ViewHolder } from "./view.ts";

export class ClusterClient {
  readonly view: ViewHolder;
  /** Names this client in all that it submits. */
  readonly id: string;
  readonly #submits: Sessions;
  readonly #calls: Sessions;
  #snapshots = 0;

  constructor(id: string, view: ViewHolder) {
    this.id = id;
    this.view = view;
    this.#submits = new Sessions(`${id} s`, OPEN_SESSION);
    this.#calls = new Sessions(`${id} c`, OPEN_CALLS);
  }

  /** A name for a snapshot that no other has, nor another client. */
  newSnapshotName(): string {
    return `${this.id} ${++this.#snapshots}`;
  }

  get nodes(): readonly NodeId[] {
    return this.view.current.nodes;
  }

  /** A later configuration counts from now on. */
  adopt(next: View): void {
    const before = this.view.current;
    this.view.current = next;
    this.adopted(before, next);
  }

  /** The same where somebody else has replaced the view. */
  adopted(before: View, next: View): void {
    for (const sessions of [this.#submits, this.#calls]) sessions.adopted(before, next);
  }

  /** Makes itself known where it will submit transactions. */
  *openSessions(nodes: readonly NodeId[] = this.nodes): Routine<void> {
    yield* this.#submits.open(nodes);
  }

  /** What the nodes that can be reached say of themselves; fails if there is none. */
  *meet(): Routine<Description[]> {
    const messages = this.nodes.map((node) => new Describe(node));
    yield messages;
    const answers = messages.flatMap(({ description }) => description ?? []);
    if (answers.length === 0) throw messages[0].error!;
    return answers;
  }

  /** Opens tables at a node; gives what it says of each. */
  *openTables(node: NodeId, schemas: readonly string[]): Routine<string[]> {
    const messages = schemas.map((schema) => new OpenTable(node, schema));
    yield messages;
    return messages.map(({ error, place }) => {
      if (error !== undefined) throw error;
      return place;
    });
  }

  /** Whether all that was read is still so: what a transaction that writes nothing needs. */
  *validate(parts: Parts): Routine<boolean> {
    const messages: Validate[] = [];
    let epoch = 0;
    for (const [node, part] of parts) {
      if (part.dependencyCount === 0) continue;
      messages.push(new Validate(node, part));
      epoch = Math.max(epoch, part.readEpoch);
    }
    for (const message of messages) message.epoch = epoch;
    if (messages.length === 0) return true;
    yield messages;
    for (const { error } of messages) if (error !== undefined) throw error;
    return messages.every(({ isValid }) => isValid);
  }

  /** Has a node commit the transaction, within its time. */
  *submit(parts: Parts, coordinator: NodeId, time: TimeLeft): Routine<Outcome> {
    const executedIn = this.view.current.configurationId;
    return yield* submitOnce(this.#submits, coordinator, { parts, executedIn }, time);
  }

  /** The same again, under the number that it has. */
  *submitAgain(message: Submit): Routine<Outcome> {
    yield* this.#submits.again(message);
    return submittedOutcome(message);
  }

  callAgain(message: Call): Routine<void> {
    return this.#calls.again(message);
  }

  /** Nobody will ask again what became of a request. */
  settled(message: NumberedMessage): void {
    for (const sessions of [this.#submits, this.#calls]) sessions.settled(message);
  }

  /** Has a procedure run at a node, within its time. */
  *call(node: NodeId, called: Called, time: TimeLeft): Routine<Returned> {
    return yield* callOnce(this.#calls, node, called, time);
  }
}
