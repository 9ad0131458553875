/**
 * Where a transaction comes from: the session of a client and the number that the client gave it
 * there (cluster/outcomes.ts). It travels with the commit into the records of all nodes that take part.
 * Whoever completes a transaction whose coordinator is gone can so tell the client how it ended.
 *
 *   message  the session, or an empty string; if there is one, its number
 */

import { Reader, Writer } from "../fabric/wire.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_SESSION_NAME_LENGTH } from "../runtime/limits.ts";

/** Where a record has it: behind its header of two words, the name and the configuration. */
const ORIGIN_AT = 9;
/** Its name in words, a character taking up to three bytes; its length, and its number at an even word. */
const MAX_ORIGIN_END = ORIGIN_AT + 4 + Math.ceil((3 * MAX_SESSION_NAME_LENGTH) / 4);

export interface Origin {
  /** Different for all sessions of all clients. */
  readonly session: string;
  readonly number: number;
}

export function encodeOrigin(out: Writer, origin: Origin | undefined): void {
  if (origin === undefined) {
    out.text("");
    return;
  }
  out.text(origin.session);
  out.wide(origin.number);
}

export function decodeOrigin(body: Reader): Origin | undefined {
  const session = sessionNameOf(body);
  if (session === "") return undefined;
  return { session, number: numberOf(body) };
}

/** The name of a session as a message says it. */
export function sessionNameOf(body: Reader): string {
  const name = body.text();
  if (name.length <= MAX_SESSION_NAME_LENGTH) return name;
  throw new SituError(
    "SITU_PROTOCOL",
    `the name of a session has at most ${MAX_SESSION_NAME_LENGTH} characters`,
  );
}

/** The number of a transaction in its session. */
export function numberOf(body: Reader): number {
  const number = body.wide();
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new SituError("SITU_PROTOCOL", `no transaction has the number ${number}`);
}

/** Reads the origin in the head of a record (records.ts), without the rest of it. */
export class OriginReader {
  readonly #copy = new Writer();
  readonly #body = new Reader(this.#copy.views);

  of(record: Int32Array): Origin | undefined {
    const words = Math.min(record.length, MAX_ORIGIN_END);
    this.#copy.clear();
    this.#copy.words(record, 0, words);
    return decodeOrigin(this.#body.reset(this.#copy.views, ORIGIN_AT, words));
  }
}
