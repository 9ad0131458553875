/**
 * Abort: lets go of what was locked. It goes to every node that may have locked, or may yet, should
 * the message that asks for it be late: there it finds that the transaction is over.
 *
 *   message  name
 *   reply    nothing
 */

import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { replyWhenKept } from "../disk.ts";
import { ABORT } from "../kinds.ts";
import { Message } from "../message.ts";
import { ABORTED, type Name } from "../names.ts";
import type { ServingThread } from "./table.ts";

export class Abort extends Message {
  readonly kind = ABORT;
  override readonly isInsistent = true;
  readonly #name: Name;

  constructor(to: NodeId, name: Name) {
    super(to);
    this.#name = name;
  }

  encode(out: Writer): void {
    this.#name.encode(out);
  }

  protected decode(_reply: Reader): void {}
}

/** At the primary. */
export function serveAbort({ participant }: ServingThread, incoming: Incoming): void {
  const name = participant.name.decode(incoming.body);
  const { underWay } = participant;
  const prepared = underWay.find(name);
  if (prepared !== undefined) participant.drop(name, prepared);
  else if (!underWay.isOver(name)) underWay.end(name, ABORTED);
  // Its coordinator forgets it then: no record may come back.
  replyWhenKept(participant.disk, incoming);
}
