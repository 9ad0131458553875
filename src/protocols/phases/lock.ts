/**
 * Lock: the first message to each primary of what a transaction writes (FaRM §3.4, prepare). It
 * carries what the transaction has read there, and what it writes; participant.ts does it.
 *
 *   message  name, round, dependencies, writes (writes.ts)
 *   reply    OK, LOCKED or OVER; with OK: whether anything there was read and is not locked, and the
 *            epoch of the node
 */

import type { NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { LOCK } from "../kinds.ts";
import { Message } from "../message.ts";
import type { Name } from "../names.ts";
import type { Part } from "../writes.ts";
import { OK } from "./read.ts";

export class Lock extends Message {
  readonly kind = LOCK;
  outcome = OK;
  /** Something was read there that must be validated once all locks are held. */
  hasReads = false;
  epoch = 0;
  readonly #name: Name;
  readonly #part: Part;
  readonly #round: number;

  constructor(to: NodeId, name: Name, part: Part, round: number) {
    super(to);
    this.#name = name;
    this.#part = part;
    this.#round = round;
  }

  encode(out: Writer): void {
    this.#name.encode(out);
    out.word(this.#round);
    this.#part.encode(out);
  }

  protected decode(reply: Reader): void {
    this.outcome = reply.word();
    if (this.outcome !== OK) return;
    this.hasReads = reply.word() !== 0;
    this.epoch = reply.wide();
  }
}
