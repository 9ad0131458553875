/** Clusters with a bug in them, which the checks of a simulation must find. */

import { NodeService, type ServiceOptions } from "../../src/cluster/service.ts";
import type { Incoming, NodeId } from "../../src/fabric/fabric.ts";
import { Reader, Writer } from "../../src/fabric/wire.ts";
import { Views } from "../../src/memory/views.ts";
import {
  Coordinator,
  type Held,
  type Outcome,
  type Parts,
} from "../../src/protocols/coordinator.ts";
import { LOG, VALIDATE } from "../../src/protocols/kinds.ts";
import type { Routine } from "../../src/protocols/message.ts";
import { coordinatorNumber } from "../../src/protocols/names.ts";
import type { Origin } from "../../src/protocols/origin.ts";
import { Validate } from "../../src/protocols/phases/validate.ts";
import { SituError } from "../../src/runtime/errors.ts";

/** Whatever was read is said to be as it was. */
class NeverValidates extends NodeService {
  override serve(incoming: Incoming): void {
    if (incoming.kind === VALIDATE) incoming.reply().word(1);
    else super.serve(incoming);
  }
}

/** One node acknowledges records and does not keep them. */
class ForgetfulBackup extends NodeService {
  override serve(incoming: Incoming): void {
    if (incoming.kind === LOG && this.self === 0) incoming.reply();
    else super.serve(incoming);
  }
}

/**
 * Records are acknowledged, so that primaries commit, before the backup has them: another
 * transaction's record of the same row can then arrive first.
 */
class LateBackup extends NodeService {
  #late = 0;

  override serve(incoming: Incoming): void {
    if (incoming.kind !== LOG) {
      super.serve(incoming);
      return;
    }
    const { body, from } = incoming;
    const words = body.views.i32.slice(body.at, body.end);
    incoming.reply();
    const { clock } = this.driver.endpoint;
    clock.after((this.#late++ % 4) / 3, () => {
      const views = new Views(words.buffer as ArrayBuffer);
      const late: Incoming = {
        from,
        kind: LOG,
        body: new Reader(views).reset(views, 0, words.length),
        reply: () => new Writer(),
        defer: () => {
          throw new Error("records are acknowledged at once");
        },
      };
      try {
        super.serve(late);
      } catch (error) {
        // It was to be applied before it came: the copy goes without it.
        if (!(error instanceof SituError)) throw error;
      }
    });
  }
}

/** Validates what is only read before the locks are asked for. */
class HastyCoordinator extends Coordinator {
  override *commit(parts: Parts, held?: Held, origin?: Origin): Routine<Outcome> {
    const early = new Map<NodeId, Validate>();
    for (const [node, part] of parts) {
      if (part.writeCount === 0 && part.dependencyCount > 0) {
        early.set(node, new Validate(node, part));
      }
    }
    if (early.size > 0) yield [...early.values()];
    const routine = super.commit(parts, held, origin);
    for (let step = routine.next(); ; step = routine.next()) {
      if (step.done === true) return step.value;
      const [first] = step.value;
      if (!(first instanceof Validate)) {
        yield step.value;
        continue;
      }
      for (const each of step.value as readonly Validate[]) {
        each.isValid = early.get(each.to)?.isValid ?? true;
      }
    }
  }
}

class HastyNode extends NodeService {
  override readonly coordinator: Coordinator;

  constructor(options: ServiceOptions) {
    super(options);
    const { view, thread, life, newLife, kept } = options;
    const { decisions } = kept;
    const { driver } = this;
    const number = coordinatorNumber(this.self, thread);
    this.coordinator = new HastyCoordinator({ driver, view, number, life, newLife, decisions });
  }
}

/** Does not remember that a transaction is over: a late LOCK begins it anew. */
class NothingIsOver extends NodeService {
  constructor(options: ServiceOptions) {
    super(options);
    this.participant.underWay.isOver = () => false;
  }
}

/** Does what a client asks for as often as it asks. */
class NotOnce extends NodeService {
  constructor(options: ServiceOptions) {
    super(options);
    let asked = 0;
    const { outcomes } = this;
    const attempt = outcomes.attempt.bind(outcomes);
    outcomes.attempt = (session, _number, _low, nowMs) => attempt(session, asked++, 0, nowMs);
  }
}

/** Snapshots of the cluster see a transaction where it is installed, in whichever epoch that is. */
class ShowsInstalled extends NodeService {
  constructor(options: ServiceOptions) {
    super(options);
    const { committer } = this.participant.executor;
    const commit = committer.commitPrepared.bind(committer);
    committer.commitPrepared = (tx) => {
      tx.visibleFrom = 0;
      return commit(tx);
    };
  }
}

export const PLANTED: Readonly<Record<string, new (options: ServiceOptions) => NodeService>> = {
  "skip validation": NeverValidates,
  "forget a backup": ForgetfulBackup,
  "commit at the primary before the backups have logged": LateBackup,
  "validate before all locks are held": HastyNode,
  "forget what is over": NothingIsOver,
  "apply a transaction as often as it is submitted": NotOnce,
  "show transactions in the epoch of their installation": ShowsInstalled,
};
