/**
 * Settles what a configuration has left in doubt (FaRM SOSP'15 §5.3). `recover` is called when all
 * members have adopted the configuration and the leases of those that left have run out: from then on
 * the fabric refuses whatever belongs to an earlier one, so nothing moves any more but by recovery.
 *
 * As a primary, for all of its partitions at once:
 *
 *   1. blocks the partitions that it was not the primary of before;
 *   2. asks all replicas what is in doubt there, and what they saw of what others speak of;
 *   3. fetches the writes that it lacks, and locks the rows: its partitions are served again. Where rows
 *      cannot be locked one by one, the partition stays blocked until its last doubt is settled;
 *   4. gives every replica what any of them has seen;
 *   5. votes, at the settler of each transaction.
 *
 * As the settler of a transaction: asks the primaries that have not voted, decides, tells the outcome
 * to all replicas, and when all know it, that they may forget it.
 *
 * The next configuration ends all of this, wherever it is, and begins anew with what replicas have
 * seen by then. Why that comes to the same outcome: votes.ts.
 */

import type { ConfigurationId, NodeId } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import { APPLY_RETRY_MS } from "../../runtime/limits.ts";
import type { Driver } from "../driver.ts";
import { ABORT_RECOVERY, COMMIT_RECOVERY, TRUNCATE_RECOVERY } from "../kinds.ts";
import type { Routine } from "../message.ts";
import type { Name } from "../names.ts";
import type { Head } from "../records.ts";
import { NeedRecovery } from "./phases/need-recovery.ts";
import { RecoveryOutcome } from "./phases/outcome.ts";
import { FetchTxState, ReplicateTxState } from "./phases/tx-state.ts";
import { RecoveryVote, RequestVote, type Votes } from "./phases/vote.ts";
import { isRecovering, nodeOf, settlerOf } from "./recovering.ts";
import type { Replica } from "./replica.ts";
import { keyOf, type RecoveryMessage, type RecoveryView, Round } from "./round.ts";
import {
  decide,
  SAW_ABORT,
  SAW_END,
  SAW_LOCK,
  SAW_LOG,
  SAW_NOTHING,
  type Seen,
  voteOf,
} from "./votes.ts";

export type Decision = "commit" | "abort";

/** Told the outcome of each transaction that this node settles, perhaps more than once. */
export type Settled = (head: Head, outcome: Decision) => void;

/** A coordinator of this node that waits for an outcome. */
interface Asked {
  readonly head: Head;
  readonly tell: (outcome: Decision) => void;
}

export class Recovery {
  readonly #driver: Driver;
  readonly #replica: Replica;
  readonly #settled: Settled;
  readonly #becameWhole: (configurationId: ConfigurationId, isWhole: boolean) => void;
  #round: Round | undefined;
  /** Nodes that have left, or were started anew, since the last round. */
  readonly #gone = new Set<NodeId>();
  readonly #asked = new Map<string, Asked>();
  /** What was settled for coordinators of this node and all have forgotten, until they know it. */
  readonly #outcomes = new Map<string, { readonly name: Name; readonly outcome: Decision }>();

  /** `becameWhole` is told whether all partitions of this primary can be served, when that changes. */
  constructor(
    driver: Driver,
    replica: Replica,
    settled: Settled,
    becameWhole: (configurationId: ConfigurationId, isWhole: boolean) => void = () => {},
  ) {
    this.#driver = driver;
    this.#replica = replica;
    this.#settled = settled;
    this.#becameWhole = becameWhole;
  }

  /** The round of the configuration in force. Others may begin it a moment earlier: they ask again. */
  get current(): Round {
    if (this.#isCurrent) return this.#round!;
    throw new SituError(
      "SITU_OVERLOADED",
      `node ${this.#driver.endpoint.self} does not recover yet`,
    );
  }

  /** This node has a new configuration: it serves nothing of what it has become the primary of. */
  adopt(view: RecoveryView, previous: RecoveryView): void {
    const { placement, self } = view;
    const blocked: number[] = [];
    // One that is back has the locks that its store has kept, which may be fewer than it had.
    const isBack = (view.memberSince(self) ?? 0) > previous.configurationId;
    for (let partition = 0; partition < placement.partitions; partition++) {
      if (placement.primaryOf(partition) !== self) continue;
      const isNew = isBack || placement.primarySince(partition) > previous.configurationId;
      if (isNew || this.isBlocked(partition)) blocked.push(partition);
    }
    this.#round?.end();
    this.#round = new Round(view, blocked);
    this.#becameWhole(view.configurationId, blocked.length === 0);
    for (const node of previous.nodes) {
      const since = view.memberSince(node);
      if (since === undefined || since > previous.configurationId) this.#gone.add(node);
    }
  }

  /** All members have this configuration. `previous` is the one that this node had before. */
  recover(view: RecoveryView, previous: RecoveryView): void {
    if (this.#round?.view.configurationId !== view.configurationId) this.adopt(view, previous);
    const round = this.#round!;
    if (round.hasBegun) return;
    round.hasBegun = true;
    for (const { head } of this.#asked.values()) this.settle(head);
    this.#driver.detach(this.#ask(round));
  }

  /** Tells a coordinator of this node how a transaction of its own has ended, once all replicas know. */
  tell(head: Head, tell: (outcome: Decision) => void): void {
    for (const [key, { name }] of this.#outcomes) {
      const isHeard = name.coordinator === head.name.coordinator && name.sequence < head.name.low;
      if (isHeard) this.#outcomes.delete(key);
    }
    const key = keyOf(head.name);
    const known = this.#outcomes.get(key);
    if (known !== undefined) {
      tell(known.outcome);
      return;
    }
    // It may ask twice; the last one waits.
    this.#asked.set(key, { head, tell });
    if (this.#isCurrent) this.settle(head);
  }

  get #isCurrent(): boolean {
    const round = this.#round;
    const { configurationId } = this.#driver.endpoint;
    return round?.hasBegun === true && round.view.configurationId === configurationId;
  }

  /** Whether some partition of this primary cannot be served yet. */
  get hasBlocked(): boolean {
    return (this.#round?.blocked.size ?? 0) > 0;
  }

  /** Whether all replicas of this primary's partitions have what any of them has seen, in the present configuration. */
  get hasReplicated(): boolean {
    return this.#isCurrent && this.#round!.hasReplicated;
  }

  /** Whether a partition of this primary cannot be served yet. */
  isBlocked(partition: number): boolean {
    return this.#round?.blocked.has(partition) ?? false;
  }

  /** Settles a transaction, if that is not under way: some votes are known. */
  settle(head: Head, votes: Votes = new Map()): void {
    const round = this.current;
    this.check(head);
    const key = keyOf(head.name);
    if (round.settled.has(key)) return;
    round.settled.add(key);
    this.#driver.detach(this.#settle(round, head, votes));
  }

  /** Fails if a head that came in a message names what is not there. */
  check({ partitions }: Head): void {
    const { placement } = this.current.view;
    if (partitions.every((partition) => partition < placement.partitions)) return;
    throw new SituError("SITU_PROTOCOL", "a record names a partition that is not there");
  }

  /** What a partition of this primary votes. Fails with SITU_OVERLOADED until it can. */
  vote(name: Name, partition: number): Seen {
    const { view, hasHeardAll, doubts } = this.current;
    if (view.placement.primaryOf(partition) !== view.self) {
      throw new SituError("SITU_PROTOCOL", `node ${view.self} has no vote for ${partition}`);
    }
    const doubt = doubts.get(keyOf(name));
    if (!hasHeardAll || doubt?.isReplicated === false) {
      throw new SituError("SITU_OVERLOADED", `partition ${partition} cannot vote yet`);
    }
    // What no replica is in doubt about has ended at all of them, or come to none.
    return doubt?.partitions.get(partition)?.seen ?? this.#replica.seen(name, partition);
  }

  /** Which transactions are in doubt, and what all replicas have seen of them. */
  *#ask(round: Round): Routine<void> {
    const { view } = round;
    let asks = partitionsByBackup(view).map(
      ([node, partitions]) => new NeedRecovery(node, round, partitions),
    );
    while (asks.length > 0) {
      if (!(yield* answered(round, asks))) return;
      for (const { to, reports } of asks) {
        for (const { head, partition, seen } of reports) {
          round.doubtOf(head, partition)?.note(to, seen);
        }
      }
      asks = asks.filter(({ left }) => left > 0).map(({ next }) => next);
    }
    const replica = this.#replica;
    for (const head of replica.inDoubt()) {
      if (!isRecovering(head, view)) continue;
      for (const partition of head.partitions) round.doubtOf(head, partition);
    }
    for (const [{ head }, partition, doubt] of round.partitionDoubts()) {
      const seen = replica.seen(head.name, partition);
      doubt.note(view.self, seen);
      doubt.writes = replica.writes(head.name, partition);
      doubt.isOver = doubt.writes === undefined && (seen === SAW_END || seen >= SAW_ABORT);
    }
    const fetches = fetchesOf(round);
    if (!(yield* answered(round, fetches))) return;
    for (const { head, partition, to, seen, writes } of fetches) {
      const doubt = round.doubtOf(head, partition)!;
      doubt.note(to, seen);
      doubt.writes ??= writes;
    }
    for (const [{ head }, partition, { seen, writes }] of round.partitionDoubts()) {
      replica.takeOver(head, partition, seen, writes);
    }
    // Not before: what is only locked to be read here may be written by what a backup has logged.
    for (const node of this.#gone) replica.release(node, (name) => round.doubts.has(keyOf(name)));
    this.#gone.clear();
    round.hasHeardAll = true;
    this.#unblock(round);
    yield* this.#replicate(round);
  }

  /** This node has installed a transaction, or may forget that it was aborted. */
  ended(name: Name): void {
    const round = this.current;
    const doubt = round.doubts.get(keyOf(name));
    if (doubt === undefined || doubt.isEnded) return;
    doubt.isEnded = true;
    this.#unblock(round);
  }

  /** Serves partitions in which all that is in doubt is locked, or not in doubt any more, and all else is applied. */
  #unblock(round: Round): void {
    if (!round.isCurrent || !round.hasHeardAll) return;
    const behind = [...round.blocked].filter((partition) => this.#replica.isBehind(partition));
    if (behind.length > 0) {
      this.#driver.endpoint.clock.after(APPLY_RETRY_MS, () => this.#unblock(round));
    }
    const kept = new Set<number>(behind);
    for (const [{ head, isEnded }, partition, doubt] of round.partitionDoubts()) {
      if (isEnded || !round.blocked.has(partition)) continue;
      doubt.isLocked ||= this.#replica.lock(head.name, partition);
      if (!doubt.isLocked) kept.add(partition);
    }
    for (const partition of round.blocked)
      if (!kept.has(partition)) round.blocked.delete(partition);
    if (round.isCurrent && round.blocked.size === 0) {
      this.#becameWhole(round.view.configurationId, true);
    }
  }

  *#replicate(round: Round): Routine<void> {
    const { view } = round;
    const replica = this.#replica;
    const doubts = [...round.partitionDoubts()]
      .map((each) => ({ each, order: replica.orderOf(each[0].head.name) }))
      .sort((left, right) => left.order - right.order);
    // Records that are kept in the order of their arrival are sent one after the other, as they may write the same row.
    const waves: ReplicateTxState[][] = [[]];
    const sentTo = new Map<string, number>();
    for (const { each, order } of doubts) {
      const [{ head }, partition, { seen, seenBy, writes, isOver }] = each;
      for (const node of view.placement.backupsOf(partition)) {
        const own = seenBy.get(node) ?? SAW_NOTHING;
        const isMissing = own !== SAW_LOCK && own !== SAW_LOG;
        // What is over here later ones may have overwritten: a node that is being filled gets it with the rows. That
        // the transaction has ended in another partition is not enough: here it may still be a record. The same holds for
        // the node that is filled: that it has seen the end elsewhere does not mean that it has these writes.
        const sent = isMissing && !isOver ? writes : undefined;
        const isFilling = view.placement.fillingOf(partition).includes(node);
        if (own === seen && (sent === undefined || !isFilling)) continue;
        const message = new ReplicateTxState(node, round, head, partition, seen, sent);
        const to = `${node} ${partition}`;
        const wave = sent === undefined || order < 0 ? 0 : (sentTo.get(to) ?? 0);
        if (sent !== undefined && order >= 0) sentTo.set(to, wave + 1);
        while (waves.length <= wave) waves.push([]);
        waves[wave].push(message);
      }
    }
    for (const wave of waves) if (!(yield* answered(round, wave))) return;
    round.hasReplicated = true;
    const votes: RecoveryVote[] = [];
    for (const doubt of round.doubts.values()) {
      doubt.isReplicated = true;
      const own: Votes = new Map();
      for (const [partition, { seen }] of doubt.partitions) own.set(partition, seen);
      votes.push(new RecoveryVote(settlerOf(doubt.head, view), round, doubt.head, own));
    }
    yield* answered(round, votes);
  }

  *#settle(round: Round, head: Head, votes: Votes): Routine<void> {
    const { placement, nodes } = round.view;
    const missing = new Map<NodeId, number[]>();
    for (const partition of head.partitions) {
      if (votes.has(partition)) continue;
      const primary = placement.primaryOf(partition);
      // All copies of it are lost. Whichever of them returns may have committed it, or have never heard of it: it
      // stays in doubt until then (votes.ts).
      if (!nodes.includes(primary)) return;
      append(missing, primary, partition);
    }
    const requests = [...missing].map(
      ([primary, partitions]) => new RequestVote(primary, round, head, partitions),
    );
    if (!(yield* answered(round, requests))) return;
    for (const request of requests) {
      for (const [partition, seen] of request.votes) votes.set(partition, seen);
    }
    const outcome = decide([...votes.values()].map(voteOf));
    this.#settled(head, outcome);
    const replicas = new Set<NodeId>();
    for (const partition of head.partitions) {
      replicas.add(placement.primaryOf(partition));
      for (const backup of placement.backupsOf(partition)) replicas.add(backup);
    }
    const members = [...replicas].filter((node) => nodes.includes(node));
    for (const kind of [
      outcome === "commit" ? COMMIT_RECOVERY : ABORT_RECOVERY,
      TRUNCATE_RECOVERY,
    ]) {
      const messages = members.map((node) => new RecoveryOutcome(kind, node, round, head.name));
      if (!(yield* answered(round, messages))) return;
    }
    const key = keyOf(head.name);
    if (nodeOf(head.name.coordinator) !== round.view.self) return;
    this.#outcomes.set(key, { name: head.name, outcome });
    this.#asked.get(key)?.tell(outcome);
    this.#asked.delete(key);
  }
}

/** Sends messages of a round. False if it must not go on: the round is over, or this end closes. */
function* answered(round: Round, messages: readonly RecoveryMessage[]): Routine<boolean> {
  for (const message of messages) round.messages.add(message);
  if (messages.length > 0) yield messages;
  for (const message of messages) round.messages.delete(message);
  return round.isCurrent && messages.every(({ error }) => error === undefined);
}

/** For each node: partitions of this primary that it is another replica of. */
function partitionsByBackup({ placement, self }: RecoveryView): [NodeId, number[]][] {
  const found = new Map<NodeId, number[]>();
  for (let partition = 0; partition < placement.partitions; partition++) {
    if (placement.primaryOf(partition) !== self) continue;
    for (const backup of placement.backupsOf(partition)) append(found, backup, partition);
  }
  return [...found];
}

/** From replicas that said nothing of a transaction what they saw; from the others writes that are missing. */
function fetchesOf(round: Round): FetchTxState[] {
  const { placement } = round.view;
  const fetches: FetchTxState[] = [];
  for (const [{ head }, partition, { seenBy, writes, isOver }] of round.partitionDoubts()) {
    for (const node of placement.backupsOf(partition)) {
      const seen = seenBy.get(node);
      const isMissing = writes === undefined && !isOver;
      const isWanted = isMissing && seen !== undefined && seen >= SAW_LOCK;
      if (seen !== undefined && !isWanted) continue;
      fetches.push(new FetchTxState(node, round, head, partition, isWanted));
    }
  }
  return fetches;
}

function append<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
