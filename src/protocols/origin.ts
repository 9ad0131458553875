/**
 * Where a transaction comes from: the session of a client and the number that the client gave it
 * there (cluster/outcomes.ts). It travels with the commit into the records of all nodes that take part.
 * Whoever completes a transaction whose coordinator is gone can so tell the client how it ended.
 *
 *   message  the session, or an empty string; if there is one, its number
 *
 * One transaction may carry out several calls (node/combining.ts). Then its head and its records name all of them:
 *
 *   in a head  as in a message; then how many others there are, and each of them
 */

import { Reader, Writer } from "../fabric/wire.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_COMBINED_CALLS, MAX_SESSION_NAME_LENGTH } from "../runtime/limits.ts";

/** Where a record has it: behind its header of two words, the name and the configuration. */
const ORIGIN_AT = 9;
/** Its name in words, a character taking up to three bytes; its length, and its number at an even word. */
const MAX_ORIGIN_WORDS = 4 + Math.ceil((3 * MAX_SESSION_NAME_LENGTH) / 4);
const MAX_ORIGINS_END = ORIGIN_AT + 1 + MAX_COMBINED_CALLS * MAX_ORIGIN_WORDS;

const NOBODY: readonly Origin[] = [];

export interface Origin {
  /** Different for all sessions of all clients. */
  readonly session: string;
  readonly number: number;
  /** Those whose calls the same transaction carries out. */
  readonly others?: readonly Origin[];
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

/** With all others, in the head of a transaction. */
export function encodeOrigins(out: Writer, origin: Origin | undefined): void {
  encodeOrigin(out, origin);
  const others = origin?.others ?? NOBODY;
  out.word(others.length);
  for (const other of others) encodeOrigin(out, other);
}

export function decodeOrigins(body: Reader): Origin | undefined {
  const origin = decodeOrigin(body);
  const left = body.count(MAX_COMBINED_CALLS - 1);
  if (left === 0) return origin;
  const others: Origin[] = [];
  for (let i = 0; i < left; i++) {
    const other = decodeOrigin(body);
    if (other !== undefined) others.push(other);
  }
  if (origin !== undefined && others.length === left) return { ...origin, others };
  throw new SituError("SITU_PROTOCOL", "a call that is combined with others has an origin");
}

/** Passes over what `encodeOrigins` has written, which was checked to be there. */
export function skipOrigins(body: Reader): void {
  skipOrigin(body);
  for (let left = body.count(MAX_COMBINED_CALLS - 1); left > 0; left--) skipOrigin(body);
}

function skipOrigin(body: Reader): void {
  const session = body.count(body.left * 4);
  body.skip((session + 3) >> 2);
  if (session > 0) body.wide();
}

/** How many words they take at most. */
export function originWords(origin: Origin | undefined): number {
  return MAX_ORIGIN_WORDS * (1 + (origin?.others?.length ?? 0));
}

/** All whom a transaction is for. */
export function originsOf(origin: Origin): readonly Origin[] {
  return origin.others === undefined ? [origin] : [origin, ...origin.others];
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

/** Reads the origins in the head of a record (records.ts), without the rest of it. */
export class OriginReader {
  readonly #copy = new Writer();
  readonly #body = new Reader(this.#copy.views);

  of(record: Int32Array): Origin | undefined {
    const words = Math.min(record.length, MAX_ORIGINS_END);
    this.#copy.clear();
    this.#copy.words(record, 0, words);
    return decodeOrigins(this.#body.reset(this.#copy.views, ORIGIN_AT, words));
  }
}
