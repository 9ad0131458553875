/**
 * Call: has a procedure run at a node, next to the data, once (outcomes.ts). The node that gets the
 * message may pass it on to the one that has the data the procedure names.
 *
 *   message  as in submit.ts: instance, client, number, low; the procedure's name, its arguments, how
 *            long it may take, and whether it was passed on already
 *   reply    1 and what it returned; or 0 and its error: a code, and the text
 */

import type { NodeId } from "../fabric/fabric.ts";
import type { Reader, Writer } from "../fabric/wire.ts";
import { CALL } from "../protocols/kinds.ts";
import { Message } from "../protocols/message.ts";
import { SituError, type SituErrorCode } from "../runtime/errors.ts";
import { decodeNumbered, encodeNumbered, type Numbered } from "./submit.ts";

/** How a call ended. */
export type Returned =
  | { readonly isDone: true; readonly value: unknown }
  | { readonly isDone: false; readonly error: SituError };

export interface Called {
  readonly numbered: Numbered;
  readonly procedure: string;
  readonly values: readonly unknown[];
  readonly timeoutMs: number;
  readonly isPassedOn: boolean;
}

export class Call extends Message {
  readonly kind = CALL;
  returned: Returned | undefined;
  readonly #called: Called;

  constructor(to: NodeId, called: Called) {
    super(to);
    this.#called = called;
  }

  encode(out: Writer): void {
    const { numbered, procedure, values, timeoutMs, isPassedOn } = this.#called;
    encodeNumbered(out, numbered);
    out.text(procedure);
    out.wide(timeoutMs);
    out.word(isPassedOn ? 1 : 0);
    out.value(values);
  }

  protected decode(reply: Reader): void {
    this.returned = decodeReturned(reply);
  }
}

export function decodeCalled(body: Reader): Called {
  const numbered = decodeNumbered(body);
  const procedure = body.text();
  const timeoutMs = body.wide();
  const isPassedOn = body.word() === 1;
  const values = body.value();
  if (!Array.isArray(values)) throw new SituError("SITU_PROTOCOL", "arguments are a list");
  return { numbered, procedure, timeoutMs, isPassedOn, values };
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
