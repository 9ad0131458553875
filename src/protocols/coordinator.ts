/**
 * The coordinator of a commit: a coroutine that takes a transaction from "executed" to its end, in
 * the order of FaRM §3.4 and FaSST §5:
 *
 *   1. LOCK at the primaries of all that is written. Rows that were locked when they were read (rpc)
 *      are locked already; what is written to them goes with 3.
 *   2. VALIDATE what was only read, when all locks are held. Not where one node has all the data:
 *      there, locking and validating is one local step.
 *   3. LOG at all backups of all that is written. When the last has acknowledged, the transaction is
 *      committed: from here on it can only go on.
 *   4. COMMIT at the primaries.
 *   5. TRUNCATE at the backups, some time later, together with others.
 *
 * Up to the end of 2 a failure means ABORT at all nodes that may have locked, and "aborted". If a node refuses
 * in 3, all is undone, at the backups first. A node that does not answer holds the transaction up, and its
 * locks, until it does, or until the configuration changes.
 *
 * The outcome is told after 3: the transaction is committed then, and its rows cannot be read before they are
 * installed, so nobody can see that it is not done yet. A coordinator that is the primary of nothing that is
 * written waits for COMMIT: whoever settles the transaction after the deaths of this node and of f others
 * finds a record of LOCK that says nothing of the outcome, if the f are the backups of all that is written.
 *
 * Where the configuration may change (`recovers`), the coordinator also waits for COMMIT at its own node. It
 * then never knows more than its own store, which is asked when the transaction is recovered. With each new
 * configuration it stops what is recovering, and is told by recovery how that ended (open-transaction.ts).
 */

import type { Epoch } from "../engine/epoch.ts";
import type { NodeId } from "../fabric/fabric.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_EPOCH_GAP, MAX_RECORD_BYTES, MAX_SEQUENCE_SPAN } from "../runtime/limits.ts";
import type { Placement } from "../tables/partitions.ts";
import type { DecisionLog } from "../tables/served/contract.ts";
import { nextWrite, partitionAt } from "../tables/served/requests.ts";
import type { ClusterView, CurrentView } from "./cluster-view.ts";
import type { Driver } from "./driver.ts";
import { type Message, OK, type Routine } from "./message.ts";
import { type Name, Sequences } from "./names.ts";
import { MemberScope, nodesThatLost, OpenTransaction } from "./open-transaction.ts";
import type { Origin } from "./origin.ts";
import { Abort } from "./phases/abort.ts";
import { Commit } from "./phases/commit.ts";
import { Decide } from "./phases/decide.ts";
import { Lock } from "./phases/lock.ts";
import { Log, LogWrites } from "./phases/log.ts";
import { Truncate, Truncations } from "./phases/truncate.ts";
import { Validate } from "./phases/validate.ts";
import { Head } from "./records.ts";
import { Settle } from "./recovery/phases/settle.ts";
import { mustBeKept } from "./settlement.ts";
import { Part } from "./writes.ts";

export type Outcome =
  | { readonly kind: "committed" }
  /** Somebody was in the way: the body may be run again. */
  | { readonly kind: "aborted" }
  /** It cannot be done: the store is full, a row is of the wrong type. */
  | { readonly kind: "refused"; readonly error: SituError }
  /** Nobody knows, and it must not be tried again. */
  | { readonly kind: "unknown"; readonly error: SituError };

export const COMMITTED: Outcome = { kind: "committed" };
export const ABORTED: Outcome = { kind: "aborted" };

/** What a transaction does at each node. */
export type Parts = ReadonlyMap<NodeId, Part>;

/** What reads that lock have left for the commit: their name, and how many rounds it has had. */
export interface Held {
  readonly name: Name;
  /** For each node that has been asked to lock: its last round. */
  readonly rounds: Map<NodeId, number>;
  /** Nodes where rows were read under the name and are not locked. */
  readonly reads: Set<NodeId>;
  /** The largest epoch of all nodes that have locked. */
  epoch: Epoch;
  /** The smallest. */
  leastEpoch: Epoch;
  /** Writes to rows that are locked already. */
  readonly writes: Parts;
}

export interface CoordinatorCounters {
  committed: number;
  aborted: number;
}

export interface CoordinatorOptions {
  readonly driver: Driver;
  readonly view: CurrentView;
  /** Of the coordinator (names.ts). */
  readonly number: number;
  /** Of the node, and how it begins another one. */
  readonly life: number;
  readonly newLife: () => number;
  readonly decisions: DecisionLog;
  /** Whether what a change of the configuration leaves in doubt is recovered. */
  readonly recovers?: boolean;
}

export class Coordinator {
  readonly sequences: Sequences;
  readonly counters: CoordinatorCounters = { committed: 0, aborted: 0 };
  readonly #driver: Driver;
  readonly #view: CurrentView;
  readonly #truncations: Truncations;
  readonly #decisions: DecisionLog;
  /** Those whose decision is kept. */
  readonly #decided = new Set<number>();
  /** By sequence; none where nothing is recovered. */
  readonly #opened = new Map<number, OpenTransaction>();
  readonly #members: MemberScope | undefined;
  /** For each view that an open transaction began in: who lost something since. */
  readonly #lost = new Map<ClusterView, ReadonlySet<NodeId>>();
  #busy = 0;

  constructor(options: CoordinatorOptions) {
    const { driver, view, number, life, newLife, decisions, recovers = false } = options;
    this.#driver = driver;
    this.#view = view;
    this.#decisions = decisions;
    this.#members = recovers ? new MemberScope(view) : undefined;
    this.sequences = new Sequences(number, life, newLife);
    this.#truncations = new Truncations(
      driver,
      this.sequences,
      (sequence) => this.#over(sequence),
      this.#members,
    );
  }

  /** The name of a new transaction. */
  begin(): Name {
    const name = this.sequences.begin();
    if (this.#members !== undefined) {
      this.#opened.set(name.sequence, new OpenTransaction(name, this.#view));
    }
    return name;
  }

  /** There is a new view: some transactions are stopped, and go on to ask how recovery has ended them. */
  adopt(): void {
    this.#lost.clear();
    const opened = [...this.#opened.values()];
    const stopped = opened.filter((open) => open.stop());
    const sequences = new Set(stopped.map(({ name }) => name.sequence));
    this.#truncations.adopt(sequences, this.#view.current.nodes);
    for (const open of opened) open.endMessages();
    for (const open of stopped) {
      if (open.isTruncating) this.#driver.detach(this.#recovered(open, new Set()));
    }
  }

  /** Transactions that are not over: some node may still get a message about them. */
  get open(): number {
    return this.sequences.open;
  }

  /** Commits that are under way, up to the last primary. */
  get busy(): number {
    return this.#busy;
  }

  /** Commits what a transaction did in its parts, for the client that `origin` names. */
  *commit(parts: Parts, held?: Held, origin?: Origin): Routine<Outcome> {
    this.#busy++;
    try {
      return yield* this.#commit(parts, held, origin);
    } finally {
      this.#busy--;
    }
  }

  /** Tells backups now what they would be told soon. */
  flush(): void {
    this.#truncations.flush();
  }

  *#commit(given: Parts, held: Held | undefined, origin: Origin | undefined): Routine<Outcome> {
    if (held === undefined && this.sequences.isFull) {
      return { kind: "refused", error: tooManyBehind() };
    }
    const { placement, self } = this.#view.current;
    const { parts, late } = withLock(given, held, self);
    const name = held?.name ?? this.begin();
    const open = this.#opened.get(name.sequence);
    const head = this.#headOf(name, origin, parts, late);
    if (head === undefined) return this.#abort(name, [], held, misplaced());
    if (open !== undefined) {
      if (this.#hasMoved(open, parts, held)) return this.#abort(name, [], held, ABORTED);
      const lost = this.#lostOf(head);
      if (lost !== undefined) {
        return this.#abort(name, [], held, { kind: "refused", error: isLost(lost) });
      }
      open.head = head;
    }
    const locks: Lock[] = [];
    const readers: Validate[] = [];
    let epoch: Epoch = held?.epoch ?? 0;
    let nodes = held?.rounds.size ?? 0;
    for (const [node, part] of parts) {
      const round = held?.rounds.get(node);
      // Where rows are locked already, only its own transaction there can tell whose locks they are.
      if (part.writeCount > 0 || (round !== undefined && part.dependencyCount > 0)) {
        locks.push(new Lock(node, head, part, (round ?? 0) + 1));
      } else if (part.dependencyCount > 0) {
        readers.push(new Validate(node, part));
        // Visible no earlier than what it has read. Where it locks, it is bound to a later epoch anyway.
        epoch = Math.max(epoch, part.readEpoch);
      } else continue;
      if (round === undefined) nodes++;
    }
    if (locks.length > 0) yield open?.sends(locks) ?? locks;
    if (open?.isStopped) return this.#counted(yield* this.#recovered(open, nodesOf(locks, held)));
    const refused = firstRefusal(locks);
    if (refused !== undefined) return this.#abort(name, locks, held, refused);
    // What LOCK has validated at the only node that takes part was validated with all locks held.
    const isWhole = nodes === 1 && locks.length === 1;
    const readAt = new Set(isWhole ? undefined : held?.reads);
    for (const lock of locks) {
      epoch = Math.max(epoch, lock.epoch);
      if (lock.hasReads && !isWhole) readAt.add(lock.to);
    }
    if (areApart(epoch, locks, held)) return this.#abort(name, locks, held, ABORTED, epoch);
    if (nodes > 1) this.#addHeld(held, locks, late, readAt);
    for (const node of readAt) readers.push(new Validate(node, name));

    if (readers.length > 0) {
      for (const reader of readers) reader.epoch = epoch;
      yield open?.sends(readers) ?? readers;
      if (open?.isStopped) return this.#counted(yield* this.#recovered(open, nodesOf(locks, held)));
      const failed = firstFailure(readers);
      if (failed !== undefined) {
        return this.#abort(name, locks, held, { kind: "refused", error: failed });
      }
      if (!readers.every(({ isValid }) => isValid)) {
        return this.#abort(name, locks, held, ABORTED);
      }
    }
    if (open !== undefined && this.#hasMoved(open, parts, held)) {
      return this.#abort(name, locks, held, ABORTED);
    }
    if (locks.length === 0 && held === undefined) {
      this.#over(name.sequence);
      this.counters.committed++;
      return COMMITTED;
    }

    const backups = this.#backupsOf(parts, late);
    // The last moment to say no: a record without room would be sent for ever.
    for (const writes of backups.values()) {
      if (writes.recordWords(head) * 4 <= MAX_RECORD_BYTES) continue;
      return this.#abort(name, locks, held, { kind: "refused", error: tooLarge() });
    }
    const logs = [...backups].map(([backup, writes]) => new Log(backup, head, writes));
    for (const [node, part] of late) {
      locks.push(new Lock(node, head, part, held!.rounds.get(node)! + 1));
    }
    if (logs.length > 0 || late.size > 0) {
      const messages = [...locks.slice(locks.length - late.size), ...logs];
      yield open?.sends(messages) ?? messages;
      if (open?.isStopped) return this.#counted(yield* this.#recovered(open, nodesOf(locks, held)));
      const failure = firstFailure(logs);
      const refusal = firstRefusal(locks) ?? (failure && { kind: "refused", error: failure });
      if (refusal !== undefined) {
        return yield* this.#takeBack(name, locks, held, [...backups.keys()], refusal);
      }
    }
    const validated = epoch;
    for (const lock of locks) epoch = Math.max(epoch, lock.epoch);
    if (epoch > validated && areApart(epoch, locks, held)) {
      return yield* this.#takeBack(name, locks, held, [...backups.keys()], ABORTED, epoch);
    }
    // A row that was locked before has moved, and was locked anew: what was read holds up to the later epoch, too.
    if (epoch > validated && readers.length > 0) {
      for (const reader of readers) reader.epoch = epoch;
      yield open?.sends(readers) ?? readers;
      if (open?.isStopped) return this.#counted(yield* this.#recovered(open, nodesOf(locks, held)));
      if (!readers.every(({ error, isValid }) => error === undefined && isValid)) {
        return yield* this.#takeBack(name, locks, held, [...backups.keys()], ABORTED);
      }
    }
    const isKept = head.partitions.length > 0 && mustBeKept(head.partitions, self, placement);
    // Who recovers asks the records; nobody looks for decisions.
    if (isKept && open === undefined) {
      const decide = new Decide(self, name);
      yield [decide];
      if (decide.error !== undefined) return unknown(decide.error);
      this.#decided.add(name.sequence);
    }
    const commits = [...nodesOf(locks, held)].map((to) => new Commit(to, name, epoch));
    // At this node first: a record that is left here then says that nobody else was told (settlement.ts).
    const own = commits.filter(({ to }) => to === self);
    const others = commits.filter(({ to }) => to !== self);
    if (open !== undefined && own.length > 0) {
      const ended = yield* this.#told(open, own, nodesOf(locks, held));
      if (ended !== undefined) return this.#counted(ended);
      own.length = 0;
    }
    const rest = this.#install(name, [own, others], [...backups.keys()]);
    // Without copies it is committed nowhere before it is at its primaries. And should this node, which has no
    // copy, die with all backups of what is written, a primary must know (FaRM §5.3).
    if (backups.size === 0 || isKept) {
      const ended = yield* rest;
      if (ended !== undefined) return this.#counted(ended);
    } else this.#driver.detach(rest);
    this.counters.committed++;
    return COMMITTED;
  }

  /**
   * What a new configuration has stopped: recovery decides. It ends all of which there are records; what is
   * locked without one, only to be read, the coordinator lets go of.
   */
  *#recovered(open: OpenTransaction, nodes: ReadonlySet<NodeId>): Routine<Outcome> {
    const { self } = this.#view.current;
    const settle = new Settle(self, open.head!);
    settle.scope = this.#members;
    yield [settle];
    if (settle.error !== undefined) return unknown(settle.error);
    open.settled();
    this.#driver.detach(this.#letGo(open, settle.isCommitted, nodes));
    return settle.isCommitted ? COMMITTED : ABORTED;
  }

  #counted(outcome: Outcome): Outcome {
    if (outcome.kind === "committed") this.counters.committed++;
    else if (outcome.kind === "aborted") this.counters.aborted++;
    return outcome;
  }

  *#letGo(open: OpenTransaction, isCommitted: boolean, nodes: ReadonlySet<NodeId>): Routine<void> {
    const { name } = open;
    const members = this.#view.current.nodes.filter((node) => nodes.has(node));
    const messages = members.map((to) =>
      isCommitted ? new Commit(to, name, 0, false) : new Abort(to, name),
    );
    if (messages.length > 0) yield open.sends<Message>(messages);
    this.#over(name.sequence);
  }

  /** A partition that it writes and that no member has a copy of: it would be in doubt until one is back. */
  #lostOf({ partitions }: Head): number | undefined {
    const { placement, nodes } = this.#view.current;
    return partitions.find((partition) => !nodes.includes(placement.primaryOf(partition)));
  }

  /** Whether a node that a transaction has read from is not the primary of all that it was then. */
  #hasMoved(open: OpenTransaction, parts: Parts, held: Held | undefined): boolean {
    const { current } = this.#view;
    const { began } = open;
    if (began === current) return false;
    let lost = this.#lost.get(began);
    if (lost === undefined) {
      lost = nodesThatLost(began, current);
      this.#lost.set(began, lost);
    }
    if (lost.size === 0) return false;
    return [parts, held?.rounds, held?.reads].some((nodes) =>
      [...(nodes?.keys() ?? [])].some((node) => lost.has(node)),
    );
  }

  /** Nodes where rows are locked and nothing is written: they may have been started anew since. */
  #addHeld(held: Held | undefined, locks: readonly Lock[], late: Parts, readAt: Set<NodeId>): void {
    for (const node of held?.rounds.keys() ?? []) {
      if (!late.has(node) && !locks.some(({ to }) => to === node)) readAt.add(node);
    }
  }

  /**
   * A backup refuses the record, or a primary has lost its locks. Nobody was told "committed", and backups
   * apply nothing before they are told to; so all can be undone. First at the backups, and the caller is told
   * when none has a record any more: from then on nobody can take the transaction for committed.
   */
  *#takeBack(
    name: Name,
    locks: readonly Lock[],
    held: Held | undefined,
    backups: readonly NodeId[],
    outcome: Outcome,
    epoch: Epoch = 0,
  ): Routine<Outcome> {
    const { coordinator, sequence, low } = name;
    const told = backups.map((backup) => new Truncate(backup, coordinator, low, [], [sequence]));
    const open = this.#opened.get(sequence);
    if (told.length > 0) yield open?.sends(told) ?? told;
    if (open?.isStopped) return this.#counted(yield* this.#recovered(open, nodesOf(locks, held)));
    const lost = firstFailure(told);
    if (lost !== undefined) return unknown(lost);
    return this.#abort(name, locks, held, outcome, epoch);
  }

  /** The rest, that nobody waits for: who wants to read what is being installed waits for that. */
  *#install(
    name: Name,
    batches: readonly (readonly Commit[])[],
    backups: readonly NodeId[],
  ): Routine<Outcome | undefined> {
    const open = this.#opened.get(name.sequence);
    const nodes = new Set(batches.flat().map(({ to }) => to));
    this.#busy++;
    try {
      for (const batch of batches) {
        const ended = yield* this.#told(open, batch, nodes);
        if (ended !== undefined) return ended;
      }
      if (open !== undefined) open.isTruncating = true;
      this.#truncations.add(name, backups);
      return undefined;
    } finally {
      this.#busy--;
    }
  }

  /** Tells primaries that it is committed; how it ended if they do not all answer. */
  *#told(
    open: OpenTransaction | undefined,
    batch: readonly Commit[],
    nodes: ReadonlySet<NodeId>,
  ): Routine<Outcome | undefined> {
    if (batch.length > 0) yield open?.sends(batch) ?? batch;
    if (open?.isStopped) return yield* this.#recovered(open, nodes);
    // This end is being closed, or the primary has another configuration. Backups keep their records.
    const failure = firstFailure(batch);
    return failure && unknown(failure);
  }

  /** No node has a record of it any more. */
  #over(sequence: number): void {
    if (this.#decided.delete(sequence)) {
      this.#decisions.forget(this.sequences.coordinator, sequence);
    }
    this.#opened.delete(sequence);
    this.sequences.end(sequence);
  }

  /** Gives up what reads have locked. */
  release(held: Held): void {
    this.#abort(held.name, [], held, ABORTED);
  }

  /** Nobody waits for the locks to be released: who meets one tries again. */
  #abort(
    name: Name,
    locks: readonly Lock[],
    held: Held | undefined,
    outcome: Outcome,
    epoch: Epoch = 0,
  ): Outcome {
    const nodes = new Set(held?.rounds.keys());
    for (const lock of locks) {
      // One that answered "no" holds nothing, and knows that it is over.
      if (lock.error !== undefined || lock.outcome === OK) nodes.add(lock.to);
    }
    this.#driver.detach(this.#tellAborted(name, nodes, epoch));
    this.counters.aborted++;
    // What the caller has executed is of an earlier configuration: it may try again in this one.
    const isStale = outcome.kind === "refused" && outcome.error.code === "SITU_STALE_CONFIGURATION";
    return isStale && this.#members !== undefined ? ABORTED : outcome;
  }

  *#tellAborted(name: Name, nodes: ReadonlySet<NodeId>, epoch: Epoch): Routine<void> {
    const open = this.#opened.get(name.sequence);
    const { nodes: members } = this.#view.current;
    const isThere = (node: NodeId): boolean => open === undefined || members.includes(node);
    const messages = [...nodes].filter(isThere).map((node) => new Abort(node, name, epoch));
    if (messages.length > 0) yield open?.sends(messages) ?? messages;
    if (open?.isStopped) yield* this.#recovered(open, nodes);
    else this.#over(name.sequence);
  }

  /** Undefined if a part is not for the primary of what it writes. */
  #headOf(name: Name, origin: Origin | undefined, ...parts: readonly Parts[]): Head | undefined {
    const { placement, configurationId } = this.#view.current;
    const partitions = new Set<number>();
    for (const each of parts) {
      for (const [node, { writes }] of each) {
        for (let at = 0; at < writes.length; at = nextWrite(writes, at)) {
          const partition = partitionAt(writes, at);
          if (placement.primaryOf(partition) !== node) return undefined;
          partitions.add(partition);
        }
      }
    }
    const sorted = [...partitions].sort((a, b) => a - b);
    return new Head(name, configurationId, origin, sorted);
  }

  /** For each backup, what it must log. */
  #backupsOf(parts: Parts, late: Parts): Map<NodeId, LogWrites> {
    const lists = new Map<NodeId, LogWrites>();
    const { placement } = this.#view.current;
    for (const part of parts.values()) addWrites(part, placement, lists);
    for (const part of late.values()) addWrites(part, placement, lists);
    return lists;
  }
}

function addWrites({ writes }: Part, placement: Placement, lists: Map<NodeId, LogWrites>): void {
  for (let at = 0; at < writes.length; at = nextWrite(writes, at)) {
    for (const backup of placement.backupsOf(partitionAt(writes, at))) {
      let list = lists.get(backup);
      if (list === undefined) {
        list = new LogWrites();
        lists.set(backup, list);
      }
      list.add(writes, at);
    }
  }
}

/**
 * What goes with the first LOCK, and what later, together with LOG: writes to rows that are locked already. Where
 * LOCK is sent to a node anyway, all of it goes with it: to add or remove a row may move another one out of the
 * place where it is locked. So does what is written at this node, whose record is kept before any LOG is sent.
 */
function withLock(
  given: Parts,
  held: Held | undefined,
  self: NodeId,
): { parts: Parts; late: Parts } {
  const late = new Map(held?.writes);
  if (late.size === 0) return { parts: given, late };
  const parts = new Map(given);
  for (const [node, more] of held!.writes) {
    const part = given.get(node) ?? new Part();
    if (part.writeCount + part.dependencyCount === 0 && node !== self) continue;
    late.delete(node);
    parts.set(node, part.with(more));
  }
  return { parts, late };
}

/** Where something of it may be locked. */
function nodesOf(locks: readonly Lock[], held: Held | undefined): Set<NodeId> {
  return new Set([...locks.map(({ to }) => to), ...(held?.rounds.keys() ?? [])]);
}

/**
 * Whether a node that has locked is so far behind the epoch in which the transaction would become visible that it
 * could not come there while the transaction is open. A node that was rebuilt from its log is far ahead of all others
 * (LOST_EPOCHS): to commit, the others would have to pass an epoch that the transaction itself holds them at.
 */
function areApart(epoch: Epoch, locks: readonly Lock[], held: Held | undefined): boolean {
  if (held !== undefined && epoch - held.leastEpoch > MAX_EPOCH_GAP) return true;
  return locks.some((lock) => epoch - lock.epoch > MAX_EPOCH_GAP);
}

function firstFailure(messages: readonly Message[]): SituError | undefined {
  return messages.find(({ error }) => error !== undefined)?.error;
}

function firstRefusal(locks: readonly Lock[]): Outcome | undefined {
  for (const { error } of locks) {
    if (error !== undefined) return { kind: "refused", error };
  }
  return locks.every(({ outcome }) => outcome === OK) ? undefined : ABORTED;
}

function isLost(partition: number): SituError {
  return new SituError(
    "SITU_UNREACHABLE",
    `all copies of partition ${partition} are lost: nothing is written there until one of them is back`,
  );
}

function misplaced(): Outcome {
  const error = new SituError(
    "SITU_STALE_CONFIGURATION",
    "a transaction writes to a node that is not the primary: it was executed in another configuration",
  );
  return { kind: "refused", error };
}

function tooManyBehind(): SituError {
  return new SituError(
    "SITU_OVERLOADED",
    `${MAX_SEQUENCE_SPAN} transactions have begun after one that is not over: a node that takes part in it does ` +
      "not answer",
  );
}

function tooLarge(): SituError {
  return new SituError(
    "SITU_TOO_LARGE",
    `a transaction writes at most ${MAX_RECORD_BYTES} bytes that one node keeps a copy of`,
  );
}

function unknown(error: SituError): Outcome {
  return {
    kind: "unknown",
    error: new SituError(
      "SITU_UNKNOWN_OUTCOME",
      `the transaction may or may not have been committed: ${error.message}`,
      { cause: error },
    ),
  };
}
