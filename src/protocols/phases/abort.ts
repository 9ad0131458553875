/**
 * Abort: lets go of what was locked. It goes to every node that may have locked, or may yet, should
 * the message that asks for it be late: there it finds that the transaction is over.
 *
 *   message  name; the latest epoch that its coordinator has seen
 *   reply    nothing
 *
 * A transaction whose nodes have clocks that are far apart is aborted (coordinator.ts). What it had begun here is what
 * kept this clock back, so this is the moment to bring it forward.
 */

import { type Epoch, epochFrom } from "../../engine/epoch.ts";
import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { LOST_EPOCHS } from "../../runtime/limits.ts";
import { replyWhenKept } from "../disk.ts";
import { ABORT } from "../kinds.ts";
import { Message } from "../message.ts";
import { ABORTED, type Name } from "../names.ts";
import type { ServingThread } from "./table.ts";

export class Abort extends Message {
  readonly kind = ABORT;
  override readonly isInsistent = true;
  readonly #name: Name;
  readonly #epoch: Epoch;

  constructor(to: NodeId, name: Name, epoch: Epoch = 0) {
    super(to);
    this.#name = name;
    this.#epoch = epoch;
  }

  encode(out: Writer): void {
    this.#name.encode(out);
    out.wide(this.#epoch);
  }

  protected decode(_reply: Reader): void {}
}

/** At the primary. */
export function serveAbort({ participant }: ServingThread, incoming: Incoming): void {
  const name = participant.name.decode(incoming.body);
  const epoch = epochFrom(incoming.body.wide());
  const { underWay } = participant;
  const prepared = underWay.find(name);
  if (prepared !== undefined) {
    participant.drop(name, prepared);
    // Nothing honest is further ahead; a step at a time would take for ever.
    const { epochs } = participant.executor;
    epochs.raiseTo(Math.min(epoch, epochs.current() + 2 * LOST_EPOCHS));
  } else if (!underWay.isOver(name)) underWay.end(name, ABORTED);
  // Its coordinator forgets it then: no record may come back.
  replyWhenKept(participant.disk, incoming);
}
