/**
 * What one thread of a node does for others: participant, backup and coordinator in one place, and
 * the messages that go to each. The thread is the NIC worker, or the host: the protocol's table says
 * which kinds come here (protocols/places.ts).
 */

import type { Executor } from "../engine/executor.ts";
import {
  type ConfigurationId,
  DESCRIBE_KIND,
  type Endpoint,
  FIRST_MESSAGE_KIND,
  type Incoming,
  type NodeId,
} from "../fabric/fabric.ts";
import { serveVerb } from "../fabric/verbs.ts";
import { BackupRecords } from "../protocols/backup-records.ts";
import {
  ABORTED,
  COMMITTED,
  Coordinator,
  type Outcome,
  type Parts,
} from "../protocols/coordinator.ts";
import type { Copying } from "../protocols/copying/copying.ts";
import type { Disk } from "../protocols/disk.ts";
import { Driver, rethrow } from "../protocols/driver.ts";
import { OPEN_SESSION, OPEN_TABLE, OUTCOME, SUBMIT } from "../protocols/kinds.ts";
import type { Routine } from "../protocols/message.ts";
import { coordinatorNumber, firstSequenceOf } from "../protocols/names.ts";
import { type Origin, originsOf } from "../protocols/origin.ts";
import { Participant } from "../protocols/participant.ts";
import { messageOf } from "../protocols/phases/phases.ts";
import { type Handler, Registry } from "../protocols/phases/registry.ts";
import { COMMIT_HANDLERS, type ServingThread } from "../protocols/phases/table.ts";
import { type Thread, threadOf } from "../protocols/places.ts";
import type { Head } from "../protocols/records.ts";
import { RECOVERY_HANDLERS } from "../protocols/recovery/phases/table.ts";
import { nodeOf } from "../protocols/recovery/recovering.ts";
import { type Decision, Recovery } from "../protocols/recovery/recovery.ts";
import { StoreReplica } from "../protocols/recovery/store-replica.ts";
import { Settlement } from "../protocols/settlement.ts";
import { passOver } from "../runtime/background-errors.ts";
import { SituError } from "../runtime/errors.ts";
import { DRAIN_MS, DRAIN_TRUNCATE_MS, LOCK_TIMEOUT_MS } from "../runtime/limits.ts";
import type { CopiedTables, DecisionLog } from "../tables/served/contract.ts";
import type { KeptRecords } from "../tables/served/kept-records.ts";
import { CommittedOrigins } from "./committed-origins.ts";
import { copiesOf, type TellFilled } from "./copies.ts";
import { serveDescribe, serveOpenTable } from "./describe.ts";
import { serveOutcome } from "./outcome.ts";
import { Outcomes } from "./outcomes.ts";
import { Deadline, Sessions, serveOpenSession, type TimeLeft } from "./session.ts";
import { SubmitInDoubt, serveSubmit, submitOnce } from "./submit.ts";
import type { View, ViewHolder } from "./view.ts";

export interface ServiceOptions {
  readonly view: ViewHolder;
  readonly endpoint: Endpoint;
  readonly executor: Executor;
  readonly tables: CopiedTables;
  readonly kept: KeptRecords;
  readonly disk: Disk;
  readonly thread: Thread;
  /** The number of this life of the node, and how it begins another one (tables/served/lives.ts). */
  readonly life: number;
  readonly newLife: () => number;
  /** At the NIC worker: takes what the protocol's table has the host serve. */
  readonly passOn?: (incoming: Incoming) => void;
  /** Which kinds of messages to the own node this thread serves; the others go over the endpoint. */
  readonly isServedHere?: (kind: number) => boolean;
  /**
   * Whether the configuration may change, and what that leaves in doubt is recovered. All that others ask of
   * the node's data is then done by the thread that keeps its copies.
   */
  readonly recovers?: boolean;
  /** Whether the node has a lease; without it, it serves nothing but what a new configuration needs. */
  readonly mayServe?: () => boolean;
  /** At a thread that does not keep the copies: whether the one that does has recovered all partitions. */
  readonly isWhole?: () => boolean;
  /** At the thread that does: told when that changes. */
  readonly becameWhole?: (configurationId: ConfigurationId, isWhole: boolean) => void;
  /** There, too: told which partitions this node has copied. Without it, it makes no copies. */
  readonly filled?: TellFilled;
}

/** What nodes serve beside the phases. */
const CLUSTER_HANDLERS: readonly Handler<NodeService>[] = [
  { kind: SUBMIT, serve: serveSubmit },
  {
    kind: OPEN_SESSION,
    serve: ({ outcomes, driver }, incoming) =>
      serveOpenSession(outcomes, incoming, driver.endpoint.clock.nowMs()),
  },
  { kind: OUTCOME, serve: serveOutcome },
  { kind: OPEN_TABLE, serve: serveOpenTable },
  { kind: DESCRIBE_KIND, serve: serveDescribe },
];

/** What a node says of its rows, and changes nothing. */
function isReading(kind: number): boolean {
  return kind < FIRST_MESSAGE_KIND || messageOf(kind)?.isReading === true;
}

/** How often a node that is being closed looks whether it may. */
const DRAIN_LOOK_MS = 5;

export class NodeService implements ServingThread {
  readonly view: ViewHolder;
  readonly driver: Driver;
  readonly tables: CopiedTables;
  readonly participant: Participant;
  readonly backup: BackupRecords | undefined;
  readonly disk: Disk;
  readonly decisions: DecisionLog;
  readonly #life: number;
  readonly coordinator: Coordinator;
  readonly outcomes = new Outcomes<Outcome>();
  /** Where the configuration may change, at the thread that keeps the node's copies. */
  readonly recovery: Recovery | undefined;
  /** With it: what makes copies of partitions that the configuration gives to this node. */
  readonly copying: Copying | undefined;
  /** With it: for whom transactions were committed here. */
  readonly committed: CommittedOrigins | undefined;
  /** Origins of what this thread coordinates for clients of other nodes (outcome.ts). */
  readonly shipped = new Set<string>();
  /** Commits of clients that are under way here. */
  submitted = 0;
  readonly #registry = new Registry<NodeService>(COMMIT_HANDLERS, CLUSTER_HANDLERS);
  readonly #executor: Executor;
  readonly #thread: Thread;
  readonly #passOn: ((incoming: Incoming) => void) | undefined;
  /** For transactions that are shipped to others. */
  readonly #sessions: Sessions;
  readonly #recovers: boolean;
  #replica: StoreReplica | undefined;
  readonly #mayServe: (() => boolean) | undefined;
  /** The view before the present one. */
  #previous: View;
  #hasLeft = false;

  constructor(options: ServiceOptions) {
    const { view, endpoint, executor, tables, kept, disk, thread, life, newLife } = options;
    const { clock } = endpoint;
    const { locks, copies, decisions, left } = kept;
    this.view = view;
    this.tables = tables;
    this.#sessions = new Sessions(`${thread} ${view.current.instance}`, OPEN_SESSION);
    this.#executor = executor;
    this.#thread = thread;
    this.#passOn = options.passOn;
    const serveOwn = (incoming: Incoming): void => this.serveAlone(incoming);
    this.driver = new Driver(endpoint, serveOwn, options.isServedHere);
    this.disk = disk;
    this.decisions = decisions;
    this.#life = life;
    this.participant = new Participant({ executor, tables, view, clock, log: locks, disk });
    this.backup = copies && new BackupRecords(executor, tables, copies, clock);
    if (copies !== undefined) this.participant.takeUp(left);
    const number = coordinatorNumber(view.current.self, thread);
    const { driver } = this;
    const { recovers = false } = options;
    this.#recovers = recovers;
    this.#mayServe = options.mayServe;
    this.#previous = view.current;
    this.coordinator = new Coordinator({
      driver,
      view,
      number,
      life,
      newLife,
      decisions,
      recovers,
    });
    const { isWhole, becameWhole } = options;
    if (recovers && this.backup !== undefined) {
      this.recovery = this.#recovery(this.backup, becameWhole);
      const committed = new CommittedOrigins(clock);
      this.committed = committed;
      this.participant.committed = (record) => committed.note(record);
      this.backup.committed = (record) => committed.note(record);
      this.copying = this.#copying(this.backup, this.recovery, options.filled);
    } else if (isWhole !== undefined) {
      this.participant.blocked = {
        isBlocked: () => !isWhole(),
        get hasBlocked() {
          return !isWhole();
        },
      };
    }
  }

  #recovery(backup: BackupRecords, becameWhole: ServiceOptions["becameWhole"]): Recovery {
    const { participant, driver, disk } = this;
    const replica = new StoreReplica(participant, backup);
    const recovery = new Recovery(
      driver,
      replica,
      (head, outcome) => this.settled(head, outcome),
      becameWhole,
    );
    this.#replica = replica;
    const thread = { replica, recovery, disk };
    for (const { kind, serve } of RECOVERY_HANDLERS) {
      this.handle({ kind, serve: (_, incoming) => serve(thread, incoming) });
    }
    participant.blocked = recovery;
    return recovery;
  }

  #copying(
    backup: BackupRecords,
    recovery: Recovery,
    filled: TellFilled | undefined,
  ): Copying | undefined {
    if (filled === undefined) return undefined;
    const { driver, tables, disk, view } = this;
    const options = {
      driver,
      executor: this.#executor,
      tables,
      backup,
      disk,
      view,
      filled,
      replica: this.#replica!,
      hasReplicated: () => recovery.hasReplicated,
    };
    return copiesOf(options, (handler) => this.handle(handler));
  }

  /**
   * The configuration has changed; not all members know it yet. From now on this thread refuses what others send in
   * an earlier one, serves nothing of what the node has become the primary of, and stops what is in doubt.
   *
   * False if this thread stays in the configuration that it has: the other is no later one, or this life of the node
   * has left with it. What it sends goes on to say the last configuration that it was a member of, and is refused by
   * all members of later ones. Otherwise it could commit what others take for undone, as it is no member (doubts.ts).
   */
  adopt(next: View): boolean {
    const previous = this.view.current;
    if (next.configurationId <= previous.configurationId) return false;
    if (previous.isMember && !next.isMember) {
      this.leave();
      return false;
    }
    this.#previous = previous;
    this.view.current = next;
    this.driver.endpoint.configurationId = next.configurationId;
    // What recovery settles has no epoch that all nodes agree on, and rows may have another primary.
    this.participant.snapshots.releaseAll();
    if (next.isMember && !previous.isMember) this.#joined(next);
    this.recovery?.adopt(next, previous);
    this.committed?.adopted(previous, next);
    this.#sessions.adopted(previous, next);
    this.coordinator.adopt();
    this.#sessions.adopted(previous, next);
    return true;
  }

  /** This life of the node is no member any more: nobody answers what it has under way. */
  leave(): void {
    this.#hasLeft = true;
  }

  /** What this node has of an earlier membership counts where it is a copy again at once. */
  #joined({ placement, self }: View): void {
    this.#replica?.keepOnly((partition) => placement.copiesOf(partition).includes(self));
  }

  /** All members have adopted the configuration, and no lease of one that has left is valid any more. */
  recover(previous: View = this.#previous): void {
    this.copying?.adopt(this.view.current);
    this.recovery?.recover(this.view.current, previous);
    this.driver.hurry();
  }

  /** Whether the node cannot serve a partition yet that it has become the primary of. */
  isBlocked(partition: number): boolean {
    return this.recovery?.isBlocked(partition) ?? false;
  }

  /** Whether it cannot serve some. */
  get hasBlocked(): boolean {
    return this.recovery?.hasBlocked ?? false;
  }

  /** Recovery has come to an outcome: what a dead coordinator leaves, its client may ask for here. */
  protected settled({ name, origin }: Head, outcome: Decision): void {
    if (origin === undefined || nodeOf(name.coordinator) === this.self) return;
    for (const each of originsOf(origin)) this.#settledFor(each, outcome);
  }

  #settledFor({ session, number }: Origin, outcome: Decision): void {
    // Of several attempts of one number all but the last were aborted, in whichever order they are settled.
    if (this.outcomes.known(session, number)?.kind === "committed") return;
    const nowMs = this.driver.endpoint.clock.nowMs();
    try {
      this.outcomes.settle(session, number, outcome === "commit" ? COMMITTED : ABORTED, nowMs);
    } catch (error) {
      passOver(error, "keeping the outcome of a transaction for its client");
    }
  }

  get self(): NodeId {
    return this.view.current.self;
  }

  /** Has this thread serve one more kind of message. */
  handle(handler: Handler<NodeService>): void {
    this.#registry.add(handler);
  }

  /**
   * Settles what earlier lives of this node's coordinators have left, at the thread that keeps its copies. Where
   * the configuration may change, recovery does that: another life of a node is another member.
   */
  settle(): void {
    const { coordinator, driver, view, decisions } = this;
    if (this.backup === undefined || this.#life === 1 || this.#recovers) return;
    const settlement = new Settlement({
      driver,
      view,
      nodes: view.current.nodes,
      coordinator: coordinator.sequences.coordinator,
      firstSequence: firstSequenceOf(this.#life),
      decisions,
    });
    settlement.begin();
  }

  serve(incoming: Incoming): void {
    if (this.#mayServe?.() === false && !messageOf(incoming.kind)?.needsNoLease) {
      throw this.#withoutLease();
    }
    // A fabric serves verbs itself; only those of this node to itself come here.
    if (incoming.kind < FIRST_MESSAGE_KIND) {
      this.participant.checkWhole();
      serveVerb(this.#executor.memory, incoming.kind, incoming.body, incoming.reply());
      return;
    }
    if (this.#passOn !== undefined && this.#isElsewhere(incoming.kind)) this.#passOn(incoming);
    else this.#registry.serve(this, incoming);
  }

  /**
   * The same where no fabric asks for the lease once more before replies leave (fabric/exchange/responder.ts). The
   * thread may have stood still since it was asked first: what was read then may have been changed elsewhere.
   */
  serveAlone(incoming: Incoming): void {
    this.serve(incoming);
    if (this.#mayServe?.() === false && isReading(incoming.kind)) throw this.#withoutLease();
  }

  #withoutLease(): SituError {
    return new SituError("SITU_OVERLOADED", `node ${this.self} has no lease: try again`);
  }

  #isElsewhere(kind: number): boolean {
    return threadOf(this.view.current.protocol, kind) !== this.#thread;
  }

  /**
   * Refuses to begin anything, and waits for what is under way: before the endpoint closes. Where the node has left, that
   * would never end. Those who wait for it find their connections cut, and ask the members.
   */
  async drain(): Promise<void> {
    this.#registry.refuseBeginnings(`node ${this.self} is being closed`);
    const { clock } = this.driver.endpoint;
    const deadlineMs = clock.nowMs() + DRAIN_MS;
    const turn = (): Promise<void> =>
      new Promise((resolve) => void clock.after(DRAIN_LOOK_MS, resolve));
    while (this.coordinator.busy > 0 || this.participant.prepared > 0) {
      if (this.#hasLeft || clock.nowMs() >= deadlineMs) return;
      await turn();
    }
    if (this.#hasLeft) return;
    // So that backups need not wait for the next life of this node; others may be closed already.
    this.coordinator.flush();
    const patienceMs = clock.nowMs() + DRAIN_TRUNCATE_MS;
    while (this.coordinator.open > 0 && clock.nowMs() < patienceMs) await turn();
  }

  /** Nothing is begun any more, and what was prepared is let go; the endpoint is closed already. */
  close(): void {
    this.copying?.stop();
    this.driver.close();
    this.backup?.close();
    this.participant.releaseAll();
  }

  /** Commits a transaction, here or, if all of its data lies on one other node, there. */
  commit(parts: Parts, time: TimeLeft, origin?: Origin): Routine<Outcome> {
    // What is shipped is for one who asks; several have their calls combined where the data is.
    const elsewhere = origin?.others === undefined ? this.#onlyOther(parts) : undefined;
    if (elsewhere === undefined) return this.coordinator.commit(parts, undefined, origin);
    return this.#ship(elsewhere, parts, time, origin);
  }

  *#ship(to: NodeId, parts: Parts, time: TimeLeft, origin?: Origin): Routine<Outcome> {
    const executedIn = this.view.current.configurationId;
    const sessions = this.#sessions;
    const outcome = yield* submitOnce(sessions, to, { parts, executedIn, origin }, time);
    if (outcome instanceof SubmitInDoubt) sessions.settled(outcome.message);
    return outcome;
  }

  /** Commits what a client has submitted, and wants to hear of within its time. */
  commitFor(origin: Origin, parts: Parts, leftMs: number, end: (outcome: Outcome) => void): void {
    const { driver } = this;
    const time = new Deadline(driver.endpoint.clock, leftMs);
    // Locks are not asked for as long as a client may wait; what another node says is waited for.
    const isHere = this.#onlyOther(parts) === undefined;
    const timeoutMs = isHere ? Math.min(leftMs, LOCK_TIMEOUT_MS) : leftMs;
    this.submitted++;
    const ended = (outcome: Outcome): void => {
      this.submitted--;
      end(outcome);
    };
    driver.run(this.commit(parts, time, origin), timeoutMs, ended, rethrow);
  }

  #onlyOther(parts: Parts): NodeId | undefined {
    if (parts.size !== 1) return undefined;
    const [only] = parts.keys();
    return only === this.self ? undefined : only;
  }
}
