/**
 * Settle: a coordinator that lives asks its own node how a transaction of its own ended, which a new
 * configuration has put in doubt. Its node is the settler, so no other one needs to be asked.
 *
 *   message  head (records.ts)
 *   reply    1 if it is committed, 0 if it is aborted; once all replicas know it and have forgotten it
 */

import type { Incoming, NodeId } from "../../../fabric/fabric.ts";
import type { Reader, Writer } from "../../../fabric/wire.ts";
import { SETTLE } from "../../kinds.ts";
import { Message } from "../../message.ts";
import { Head } from "../../records.ts";
import type { RecoveringThread } from "./table.ts";

export class Settle extends Message {
  readonly kind = SETTLE;
  override readonly isInsistent = true;
  isCommitted = false;
  readonly #head: Head;

  constructor(self: NodeId, head: Head) {
    super(self);
    this.#head = head;
  }

  encode(out: Writer): void {
    this.#head.encode(out);
  }

  protected decode(reply: Reader): void {
    this.isCommitted = reply.word() === 1;
  }
}

/** At the coordinator's node. */
export function serveSettle({ recovery }: RecoveringThread, incoming: Incoming): void {
  const head = Head.decode(incoming.body);
  const ticket = incoming.defer();
  recovery.tell(head, (outcome) =>
    ticket.reply((out) => void out.word(outcome === "commit" ? 1 : 0)),
  );
}
