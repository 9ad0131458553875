/**
 * Decide: a coordinator has its own node keep that a transaction is committed, before it tells any primary. It
 * does so where no records prove it later: it is the primary of nothing that is written, or there are no copies.
 *
 *   message  name
 *   reply    nothing
 */

import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { replyWhenKept } from "../disk.ts";
import { DECIDE } from "../kinds.ts";
import { Message } from "../message.ts";
import { Name } from "../names.ts";
import type { ServingThread } from "./table.ts";

export class Decide extends Message {
  readonly kind = DECIDE;
  override readonly isInsistent = true;
  readonly #name: Name;

  constructor(self: NodeId, name: Name) {
    super(self);
    this.#name = name;
  }

  encode(out: Writer): void {
    this.#name.encode(out);
  }

  protected decode(_reply: Reader): void {}
}

/** At the coordinator's own node. */
export function serveDecide({ decisions, disk }: ServingThread, incoming: Incoming): void {
  const { coordinator, sequence } = new Name().decode(incoming.body);
  decisions.keep(coordinator, sequence);
  replyWhenKept(disk, incoming);
}
