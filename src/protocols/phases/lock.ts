/**
 * Lock: the first message to each primary of what a transaction writes (FaRM §3.4, prepare). It
 * carries what the transaction has read there, and what it writes. The node depends on the one and does
 * the other in an engine transaction of its own, locks and validates that, and keeps a record of the writes.
 * Rows that were locked as they were read (rpc) are written with a later round.
 *
 *   message  head (records.ts), writes (writes.ts), round, dependencies
 *   reply    OK, LOCKED or OVER; with OK: whether anything there was read and is not locked, and the
 *            epoch that the transaction is bound to there: it becomes visible in that one, or later
 */

import type { Epoch } from "../../engine/epoch.ts";
import type { Executor } from "../../engine/executor.ts";
import { dependOn } from "../../engine/prepared.ts";
import { isSignal } from "../../engine/signals.ts";
import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { SituError } from "../../runtime/errors.ts";
import { replyWhenKept } from "../disk.ts";
import { LOCK } from "../kinds.ts";
import { Message, OK } from "../message.ts";
import { AT_PRIMARY, type Head, recordOf, skipHead } from "../records.ts";
import { encodeWrites, everyDependency, type Part, skipWrites } from "../writes.ts";
import type { ServingThread } from "./table.ts";

export class Lock extends Message {
  readonly kind = LOCK;
  outcome = OK;
  /** Something was read there that must be validated once all locks are held. */
  hasReads = false;
  epoch: Epoch = 0;
  readonly #head: Head;
  readonly #part: Part;
  readonly #round: number;

  constructor(to: NodeId, head: Head, part: Part, round: number) {
    super(to);
    this.#head = head;
    this.#part = part;
    this.#round = round;
  }

  encode(out: Writer): void {
    this.#head.encode(out);
    encodeWrites(out, this.#part.writes, this.#part.writeCount);
    out.word(this.#round);
    this.#part.encodeDependencies(out);
  }

  protected decode(reply: Reader): void {
    this.outcome = reply.word();
    if (this.outcome !== OK) return;
    this.hasReads = reply.word() !== 0;
    this.epoch = reply.wide();
  }
}

/** At the primary. */
export function serveLock({ participant, backup }: ServingThread, incoming: Incoming): void {
  const { body } = incoming;
  const start = body.at;
  const name = skipHead(body, participant.name);
  backup?.refuseIfBehind(name.coordinator);
  const writesAt = body.at;
  skipWrites(body);
  const writesEnd = body.at;
  const round = body.word();
  const prepared = participant.begin(incoming, name, round);
  if (prepared === undefined) return;
  const { executor } = participant;
  const { tx } = prepared;
  try {
    const isSeen = everyDependency(executor.memory, body, ({ id }, word, high, low) =>
      dependOn(tx, id, word, high, low),
    );
    if (!isSeen) {
      participant.conflict(incoming, name, prepared);
      return;
    }
    body.at = writesAt;
    participant.write(prepared, body);
    if (!participant.prepare(prepared)) {
      participant.conflict(incoming, name, prepared);
      return;
    }
    if (body.views.i32[writesAt] > 0) {
      participant.keep(prepared, recordOf(AT_PRIMARY, body, start, writesEnd));
    }
  } catch (error) {
    if (isSignal(error)) {
      const wanted = tx.exhausted ? tx.exhaustedClass : -1;
      participant.conflict(incoming, name, prepared);
      if (wanted >= 0) makeRoom(executor, wanted, participant.view.current.self);
      return;
    }
    participant.drop(name, prepared);
    throw error;
  }
  replyWhenKept(participant.disk, incoming, participant.locked(prepared, round));
}

/**
 * Memory of the class has run out: what was freed and nobody sees any more can be used again. Who tries again
 * later may also find what others still see now.
 */
function makeRoom(executor: Executor, sizeClass: number, self: NodeId): void {
  if (executor.tryReclaim(sizeClass) !== "none") return;
  throw new SituError("SITU_FULL", `the store of node ${self} is full`);
}
