/**
 * Commit at the primary, once all backups have the transaction in their logs: install what is
 * locked, and unlock.
 *
 *   message  name; the epoch in which it becomes visible, the largest that any participant is bound to, or
 *            one that is later; 1 if it is exactly that
 *   reply    nothing
 *
 * Snapshots of the cluster see it from that epoch on, at all nodes, in whichever later one each of them installs it.
 * Who settles what a dead coordinator has left does not know it. Then the snapshots that are open here are released:
 * they may have been seeing it at other nodes, or not (docs/decisions/0071).
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
  readonly #isExact: boolean;

  constructor(to: NodeId, name: Name, epoch: Epoch, isExact = true) {
    super(to);
    this.#name = name;
    this.#epoch = epoch;
    this.#isExact = isExact;
  }

  encode(out: Writer): void {
    this.#name.encode(out);
    out.wide(this.#epoch);
    out.word(this.#isExact ? 1 : 0);
  }

  protected decode(_reply: Reader): void {}
}

/** At the primary. */
export function serveCommit({ participant }: ServingThread, incoming: Incoming): void {
  const { body } = incoming;
  const { disk, underWay } = participant;
  const name = participant.name.decode(body);
  // It becomes this node's.
  const epoch = epochFrom(body.wide());
  const visibleFrom = body.word() === 1 ? epoch : 0;
  const prepared = underWay.find(name);
  if (prepared === undefined) {
    // A record is there until it is installed: what is not known here was, perhaps in an earlier life.
    if (!underWay.isOver(name)) underWay.end(name, COMMITTED);
    replyWhenKept(disk, incoming);
    return;
  }
  if (installFrom(participant, prepared, epoch, visibleFrom)) {
    finish(participant, name, prepared);
    replyWhenKept(disk, incoming);
  } else {
    later(participant, incoming, prepared, epoch, visibleFrom);
  }
}

/** False if it must be tried again. */
function installFrom(
  participant: Participant,
  prepared: Prepared,
  epoch: Epoch,
  visibleFrom: Epoch,
): boolean {
  const { epochs } = participant.executor;
  epochs.raiseTo(epoch);
  // Nobody may find something visible of an epoch that has not come.
  return epochs.current() >= visibleFrom && participant.install(prepared, visibleFrom);
}

function finish(participant: Participant, name: Name, prepared: Prepared): void {
  maintainTables(prepared.tables);
  participant.finish(name, prepared, COMMITTED);
}

/** Nothing can be taken back any more: tries until it is done. The journal is full: the log must catch up. */
function later(
  participant: Participant,
  incoming: Incoming,
  prepared: Prepared,
  epoch: Epoch,
  visibleFrom: Epoch,
): void {
  const name = Object.assign(new Name(), participant.name);
  const ticket = incoming.defer();
  const again = (): void => {
    if (participant.underWay.find(name) === prepared) {
      if (!installFrom(participant, prepared, epoch, visibleFrom)) {
        participant.clock.after(COMMIT_RETRY_MS, again);
        return;
      }
      finish(participant, name, prepared);
    }
    endWhenKept(participant.disk, ticket);
  };
  participant.clock.after(COMMIT_RETRY_MS, again);
}
