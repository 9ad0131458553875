/**
 * What a node holds of snapshots of the cluster (docs/decisions/0071), at the thread that prepares transactions.
 * A client takes one in two steps, which go to all nodes at once:
 *
 *   begin   The node registers an epoch that has not come yet. All nodes must register the same one: those that
 *           have another are asked again, for the largest. Epochs are rounded up, so that most agree at once.
 *   cut     The node's clock passes the epoch S. What is prepared from now on is bound to a later epoch. Answered
 *           when nothing that was prepared up to S, and no commit that began up to S, is left.
 *
 * From then on the snapshot can be read. It is released when its client says so, when it is older than its client
 * wanted, when nothing was heard of it for SNAPSHOT_LEASE_MS, with every new configuration, and when a transaction
 * is installed of which nobody remembers from which epoch on others see it.
 */

import type { Epoch } from "../engine/epoch.ts";
import type { Executor } from "../engine/executor.ts";
import { committingSlot, Snapshot } from "../engine/snapshots/snapshot.ts";
import type { Clock, Incoming, NodeId, Sender, Ticket } from "../fabric/fabric.ts";
import { SituError } from "../runtime/errors.ts";
import {
  MAX_CLIENT_SNAPSHOTS,
  MAX_SERVED_SNAPSHOTS,
  SNAPSHOT_EPOCHS_AHEAD,
  SNAPSHOT_LEASE_MS,
  SNAPSHOT_LOOK_MS,
  SNAPSHOT_SETTLE_MS,
} from "../runtime/limits.ts";

/** One that a client has begun here. */
interface Served {
  readonly name: string;
  readonly client: number;
  snapshot: Snapshot;
  isSettled: boolean;
  /** When something was heard of it. */
  heardMs: number;
}

interface Waiting {
  readonly served: Served;
  readonly ticket: Ticket;
  readonly untilMs: number;
}

/** What is prepared at the node: for each transaction, the epoch that it is bound to. */
export interface Bounds {
  hasBoundUpTo(epoch: Epoch): boolean;
}

export class ServedSnapshots {
  readonly #executor: Executor;
  readonly #clock: Clock;
  readonly #bounds: Bounds;
  readonly #served = new Map<string, Served>();
  #waiting: Waiting[] = [];
  #isTimed = false;

  constructor(executor: Executor, clock: Clock, bounds: Bounds) {
    this.#executor = executor;
    this.#clock = clock;
    this.#bounds = bounds;
  }

  get open(): number {
    return this.#served.size;
  }

  /** Registers a snapshot; at `atLeast`, unless that epoch has ended here. Says at which epoch it is registered. */
  begin(name: string, from: Sender, atLeast: Epoch, lifeMs: number): Epoch {
    const before = this.#served.get(name);
    if (before !== undefined && before.snapshot.epoch >= atLeast) return before.snapshot.epoch;
    if (before === undefined) this.#refuseTooMany(from);
    else this.#drop(before);
    const snapshot = this.#register(atLeast, lifeMs);
    const client = from.node < 0 ? from.connection : -1;
    const heardMs = this.#clock.nowMs();
    this.#served.set(name, { name, client, snapshot, isSettled: false, heardMs });
    this.#lookLater();
    return snapshot.epoch;
  }

  #register(atLeast: Epoch, lifeMs: number): Snapshot {
    for (;;) {
      const current = this.#executor.epochs.current();
      const rounded = SNAPSHOT_EPOCHS_AHEAD * Math.ceil(current / SNAPSHOT_EPOCHS_AHEAD + 0.5);
      const epoch = atLeast >= current ? atLeast : rounded;
      const snapshot = Snapshot.ahead(this.#executor, epoch, lifeMs);
      if (snapshot !== undefined) return snapshot;
    }
  }

  /** Passes the epoch of a snapshot, and replies whether all that it sees is settled: once it is, or soon. */
  cut(name: string, epoch: Epoch, incoming: Incoming, self: NodeId): void {
    const served = this.#find(name, self);
    if (served.snapshot.epoch !== epoch) throw unknown(self);
    if (this.#isSettled(served)) {
      incoming.reply().word(1);
      return;
    }
    const untilMs = this.#clock.nowMs() + SNAPSHOT_SETTLE_MS;
    this.#waiting.push({ served, ticket: incoming.defer(), untilMs });
    this.#lookLater();
  }

  #isSettled(served: Served): boolean {
    if (served.isSettled) return true;
    const { epochs } = this.#executor;
    const { epoch } = served.snapshot;
    if (epochs.current() <= epoch) epochs.raiseTo(epoch + 1);
    served.isSettled =
      epochs.current() > epoch &&
      !this.#bounds.hasBoundUpTo(epoch) &&
      committingSlot(this.#executor, epoch, 0) < 0;
    return served.isSettled;
  }

  /** A snapshot to read from. */
  find(name: string, self: NodeId): Snapshot {
    const served = this.#find(name, self);
    if (!served.isSettled) throw unknown(self);
    return served.snapshot;
  }

  #find(name: string, self: NodeId): Served {
    const served = this.#served.get(name);
    if (served === undefined) throw unknown(self);
    const { snapshot } = served;
    if (snapshot.isExpired || !snapshot.isRegistered) {
      this.#drop(served);
      throw snapshot.tooOld();
    }
    served.heardMs = this.#clock.nowMs();
    return served;
  }

  end(name: string): void {
    const served = this.#served.get(name);
    if (served !== undefined) this.#drop(served);
  }

  /** What they see is not known any more, or this end closes. */
  releaseAll(): void {
    for (const served of this.#served.values()) this.#drop(served);
    this.#look();
  }

  /** A prepared transaction has ended. */
  settled(): void {
    if (this.#waiting.length > 0) this.#look();
  }

  #drop(served: Served): void {
    this.#served.delete(served.name);
    served.snapshot.release();
  }

  #look(): void {
    const nowMs = this.#clock.nowMs();
    this.#waiting = this.#waiting.filter(({ served, ticket, untilMs }) => {
      // Who asks again is told that it is gone.
      const isGone = this.#served.get(served.name) !== served;
      const isSettled = !isGone && this.#isSettled(served);
      if (!isGone && !isSettled && nowMs < untilMs) return true;
      ticket.reply((out) => out.word(isSettled ? 1 : 0));
      return false;
    });
  }

  #lookLater(): void {
    if (this.#isTimed) return;
    this.#isTimed = true;
    const isHurried = this.#waiting.length > 0;
    this.#clock.after(isHurried ? 1 : SNAPSHOT_LOOK_MS, () => this.#timed());
  }

  #timed(): void {
    this.#isTimed = false;
    const nowMs = this.#clock.nowMs();
    for (const served of this.#served.values()) {
      const { snapshot, heardMs } = served;
      if (nowMs - heardMs >= SNAPSHOT_LEASE_MS || snapshot.isExpired || !snapshot.isRegistered) {
        this.#drop(served);
      }
    }
    this.#look();
    // Old versions that nobody needs any more, which only a full ring would ask for otherwise.
    this.#executor.versions.keeper.tick();
    if (this.#served.size > 0 || this.#waiting.length > 0) this.#lookLater();
  }

  #refuseTooMany({ node, connection }: Sender): void {
    if (this.#served.size >= MAX_SERVED_SNAPSHOTS) throw tooMany("a node", MAX_SERVED_SNAPSHOTS);
    if (node >= 0) return;
    let own = 0;
    for (const { client } of this.#served.values()) if (client === connection) own++;
    if (own >= MAX_CLIENT_SNAPSHOTS) throw tooMany("one client", MAX_CLIENT_SNAPSHOTS);
  }
}

function unknown(self: NodeId): SituError {
  return new SituError(
    "SITU_SNAPSHOT_TOO_OLD",
    `node ${self} does not have the snapshot any more: it became too old, its client was not heard of for ` +
      `${SNAPSHOT_LEASE_MS} ms, or the nodes of the cluster have changed. Take a new one`,
  );
}

function tooMany(who: string, most: number): SituError {
  return new SituError(
    "SITU_FULL",
    `${who} has ${most} open snapshots, which is the most: close some`,
  );
}
