/**
 * Commit at the primary, once all backups have the transaction in their logs: install what is
 * locked, and unlock.
 *
 *   message  name, the largest epoch of all participants
 *   reply    nothing
 */

import { type Epoch, epochFrom } from "../../engine/epoch.ts";
import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { COMMIT_RETRY_MS } from "../../runtime/limits.ts";
import { endWhenKept, replyWhenKept } from "../disk.ts";
import { COMMIT } from "../kinds.ts";
import { Message } from "../message.ts";
import { COMMITTED, Name } from "../names.ts";
import { maintainTables, type Participant, type Prepared } from "../participant.ts";
import type { ServingThread } from "./table.ts";

export class Commit extends Message {
  readonly kind = COMMIT;
  override readonly isInsistent = true;
  readonly #name: Name;
  readonly #epoch: Epoch;

  constructor(to: NodeId, name: Name, epoch: Epoch) {
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
export function serveCommit({ participant }: ServingThread, incoming: Incoming): void {
  const { body } = incoming;
  const { executor, disk, underWay } = participant;
  const name = participant.name.decode(body);
  // It becomes this node's.
  const epoch = epochFrom(body.wide());
  const prepared = underWay.find(name);
  if (prepared === undefined) {
    // A record is there until it is installed: what is not known here was, perhaps in an earlier life.
    if (!underWay.isOver(name)) underWay.end(name, COMMITTED);
    replyWhenKept(disk, incoming);
    return;
  }
  executor.epochs.raiseTo(epoch);
  if (participant.install(prepared)) {
    finish(participant, name, prepared);
    replyWhenKept(disk, incoming);
  } else {
    later(participant, incoming, prepared);
  }
}

function finish(participant: Participant, name: Name, prepared: Prepared): void {
  maintainTables(prepared.tables);
  participant.finish(name, prepared, COMMITTED);
}

/** Nothing can be taken back any more: tries until it is done. The journal is full: the log must catch up. */
function later(participant: Participant, incoming: Incoming, prepared: Prepared): void {
  const name = Object.assign(new Name(), participant.name);
  const ticket = incoming.defer();
  const again = (): void => {
    if (participant.underWay.find(name) === prepared) {
      if (!participant.install(prepared)) {
        participant.clock.after(COMMIT_RETRY_MS, again);
        return;
      }
      finish(participant, name, prepared);
    }
    endWhenKept(participant.disk, ticket);
  };
  participant.clock.after(COMMIT_RETRY_MS, again);
}
