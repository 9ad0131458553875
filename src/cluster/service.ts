/**
 * What one thread of a node does for others: participant, backup and coordinator in one place, and
 * the messages that go to each. The thread is the NIC worker, or the host: the table of places says
 * which kinds come here (protocols/places.ts).
 */

import type { Executor } from "../engine/executor.ts";
import {
  DESCRIBE_KIND,
  type Endpoint,
  FIRST_MESSAGE_KIND,
  type Incoming,
  type NodeId,
} from "../fabric/fabric.ts";
import { serveVerb } from "../fabric/verbs.ts";
import { serveAbort } from "../protocols/abort.ts";
import { Backup } from "../protocols/backup.ts";
import { serveCommit } from "../protocols/commit.ts";
import { ABORTED, Coordinator, type Outcome, type Parts } from "../protocols/coordinator.ts";
import { Driver } from "../protocols/driver.ts";
import * as kinds from "../protocols/kinds.ts";
import type { Routine } from "../protocols/message.ts";
import { COORDINATORS_PER_NODE, requireCoordinator } from "../protocols/names.ts";
import { Participant } from "../protocols/participant.ts";
import { serveRead } from "../protocols/read.ts";
import { serveReadLock } from "../protocols/read-lock.ts";
import { serveScan } from "../protocols/scan.ts";
import { rethrow } from "../protocols/truncate.ts";
import { serveValidate } from "../protocols/validate.ts";
import { assert } from "../runtime/assert.ts";
import { SituError } from "../runtime/errors.ts";
import { DRAIN_MS, DRAIN_TRUNCATE_MS, LOCK_TIMEOUT_MS } from "../runtime/limits.ts";
import type { Placement } from "../tables/partitions.ts";
import type { BackupLog, ServedTables } from "../tables/served/contract.ts";
import { nextWrite, partitionAt } from "../tables/served/requests.ts";
import { type Description, encodeDescription } from "./describe.ts";
import { Outcomes } from "./outcomes.ts";
import { decodeNumbered, decodeParts, encodeOutcome, type Numbered, Submit } from "./submit.ts";

export interface ServiceOptions {
  readonly endpoint: Endpoint;
  readonly executor: Executor;
  readonly tables: ServedTables;
  readonly placement: Placement;
  /** If this thread is the one that keeps the node's copies. */
  readonly log: BackupLog | undefined;
  readonly description: Description;
  /** 0 for the NIC worker, 1 for the host. */
  readonly place: number;
  /** Above all sequences that an earlier life of this node has used. */
  readonly firstSequence: number;
  /** Which kinds of messages to the own node this thread serves; the others go over the endpoint. */
  readonly isServedHere?: (kind: number) => boolean;
}

/** What else a thread serves, if it does: procedures, scans. False: not this one. */
export type More = (incoming: Incoming) => boolean;

/** Kinds of messages that begin something, at a coordinator or a participant. */
const BEGINNINGS: ReadonlySet<number> = new Set([kinds.SUBMIT, kinds.LOCK, kinds.READ_LOCK]);
/** How often a node that is being closed looks whether it may. */
const DRAIN_LOOK_MS = 5;

export class NodeService {
  readonly self: NodeId;
  readonly driver: Driver;
  readonly participant: Participant;
  readonly backup: Backup | undefined;
  readonly coordinator: Coordinator;
  readonly outcomes = new Outcomes<Outcome>();
  readonly #options: ServiceOptions;
  readonly #more: More;
  #isDraining = false;
  #shipped = 0;
  /** Numbers of shipped transactions that have not ended, in order. */
  readonly #shipping = new Set<number>();

  constructor(options: ServiceOptions, more: More = () => false) {
    const { endpoint, executor, tables, placement, log, place, firstSequence } = options;
    this.#options = options;
    this.#more = more;
    this.self = endpoint.self;
    this.driver = new Driver(endpoint, (incoming) => this.serve(incoming), options.isServedHere);
    this.participant = new Participant(executor, tables, placement, this.self, endpoint.clock);
    this.backup = log && new Backup(executor, tables, log, endpoint.clock);
    const coordinator = this.self * COORDINATORS_PER_NODE + place;
    this.coordinator = new Coordinator(this.driver, placement, coordinator, firstSequence);
  }

  /** Refuses to begin anything, and waits for what is under way: before the endpoint closes. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    const { clock } = this.#options.endpoint;
    const deadlineMs = clock.nowMs() + DRAIN_MS;
    const turn = (): Promise<void> =>
      new Promise((resolve) => void clock.after(DRAIN_LOOK_MS, resolve));
    while (this.coordinator.busy > 0 || this.participant.prepared > 0) {
      if (clock.nowMs() >= deadlineMs) return;
      await turn();
    }
    // So that backups need not wait for the next life of this node; others may be closed already.
    this.coordinator.flush();
    const patienceMs = clock.nowMs() + DRAIN_TRUNCATE_MS;
    while (this.coordinator.open > 0 && clock.nowMs() < patienceMs) await turn();
  }

  serve(incoming: Incoming): void {
    if (this.#isDraining && BEGINNINGS.has(incoming.kind)) {
      throw new SituError("SITU_OVERLOADED", `node ${this.self} is being closed`);
    }
    // A fabric serves verbs itself; only those of this node to itself come here.
    if (incoming.kind < FIRST_MESSAGE_KIND) {
      const { memory } = this.#options.executor;
      serveVerb(memory, incoming.kind, incoming.body, incoming.reply());
      return;
    }
    switch (incoming.kind) {
      case kinds.READ:
        serveRead(this.participant, incoming);
        return;
      case kinds.SCAN:
        serveScan(this.participant, incoming);
        return;
      case kinds.READ_LOCK:
        requireCoordinator(incoming);
        serveReadLock(this.participant, incoming);
        return;
      case kinds.LOCK:
        requireCoordinator(incoming);
        this.backup?.refuseIfBehind();
        this.participant.lock(incoming);
        return;
      case kinds.VALIDATE:
        serveValidate(this.participant, incoming);
        return;
      case kinds.LOG:
        requireCoordinator(incoming);
        this.#backup.log(incoming, this.#options.endpoint.epoch);
        return;
      case kinds.COMMIT:
        requireCoordinator(incoming);
        serveCommit(this.participant, incoming);
        return;
      case kinds.ABORT:
        requireCoordinator(incoming);
        serveAbort(this.participant, incoming);
        return;
      case kinds.TRUNCATE:
        requireCoordinator(incoming);
        this.#backup.truncate(incoming);
        return;
      case kinds.SUBMIT:
        this.#submit(incoming);
        return;
      case kinds.OPEN_TABLE: {
        const place = this.#options.tables.open(incoming.body.text());
        incoming.reply().text(place);
        return;
      }
      case DESCRIBE_KIND:
        encodeDescription(incoming.reply(), this.#options.description);
        return;
      default:
        if (this.#more(incoming)) return;
        throw new SituError("SITU_PROTOCOL", `there is no message of kind ${incoming.kind}`);
    }
  }

  /** Nothing is begun any more, and what was prepared is let go; the endpoint is closed already. */
  close(): void {
    this.driver.close();
    this.backup?.close();
    this.participant.releaseAll();
  }

  get #backup(): Backup {
    assert(this.backup !== undefined, "records go to the thread that keeps them");
    return this.backup;
  }

  /** Fails unless the request was meant for this life of the node: outcomes are not older. */
  checkInstance({ instance }: Numbered): void {
    if (instance === this.#options.description.instance) return;
    throw new SituError(
      "SITU_UNKNOWN_OUTCOME",
      `node ${this.self} was restarted meanwhile, and does not know whether the transaction was committed`,
    );
  }

  #submit(incoming: Incoming): void {
    const { body } = incoming;
    const numbered = decodeNumbered(body);
    this.checkInstance(numbered);
    const { session, number, low } = numbered;
    const nowMs = this.#options.endpoint.clock.nowMs();
    const { attempt, isNew } = this.outcomes.attempt(
      `${incoming.from.node} ${session}`,
      number,
      low,
      nowMs,
    );
    if (isNew) {
      let parts: Parts;
      try {
        parts = decodeParts(body);
        this.#checkParts(parts);
      } catch (error) {
        if (!(error instanceof SituError)) throw error;
        attempt.end({ kind: "refused", error });
        throw error;
      }
      const end = (outcome: Outcome): void => attempt.end(outcome);
      this.driver.run(this.commit(parts), LOCK_TIMEOUT_MS, end, rethrow);
    }
    const ticket = incoming.defer();
    attempt.hear((outcome) => ticket.reply((out) => encodeOutcome(out, outcome)));
  }

  /** A client may know another configuration, or none: what it names must be there. */
  #checkParts(parts: Parts): void {
    const { description, placement } = this.#options;
    const { nodes } = description.configuration;
    for (const [node, { writes }] of parts) {
      let isThere = nodes.some(({ id }) => id === node);
      for (let at = 0; isThere && at < writes.length; at = nextWrite(writes, at)) {
        isThere = placement.primaryOf(partitionAt(writes, at)) === node;
      }
      if (isThere) continue;
      throw new SituError(
        "SITU_STALE_CONFIGURATION",
        `a client submits to node ${node} what is not there: it has another configuration`,
      );
    }
  }

  /** Commits a transaction, here or, if all of its data lies on one other node, there. */
  commit(parts: Parts): Routine<Outcome> {
    if (parts.size === 1) {
      const [only] = parts.keys();
      if (only !== this.self) return this.#ship(only, parts);
    }
    return this.coordinator.commit(parts);
  }

  *#ship(to: NodeId, parts: Parts): Routine<Outcome> {
    const number = this.#shipped++;
    this.#shipping.add(number);
    try {
      const { session, instances } = this.#ends();
      const instance = instances(to);
      if (instance === undefined) {
        // Not met yet: then the longer way.
        return yield* this.coordinator.commit(parts);
      }
      const [low] = this.#shipping;
      const message = new Submit(to, { instance, session, number, low }, parts);
      yield [message];
      if (message.error === undefined) return message.outcome;
      if (message.error.code === "SITU_UNKNOWN_OUTCOME") {
        // It was started anew. What was sent only once, to a life that had ended, was not done.
        this.instances.delete(to);
        if (message.attempts === 1) return ABORTED;
      }
      const isAborted = message.error.code === "SITU_STALE_CONFIGURATION";
      return { kind: isAborted ? "refused" : "unknown", error: message.error };
    } finally {
      this.#shipping.delete(number);
    }
  }

  /** For shipping: who this end is, and who the others are. */
  #ends(): { session: string; instances: (node: NodeId) => string | undefined } {
    const { description, place } = this.#options;
    return {
      session: `node ${this.self} ${place} ${description.instance}`,
      instances: (node) => this.instances.get(node),
    };
  }

  /** The instances of other nodes, as far as they are known. */
  readonly instances = new Map<NodeId, string>();
}
