/**
 * Serving messages: a thread of a node has a table from the kind of a message to the handler that
 * serves it. The phases of the protocols are rows of phases/table.ts; the cluster adds SUBMIT and its
 * relatives (cluster/service.ts), the host CALL (node/host.ts).
 */

import type { Incoming } from "../fabric/fabric.ts";
import { assert } from "../runtime/assert.ts";
import { SituError } from "../runtime/errors.ts";
import type { BackupRecords } from "./backup-records.ts";
import type { CurrentView } from "./cluster-view.ts";
import { requireCoordinator } from "./names.ts";
import type { Participant } from "./participant.ts";

/** What a thread of a node has for the phases that it serves. */
export interface ServingThread {
  readonly view: CurrentView;
  readonly participant: Participant;
  /** Only at the one thread that keeps the node's copies for others. */
  readonly backup: BackupRecords | undefined;
}

export interface Handler<Thread> {
  readonly kind: number;
  /** Of a coordinator's message the body begins with its number: only its own node may send it. */
  readonly sender: "anyone" | "coordinator";
  /** Whether it begins something here: a node that is being closed refuses it. */
  readonly begins: boolean;
  /** Replies, defers, or throws a SituError, which becomes the reply. */
  serve(thread: Thread, incoming: Incoming): void;
}

export class Handlers<Thread> {
  readonly #byKind = new Map<number, Handler<Thread>>();
  /** Why nothing new is begun any more. */
  #refusal: string | undefined;

  constructor(...tables: (readonly Handler<Thread>[])[]) {
    for (const handlers of tables) for (const handler of handlers) this.add(handler);
  }

  add(handler: Handler<Thread>): void {
    assert(!this.#byKind.has(handler.kind), "one handler serves each kind of message");
    this.#byKind.set(handler.kind, handler);
  }

  /** From now on what would begin something fails with SITU_OVERLOADED: others may try it later. */
  refuseBeginnings(why: string): void {
    this.#refusal = why;
  }

  serve(thread: Thread, incoming: Incoming): void {
    const handler = this.#byKind.get(incoming.kind);
    if (handler === undefined) {
      throw new SituError("SITU_PROTOCOL", `there is no message of kind ${incoming.kind}`);
    }
    if (this.#refusal !== undefined && handler.begins) {
      throw new SituError("SITU_OVERLOADED", this.#refusal);
    }
    if (handler.sender === "coordinator") requireCoordinator(incoming);
    handler.serve(thread, incoming);
  }
}
