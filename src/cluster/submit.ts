/**
 * Submit: a client hands what it has executed to the node that shall coordinate the commit, under
 * a number of its own (outcomes.ts). Clients never coordinate: one that vanishes then leaves
 * nothing behind, and the coordinators are the members of the configuration. The node is the primary
 * of something that is written, so that a transaction whose data lies on one node takes place there
 * entirely (FaRM §3.4: single machine transactions are shipped to their primary).
 *
 *   message  the node's instance, the client, its number and low; from a node that ships what
 *            another has submitted or called: the origin (protocols/origin.ts); nodes, and for each:
 *            its number, and the part of the transaction there (protocols/writes.ts)
 *   reply    an outcome; if it is not "committed" or "aborted", the error
 */

import { type Incoming, type NodeId, nodeIdOf } from "../fabric/fabric.ts";
import type { Reader, Writer } from "../fabric/wire.ts";
import { ABORTED, COMMITTED, type Outcome, type Parts } from "../protocols/coordinator.ts";
import { rethrow } from "../protocols/driver.ts";
import { SUBMIT } from "../protocols/kinds.ts";
import { Message } from "../protocols/message.ts";
import { decodeOrigin, encodeOrigin, type Origin } from "../protocols/origin.ts";
import { Part } from "../protocols/writes.ts";
import { SituError, type SituErrorCode } from "../runtime/errors.ts";
import { LOCK_TIMEOUT_MS, MAX_NODES } from "../runtime/limits.ts";
import { nextWrite, partitionAt } from "../tables/served/requests.ts";
import type { NodeService } from "./service.ts";
import type { View } from "./view.ts";

const KINDS = ["committed", "aborted", "refused", "unknown"] as const;

/** Under which number a client has something done. */
export interface Numbered {
  readonly instance: string;
  /** Names the one who asks, for as long as it lives. */
  readonly client: string;
  readonly number: number;
  /** The client has heard of all numbers below this one. */
  readonly low: number;
}

export function encodeNumbered(out: Writer, numbered: Numbered): void {
  out.text(numbered.instance);
  out.text(numbered.client);
  out.wide(numbered.number);
  out.wide(numbered.low);
}

export function decodeNumbered(body: Reader): Numbered {
  return { instance: body.text(), client: body.text(), number: body.wide(), low: body.wide() };
}

export class Submit extends Message {
  readonly kind = SUBMIT;
  outcome: Outcome = ABORTED;
  readonly #numbered: Numbered;
  readonly #parts: Parts;
  readonly #origin: Origin | undefined;

  constructor(to: NodeId, numbered: Numbered, parts: Parts, origin?: Origin) {
    super(to);
    this.#numbered = numbered;
    this.#parts = parts;
    this.#origin = origin;
  }

  encode(out: Writer): void {
    encodeNumbered(out, this.#numbered);
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

/** At the node that coordinates: commits what was submitted, once, and replies with the outcome. */
export function serveSubmit(service: NodeService, incoming: Incoming): void {
  const { body } = incoming;
  const numbered = decodeNumbered(body);
  service.checkInstance(numbered);
  const { client, number, low } = numbered;
  const { attempt, isNew } = service.outcomes.attempt(
    `${incoming.from.node} ${client}`,
    number,
    low,
    service.driver.endpoint.clock.nowMs(),
  );
  if (isNew) {
    let parts: Parts;
    let origin: Origin | undefined;
    try {
      // Only a node speaks for others.
      const told = decodeOrigin(body);
      origin = (incoming.from.node >= 0 && told) || { session: client, number };
      parts = decodeParts(body);
      checkParts(parts, service.view.current);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      attempt.end({ kind: "refused", error });
      throw error;
    }
    const end = (outcome: Outcome): void => attempt.end(outcome);
    service.driver.run(service.commit(parts, origin), LOCK_TIMEOUT_MS, end, rethrow);
  }
  const ticket = incoming.defer();
  attempt.hear((outcome) => ticket.reply((out) => encodeOutcome(out, outcome)));
}

/** A client may know another configuration, or none: what it names must be there. */
function checkParts(parts: Parts, { nodes, placement }: View): void {
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
