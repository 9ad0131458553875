/**
 * The registry of a thread: for each kind of message that it serves, the row of the table (phases.ts) and the handler.
 * Handlers are written in the layer that has what they need, next to the message's encoding, and are bound here by
 * kind. Before a handler is called, the row has decided whether the message may be served at all.
 */

import type { Incoming } from "../../fabric/fabric.ts";
import { assert } from "../../runtime/assert.ts";
import { SituError } from "../../runtime/errors.ts";
import { KIND_NAMES } from "../kinds.ts";
import { requireCoordinator } from "../names.ts";
import { type MessageRow, messageOf } from "./phases.ts";

export interface Handler<Thread> {
  readonly kind: number;
  /** Replies, defers, or throws a SituError, which becomes the reply. */
  serve(thread: Thread, incoming: Incoming): void;
}

interface Bound<Thread> extends Handler<Thread> {
  readonly row: MessageRow;
}

export class Registry<Thread> {
  readonly #byKind: (Bound<Thread> | undefined)[] = new Array(256).fill(undefined);
  /** Why nothing new is begun any more. */
  #refusal: string | undefined;

  constructor(...tables: (readonly Handler<Thread>[])[]) {
    for (const handlers of tables) for (const handler of handlers) this.add(handler);
  }

  add({ kind, serve }: Handler<Thread>): void {
    const row = messageOf(kind);
    assert(row !== undefined, "a message that is served has a row in the table of phases");
    assert(this.#byKind[kind] === undefined, "one handler serves each kind of message");
    this.#byKind[kind] = { kind, serve, row };
  }

  /** From now on what would begin something fails with SITU_OVERLOADED: others may try it later. */
  refuseBeginnings(why: string): void {
    this.#refusal = why;
  }

  serve(thread: Thread, incoming: Incoming): void {
    const handler = this.#byKind[incoming.kind];
    if (handler === undefined) {
      throw new SituError("SITU_PROTOCOL", `there is no message of kind ${incoming.kind}`);
    }
    const { sender, begins } = handler.row;
    if (this.#refusal !== undefined && begins) {
      throw new SituError("SITU_OVERLOADED", this.#refusal);
    }
    if (sender === "coordinator") requireCoordinator(incoming);
    else if (sender === "node" && incoming.from.node < 0) throw onlyNodes(incoming);
    handler.serve(thread, incoming);
  }
}

function onlyNodes({ kind }: Incoming): SituError {
  return new SituError("SITU_PERMISSION", `only nodes send ${KIND_NAMES[kind]}`);
}
