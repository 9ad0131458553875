/**
 * Validate: once all locks are held, is what was only read still so, and not locked by another? The
 * moment at which all answer "yes" is the one at which the transaction takes place. It must come
 * after the last lock: validated earlier, T1 could read r and lock y while T2 reads y and
 * changes r, and each would miss the other.
 *
 *   message  the least epoch in which the transaction becomes visible; a name or none: at a node where the
 *            transaction has locked, its engine transaction knows what it has read; elsewhere the message says it
 *   reply    1 if all is as it was, else 0
 *
 * The node's clock passes on to that epoch first. Whoever changes later what was read here becomes visible no
 * earlier than the one who has read it: else a snapshot could see the change, and not what was done before it.
 */

import { type Epoch, epochFrom } from "../../engine/epoch.ts";
import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { LOCK as LOCK_WORD, VERSION_HIGH, VERSION_LOW } from "../../memory/object.ts";
import { loadAcquire } from "../../memory/ordering.ts";
import { SituError } from "../../runtime/errors.ts";
import { VALIDATE } from "../kinds.ts";
import { Message } from "../message.ts";
import { type Name, requireCoordinator } from "../names.ts";
import type { Participant } from "../participant.ts";
import { everyDependency, type Part } from "../writes.ts";
import type { ServingThread } from "./table.ts";

const BY_NAME = 1;

export class Validate extends Message {
  readonly kind = VALIDATE;
  isValid = false;
  /** That of the transaction; known when all locks are held. */
  epoch: Epoch;
  readonly #by: Name | Part;

  constructor(to: NodeId, by: Name | Part, epoch: Epoch = 0) {
    super(to);
    this.#by = by;
    this.epoch = epoch;
  }

  encode(out: Writer): void {
    out.wide(this.epoch);
    if ("sequence" in this.#by) {
      out.word(BY_NAME);
      this.#by.encode(out);
    } else {
      out.word(0);
      this.#by.encodeDependencies(out);
    }
  }

  protected decode(reply: Reader): void {
    this.isValid = reply.word() === 1;
  }
}

/** At the primary. */
export function serveValidate({ participant }: ServingThread, incoming: Incoming): void {
  const { body } = incoming;
  const epoch = epochFrom(body.wide());
  const isByName = body.word() === BY_NAME;
  if (isByName) requireCoordinator(incoming);
  const { epochs } = participant.executor;
  if (epochs.current() < epoch) epochs.raiseTo(epoch);
  if (epochs.current() < epoch) throw new SituError("SITU_OVERLOADED", "the epoch is far behind");
  const isValid = isByName ? isPreparedValid(participant, body) : areCurrent(participant, body);
  incoming.reply().word(isValid ? 1 : 0);
}

function isPreparedValid(participant: Participant, body: Reader): boolean {
  const prepared = participant.underWay.find(participant.name.decode(body));
  // What an earlier life of this node had read may have changed since.
  if (prepared === undefined || prepared.isTakenUp) return false;
  return participant.executor.committer.isPreparedValid(prepared.tx);
}

function areCurrent(participant: Participant, body: Reader): boolean {
  const { memory } = participant.executor;
  // A dependency does not say of which partition it is.
  participant.checkWhole();
  return everyDependency(
    memory,
    body,
    ({ i32 }, word, high, low) =>
      loadAcquire(i32, word + LOCK_WORD) === 0 &&
      i32[word + VERSION_LOW] === low &&
      i32[word + VERSION_HIGH] === high,
  );
}
