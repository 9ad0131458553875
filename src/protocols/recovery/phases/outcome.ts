/**
 * What a settler has decided (FaRM §5.3, step 7): every replica of every written partition installs the
 * transaction or drops it, and remembers which. When all have, they may forget, and primaries unlock what
 * was aborted (replica.ts says why not before).
 *
 *   COMMIT-RECOVERY, ABORT-RECOVERY, TRUNCATE-RECOVERY   name
 *   reply                                                nothing, once it is done
 */

import type { Incoming, NodeId } from "../../../fabric/fabric.ts";
import type { Reader, Writer } from "../../../fabric/wire.ts";
import { SituError } from "../../../runtime/errors.ts";
import { replyWhenKept } from "../../disk.ts";
import { ABORT_RECOVERY, TRUNCATE_RECOVERY } from "../../kinds.ts";
import { Name } from "../../names.ts";
import { RecoveryMessage, type Round } from "../round.ts";
import type { RecoveringThread } from "./table.ts";

export class RecoveryOutcome extends RecoveryMessage {
  readonly kind: number;
  readonly #name: Name;

  constructor(kind: number, to: NodeId, round: Round, name: Name) {
    super(to, round);
    this.kind = kind;
    this.#name = name;
  }

  encode(out: Writer): void {
    this.#name.encode(out);
  }

  protected decode(_reply: Reader): void {}
}

/** At a replica. */
export function serveOutcome(thread: RecoveringThread, incoming: Incoming): void {
  const { replica, recovery, disk } = thread;
  const name = new Name().decode(incoming.body);
  if (incoming.kind === ABORT_RECOVERY) replica.abort(name);
  else {
    if (incoming.kind === TRUNCATE_RECOVERY) replica.forget(name);
    else if (!replica.commit(name)) throw notYet();
    recovery.ended(name);
  }
  replyWhenKept(disk, incoming);
}

function notYet(): SituError {
  return new SituError("SITU_OVERLOADED", "a recovered transaction cannot be installed just now");
}
