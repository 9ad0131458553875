/**
 * Submit: a client hands what it has executed to the node that shall coordinate the commit, under
 * a number of its own (outcomes.ts). Clients never coordinate: one that vanishes then leaves
 * nothing behind, and the coordinators are the members of the configuration. The node is the primary
 * of something that is written, so that a transaction whose data lies on one node takes place there
 * entirely (FaRM §3.4: single machine transactions are shipped to their primary).
 *
 *   message  session and number; how much time is left; the configuration in which it was executed;
 *            from a node that ships what another has submitted or called: the origin
 *            (protocols/origin.ts); nodes, and for each: its number, and the part of the transaction
 *            there (protocols/writes.ts)
 *   reply    an outcome; if it is not "committed" or "aborted", the error
 *
 * What was read in one configuration is not committed in another: a node that was the primary of a row
 * then, and is a backup now, would validate it against a copy. The number of the frame does not say it, as a
 * message that was lost is sent again in whatever configuration its sender has by then.
 */

import { type ConfigurationId, type Incoming, type NodeId, nodeIdOf } from "../fabric/fabric.ts";
import type { Reader, Writer } from "../fabric/wire.ts";
import { ABORTED, COMMITTED, type Outcome, type Parts } from "../protocols/coordinator.ts";
import { SUBMIT } from "../protocols/kinds.ts";
import type { Routine } from "../protocols/message.ts";
import { decodeOrigin, encodeOrigin, type Origin } from "../protocols/origin.ts";
import { Part } from "../protocols/writes.ts";
import { SituError, type SituErrorCode, TimeoutError } from "../runtime/errors.ts";
import { MAX_NODES, MAX_SUBMITTED } from "../runtime/limits.ts";
import { nextWrite, partitionAt } from "../tables/served/requests.ts";
import { keyOf } from "./outcome.ts";
import type { NodeService } from "./service.ts";
import {
  decodeNumbered,
  encodeNumbered,
  isForgotten,
  leftMsOf,
  type Numbered,
  NumberedMessage,
  type Sessions,
  sessionOf,
  type TimeLeft,
  untold,
} from "./session.ts";
import type { View } from "./view.ts";

const KINDS = ["committed", "aborted", "refused", "unknown"] as const;

export class Submit extends NumberedMessage {
  readonly kind = SUBMIT;
  outcome: Outcome = ABORTED;
  readonly numbered: Numbered;
  readonly #parts: Parts;
  readonly #time: TimeLeft;
  readonly #origin: Origin | undefined;
  readonly #executedIn: ConfigurationId;

  constructor(
    to: NodeId,
    numbered: Numbered,
    { parts, executedIn, origin }: Submitted,
    time: TimeLeft,
  ) {
    super(to);
    this.numbered = numbered;
    this.#parts = parts;
    this.#executedIn = executedIn;
    this.#time = time;
    this.#origin = origin;
  }

  protected encodeBody(out: Writer): void {
    encodeNumbered(out, this.numbered);
    out.wide(this.#time.leftMs());
    out.word(this.#executedIn);
    encodeOrigin(out, this.#origin);
    out.word(this.#parts.size);
    for (const [node, part] of this.#parts) {
      out.word(node);
      part.encode(out);
    }
  }

  protected decode(reply: Reader): void {
    this.outcome = decodeOutcome(reply);
  }
}

/** A transaction that is to be committed. */
export interface Submitted {
  readonly parts: Parts;
  /** The configuration in which it was executed. */
  readonly executedIn: ConfigurationId;
  /** For whom, if a node ships what another has submitted or called. */
  readonly origin?: Origin | undefined;
}

/** The outcome of one that may have been committed, as long as somebody may still find out. */
export class SubmitInDoubt {
  readonly kind = "unknown";
  readonly message: Submit;
  readonly error: SituError;

  constructor(message: Submit) {
    this.message = message;
    this.error = untold(message, "the transaction");
  }
}

/** Has a node commit a transaction, within its time. Its number is kept if it is a SubmitInDoubt. */
export function* submitOnce(
  sessions: Sessions,
  to: NodeId,
  submitted: Submitted,
  time: TimeLeft,
): Routine<Outcome> {
  let message: Submit;
  try {
    message = yield* sessions.send(to, (numbered) => new Submit(to, numbered, submitted, time));
  } catch (error) {
    // There is no session, so nothing was sent.
    if (!(error instanceof SituError)) throw error;
    return { kind: "refused", error };
  }
  return submittedOutcome(message);
}

/** What became of it, as far as its message says. */
export function submittedOutcome(message: Submit): Outcome {
  if (message.error === undefined) return message.outcome;
  if (message.isInDoubt) return new SubmitInDoubt(message);
  // The node was started anew: what was read there may lie elsewhere now.
  if (isForgotten(message.error)) return ABORTED;
  return { kind: "refused", error: message.error };
}

/** At the node that coordinates: commits what was submitted, once, and replies with the outcome. */
export function serveSubmit(service: NodeService, incoming: Incoming): void {
  const { body } = incoming;
  const numbered = decodeNumbered(body);
  const session = sessionOf(incoming, numbered.session);
  const { number } = numbered;
  const { attempt, isNew } = service.outcomes.attempt(
    session,
    number,
    service.driver.endpoint.clock.nowMs(),
    service.submitted >= MAX_SUBMITTED,
  );
  if (isNew) {
    let parts: Parts;
    let origin: Origin;
    const leftMs = leftMsOf(body);
    try {
      // Whoever asked has given up, or is about to: nothing is begun.
      if (leftMs === 0) throw tooLate();
      const executedIn = body.word();
      // Only a node speaks for others.
      const told = decodeOrigin(body);
      origin = (incoming.from.node >= 0 && told) || { session, number };
      parts = decodeParts(body);
      checkParts(parts, executedIn, service.view.current);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      attempt.end({ kind: "refused", error });
      throw error;
    }
    const key = keyOf(origin);
    const isShipped = origin.session !== session;
    if (isShipped) service.shipped.add(key);
    service.commitFor(origin, parts, leftMs, (outcome) => {
      if (isShipped) service.shipped.delete(key);
      attempt.end(outcome);
    });
  }
  const ticket = incoming.defer();
  attempt.hear((outcome) => ticket.reply((out) => encodeOutcome(out, outcome)));
}

function tooLate(): TimeoutError {
  return new TimeoutError("the transaction's time was over before a node began to commit it");
}

/** A client may know another configuration, or none: what it names must be there. */
function checkParts(parts: Parts, executedIn: ConfigurationId, view: View): void {
  const { nodes, placement, configurationId } = view;
  if (executedIn !== configurationId) {
    throw new SituError(
      "SITU_STALE_CONFIGURATION",
      `a transaction of configuration ${executedIn} is submitted in ${configurationId}: nothing was begun`,
    );
  }
  for (const [node, { writes }] of parts) {
    let isThere = nodes.includes(node);
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

export function decodeParts(body: Reader): Parts {
  const parts = new Map<NodeId, Part>();
  for (let left = body.count(MAX_NODES); left > 0; left--) {
    const node = nodeIdOf(body.word());
    parts.set(node, Part.decode(body));
  }
  return parts;
}

export function encodeOutcome(out: Writer, outcome: Outcome): void {
  out.word(KINDS.indexOf(outcome.kind));
  if (outcome.kind === "committed" || outcome.kind === "aborted") return;
  out.text(outcome.error.code);
  out.text(outcome.error.message);
}

function decodeOutcome(reply: Reader): Outcome {
  const kind = KINDS[reply.count(KINDS.length - 1)];
  if (kind === "committed") return COMMITTED;
  if (kind === "aborted") return ABORTED;
  const code = reply.text() as SituErrorCode;
  return { kind, error: new SituError(code, reply.text()) };
}
