/**
 * A transaction of a coordinator that lives while the configuration changes (FaRM SOSP'15 §5.3, step 3). With
 * each new configuration it is one of these:
 *
 *   recovering   a replica of what it writes was lost, or is another one now. It is *stopped*: all its messages end,
 *                none is sent any more, and recovery decides how it ends (recovery/phases/settle.ts).
 *   not          goes on. What others refuse while they have another configuration is sent again.
 *   read only    nothing is recorded of what it has read, or locked to read it. If a node where it did so is not
 *                the primary of all that it was, the coordinator aborts it, up to the moment when all is validated.
 *
 * Messages to nodes that have left end at once: whatever they would say, nobody counts on it.
 */

import type { NodeId } from "../fabric/fabric.ts";
import { SituError } from "../runtime/errors.ts";
import type { ClusterView, CurrentView } from "./cluster-view.ts";
import type { Exchange, Message, Scope } from "./message.ts";
import type { Name } from "./names.ts";
import type { Head } from "./records.ts";
import { isRecovering } from "./recovery/recovering.ts";

/** What is sent for no transaction in particular: to members, whichever configuration they have just now. */
export class MemberScope implements Scope {
  readonly view: CurrentView;

  constructor(view: CurrentView) {
    this.view = view;
  }

  reasonOf({ to }: Exchange, why: SituError): SituError {
    if (!this.view.current.nodes.includes(to)) return hasLeft(to);
    if (why.code !== "SITU_STALE_CONFIGURATION") return why;
    // One of the two ends adopts the other's configuration soon.
    return new SituError("SITU_LOST", why.message, { cause: why });
  }
}

export class OpenTransaction extends MemberScope {
  readonly name: Name;
  /** The view in which it began. */
  readonly began: ClusterView;
  /** From the beginning of the commit on. */
  head: Head | undefined;
  isStopped = false;
  /** Committed everywhere; only backups have to be told. */
  isTruncating = false;
  #sent: readonly Message[] = [];

  constructor(name: Name, view: CurrentView) {
    super(view);
    this.name = name;
    this.began = view.current;
  }

  /** What it waits for next. */
  sends<T extends Message>(messages: readonly T[]): readonly T[] {
    for (const message of messages) message.scope = this;
    this.#sent = messages;
    return messages;
  }

  override reasonOf(message: Exchange, why: SituError): SituError {
    return this.isStopped ? stopped() : super.reasonOf(message, why);
  }

  /** There is a new view. Whether it stops this one. */
  stop(): boolean {
    if (this.isStopped || this.head === undefined) return false;
    this.isStopped = isRecovering(this.head, this.view.current);
    return this.isStopped;
  }

  /** Ends what must not be waited for any more. */
  endMessages(): void {
    const { nodes } = this.view.current;
    for (const message of this.#sent) {
      if (this.isStopped || !nodes.includes(message.to)) message.failed(stopped());
    }
  }

  /** Recovery has ended it: only locks that nobody has a record of are left. */
  settled(): void {
    this.isStopped = false;
    this.head = undefined;
    this.#sent = [];
  }
}

/** Nodes that are not the primaries of all that they were in an earlier view. */
export function nodesThatLost(before: ClusterView, now: ClusterView): ReadonlySet<NodeId> {
  const { configurationId, placement } = before;
  const lost = new Set<NodeId>();
  for (const node of before.nodes) {
    const since = now.memberSince(node);
    if (since === undefined || since > configurationId) lost.add(node);
  }
  for (let partition = 0; partition < placement.partitions; partition++) {
    if (now.placement.primarySince(partition) > configurationId) {
      lost.add(placement.primaryOf(partition));
    }
  }
  return lost;
}

function stopped(): SituError {
  return new SituError(
    "SITU_STALE_CONFIGURATION",
    "the configuration has changed: recovery settles the transaction",
  );
}

function hasLeft(node: NodeId): SituError {
  return new SituError("SITU_STALE_CONFIGURATION", `node ${node} has left the cluster`);
}
