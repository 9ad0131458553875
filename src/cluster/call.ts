/**
 * Call: has a procedure run at a node, next to the data, once (outcomes.ts). The node that gets the
 * message may pass it on to the one that has the data the procedure names.
 *
 *   message  session and number; the procedure's name, how much time is left, whether it was passed
 *            on already, and from a node that passes it on the origin; the arguments
 *   reply    1 and what it returned; or 0 and its error: a code, and the text
 */

import type { NodeId } from "../fabric/fabric.ts";
import type { Reader, Writer } from "../fabric/wire.ts";
import { CALL, CALL_OUTCOME } from "../protocols/kinds.ts";
import { Message, type Routine } from "../protocols/message.ts";
import { decodeOrigin, encodeOrigin, type Origin } from "../protocols/origin.ts";
import { SituError, type SituErrorCode } from "../runtime/errors.ts";
import { type Asked, encodeAsked } from "./outcome.ts";
import {
  decodeNumbered,
  encodeNumbered,
  isForgotten,
  leftMsOf,
  type Numbered,
  NumberedMessage,
  type Sessions,
  type TimeLeft,
  untold,
} from "./session.ts";

/** How a call ended. */
export type Returned =
  | { readonly isDone: true; readonly value: unknown }
  | { readonly isDone: false; readonly error: SituError };

/** What is to be called. */
export interface Called {
  readonly procedure: string;
  readonly values: readonly unknown[];
  readonly isPassedOn: boolean;
  /** For whom, if another node passes it on. */
  readonly origin?: Origin | undefined;
}

export class Call extends NumberedMessage {
  readonly kind = CALL;
  returned: Returned | undefined;
  readonly numbered: Numbered;
  readonly #called: Called;
  readonly #time: TimeLeft;

  constructor(to: NodeId, numbered: Numbered, called: Called, time: TimeLeft) {
    super(to);
    this.numbered = numbered;
    this.#called = called;
    this.#time = time;
  }

  protected encodeBody(out: Writer): void {
    const { procedure, values, isPassedOn, origin } = this.#called;
    encodeNumbered(out, this.numbered);
    out.text(procedure);
    out.wide(this.#time.leftMs());
    out.word(isPassedOn ? 1 : 0);
    encodeOrigin(out, origin);
    out.value(values);
  }

  protected decode(reply: Reader): void {
    this.returned = decodeReturned(reply);
  }
}

/** How a call ended that may have been done, as long as somebody may still find out. */
export class CallInDoubt {
  readonly isDone = false;
  readonly message: Call;
  readonly error: SituError;

  constructor(message: Call, { procedure }: Called) {
    this.message = message;
    this.error = untold(message, `procedure ${procedure}`);
  }
}

/**
 * Calls a procedure in a session, or in another one if the node has forgotten it and has done nothing. Its
 * number is kept if it is a CallInDoubt.
 */
export function* callOnce(
  sessions: Sessions,
  node: NodeId,
  called: Called,
  time: TimeLeft,
): Routine<Returned> {
  for (;;) {
    let message: Call;
    try {
      message = yield* sessions.send(node, (numbered) => new Call(node, numbered, called, time));
    } catch (error) {
      // There is no session, so nothing was sent.
      if (!(error instanceof SituError)) throw error;
      return { isDone: false, error };
    }
    if (message.returned !== undefined) return message.returned;
    if (isForgotten(message.error) && !message.isInDoubt && time.leftMs() > 0) continue;
    if (message.isInDoubt) return new CallInDoubt(message, called);
    return { isDone: false, error: message.error! };
  }
}

/**
 * What became of a call whose node has left, at one that it may have been passed on to. As long as it runs there,
 * the node says "not yet" (SITU_OVERLOADED).
 *
 *   message  as of OUTCOME (outcome.ts)
 *   reply    0 if it is not known; else 1, and as of CALL
 */
export class CallOutcomeOf extends Message {
  readonly kind = CALL_OUTCOME;
  returned: Returned | undefined;
  readonly #asked: Asked;

  constructor(to: NodeId, asked: Asked) {
    super(to);
    this.#asked = asked;
  }

  encode(out: Writer): void {
    encodeAsked(out, this.#asked);
  }

  protected decode(reply: Reader): void {
    if (reply.word() === 1) this.returned = decodeReturned(reply);
  }
}

export function decodeCalled(body: Reader): {
  readonly numbered: Numbered;
  readonly called: Called;
  readonly leftMs: number;
} {
  const numbered = decodeNumbered(body);
  const procedure = body.text();
  const leftMs = leftMsOf(body);
  const isPassedOn = body.word() === 1;
  const origin = decodeOrigin(body);
  const values = body.value();
  if (!Array.isArray(values)) throw new SituError("SITU_PROTOCOL", "arguments are a list");
  return { numbered, leftMs, called: { procedure, isPassedOn, origin, values } };
}

export function encodeReturned(out: Writer, returned: Returned): void {
  out.word(returned.isDone ? 1 : 0);
  if (returned.isDone) {
    out.value(returned.value);
  } else {
    out.text(returned.error.code);
    out.text(returned.error.message);
  }
}

function decodeReturned(reply: Reader): Returned {
  if (reply.word() === 1) return { isDone: true, value: reply.value() };
  const code = reply.text() as SituErrorCode;
  return { isDone: false, error: new SituError(code, reply.text()) };
}
