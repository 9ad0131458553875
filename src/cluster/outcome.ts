/**
 * Outcome: how a transaction ended whose coordinator has left the configuration, as far as a node knows. Its
 * client, or the node that shipped it, asks all members (database/remote/doubts.ts).
 *
 *   message  1 and the origin, from a node that asks for another's; or 0, session and number
 *   reply    UNKNOWN, COMMITTED or ABORTED; for how many milliseconds the node has remembered everything; how
 *            many partitions it has remembered for less long, and for each: the partition, milliseconds
 *
 * A node answers when it has heard, in the present configuration, what all replicas of its partitions have seen,
 * and has no record of the transaction any more: until then, "not yet" (SITU_OVERLOADED, so it is asked
 * again). From then on its answer does not change, but by what it forgets: whatever a coordinator that has left has
 * sent, or sends if it still runs, is of an earlier configuration and refused (NodeService.adopt), and recovery begins
 * with what replicas have (protocols/recovery/).
 */

import type { Incoming, NodeId } from "../fabric/fabric.ts";
import type { Reader, Writer } from "../fabric/wire.ts";
import { OUTCOME } from "../protocols/kinds.ts";
import { Message } from "../protocols/message.ts";
import {
  decodeOrigin,
  encodeOrigin,
  type Origin,
  OriginReader,
  originsOf,
} from "../protocols/origin.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_PARTITIONS } from "../runtime/limits.ts";
import type { NodeService } from "./service.ts";
import { decodeNumbered, encodeNumbered, type Numbered, sessionOf } from "./session.ts";

const KINDS = ["unknown", "committed", "aborted"] as const;
export type KnownOutcome = (typeof KINDS)[number];

/** Whose outcome is asked for: a request of the asker, or one that it has passed on. */
export interface Asked {
  readonly numbered: Numbered;
  readonly origin?: Origin | undefined;
}

export function encodeAsked(out: Writer, { numbered, origin }: Asked): void {
  out.word(origin === undefined ? 0 : 1);
  if (origin === undefined) encodeNumbered(out, numbered);
  else encodeOrigin(out, origin);
}

export function decodeAsked(incoming: Incoming): Origin {
  const { body, from } = incoming;
  if (body.word() === 0) {
    const { session, number } = decodeNumbered(body);
    return { session: sessionOf(incoming, session), number };
  }
  const origin = decodeOrigin(body);
  // Only a node speaks for others.
  if (origin !== undefined && from.node >= 0) return origin;
  throw new SituError("SITU_PERMISSION", "only nodes ask for what others have submitted");
}

export class OutcomeOf extends Message {
  readonly kind = OUTCOME;
  outcome: KnownOutcome = "unknown";
  #completeMs = 0;
  readonly #regained = new Map<number, number>();
  readonly #asked: Asked;

  constructor(to: NodeId, asked: Asked) {
    super(to);
    this.#asked = asked;
  }

  encode(out: Writer): void {
    encodeAsked(out, this.#asked);
  }

  protected decode(reply: Reader): void {
    this.outcome = KINDS[reply.count(KINDS.length - 1)];
    this.#completeMs = reply.wide();
    this.#regained.clear();
    for (let left = reply.count(MAX_PARTITIONS); left > 0; left--) {
      const partition = reply.count(MAX_PARTITIONS);
      this.#regained.set(partition, reply.wide());
    }
  }

  /** For how long the node has remembered everything of a partition. */
  completeMs(partition: number): number {
    return Math.min(this.#completeMs, this.#regained.get(partition) ?? this.#completeMs);
  }
}

/** At the thread that keeps the node's records. */
export function serveOutcome(service: NodeService, incoming: Incoming): void {
  const { recovery, committed, self } = service;
  const origin = decodeAsked(incoming);
  if (recovery === undefined || committed === undefined) {
    throw new SituError("SITU_UNSUPPORTED", `node ${self} recovers nothing: its cluster is fixed`);
  }
  if (!recovery.current.hasHeardAll) throw notYet(self);
  let outcome: KnownOutcome = committed.has(origin) ? "committed" : "unknown";
  if (outcome === "unknown") {
    if (isUnderWay(service, origin)) throw notYet(self);
    const known = service.outcomes.known(origin.session, origin.number)?.kind;
    if (known === "committed" || known === "aborted") outcome = known;
  }
  const out = incoming.reply();
  out.word(KINDS.indexOf(outcome));
  out.wide(committed.completeMs);
  const regained = [...committed.regained()];
  out.word(regained.length);
  for (const [partition, completeMs] of regained) {
    out.word(partition);
    out.wide(completeMs);
  }
}

/** Whether it is coordinated here for another node, or there is a record of it. */
function isUnderWay({ shipped, participant, backup }: NodeService, origin: Origin): boolean {
  if (shipped.has(keyOf(origin))) return true;
  for (const { record } of participant.underWay.states()) if (isFor(record, origin)) return true;
  for (const { record, decision } of backup?.records() ?? []) {
    if (decision !== "aborted" && isFor(record, origin)) return true;
  }
  return false;
}

const reader = new OriginReader();

function isFor(record: Int32Array, { session, number }: Origin): boolean {
  // What was only locked as it was read has none.
  const found = record.length === 0 ? undefined : reader.of(record);
  if (found === undefined) return false;
  return originsOf(found).some((each) => each.number === number && each.session === session);
}

export function keyOf({ session, number }: Origin): string {
  return `${number} ${session}`;
}

function notYet(self: NodeId): SituError {
  return new SituError("SITU_OVERLOADED", `node ${self} does not know the outcome yet`);
}
