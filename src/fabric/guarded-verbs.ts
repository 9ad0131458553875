/**
 * Verbs of those who are not trusted with all memory. Each begins with three words:
 *
 *   pair         the queue pair: an execution thread of a compute server, as this memory server knows it
 *   incarnation  grows when the pair is taken over; verbs of an earlier one are refused, however late they come
 *   sequence     numbers the writing verbs of the pair at this server. A reliable connection of an RDMA NIC
 *                does each once and answers a repeated one from what it has kept; so does the guard
 *
 * A verb that is being served while its copy arrives is told from one that is done: the copy is turned away
 * with SITU_OVERLOADED, for its sender must not take it for done.
 */

import { SituError } from "../runtime/errors.ts";
import { MAX_VERB_WORDS } from "../runtime/limits.ts";
import type { Reader, Writer } from "./wire.ts";

/** What a writing verb wants to do: the words are those that it writes, or what it compares and swaps. */
export interface GuardedWrite {
  readonly kind: number;
  readonly regionId: number;
  readonly word: number;
  readonly words: Int32Array;
  /** Of `words`, from here on, so many. */
  readonly from: number;
  readonly count: number;
}

export interface Guard {
  /** Throws if the pair is another's by now. */
  check(pair: number, incarnation: number): void;
  /** The reply to a verb that was served before. Throws if it is being served. */
  replyTo(pair: number, sequence: number): Int32Array | undefined;
  /** Throws unless the pair may write so there, now. From here on the verb is being served. */
  begin(pair: number, sequence: number, write: GuardedWrite): void;
  /** It is done, and this was the reply; or it has failed, and may come again. */
  end(pair: number, sequence: number, reply: Int32Array | undefined): void;
}

const NO_REPLY = new Int32Array(0);

/** A verb that may be served; whoever serves it says when it is done. */
export class Admitted {
  readonly #guard: Guard;
  readonly #pair: number;
  readonly #incarnation: number;
  readonly #sequence: number;
  readonly #isWriting: boolean;

  constructor(
    guard: Guard,
    pair: number,
    incarnation: number,
    sequence: number,
    isWriting: boolean,
  ) {
    this.#guard = guard;
    this.#pair = pair;
    this.#incarnation = incarnation;
    this.#sequence = sequence;
    this.#isWriting = isWriting;
  }

  /** For one who serves it step by step: the pair may have been taken over since. */
  check(): void {
    this.#guard.check(this.#pair, this.#incarnation);
  }

  /** What is answered lies in `reply` from a word on. */
  done(reply: Writer, from: number): void {
    if (!this.#isWriting) return;
    const kept = reply.at === from ? NO_REPLY : reply.views.i32.slice(from, reply.at);
    this.#guard.end(this.#pair, this.#sequence, kept);
  }

  failed(): void {
    if (this.#isWriting) this.#guard.end(this.#pair, this.#sequence, undefined);
  }
}

/** Undefined if the verb was served before: the reply is written then. */
export function admitGuarded(
  memory: { readonly guard?: Guard | undefined },
  isWriting: boolean,
  kind: number,
  body: Reader,
  out: Writer,
): Admitted | undefined {
  const { guard } = memory;
  if (guard === undefined) {
    throw new SituError("SITU_UNSUPPORTED", "this memory is written by its own node only");
  }
  const pair = body.word();
  const incarnation = body.word();
  const sequence = body.word();
  guard.check(pair, incarnation);
  if (isWriting) {
    const before = guard.replyTo(pair, sequence);
    if (before !== undefined) {
      out.words(before, 0, before.length);
      return undefined;
    }
    guard.begin(pair, sequence, writeOf(kind, body));
  }
  return new Admitted(guard, pair, incarnation, sequence, isWriting);
}

const WRITE = 3;

/** Looks at what follows, and goes back to where it begins. */
function writeOf(kind: number, body: Reader): GuardedWrite {
  const start = body.at;
  const regionId = body.word();
  const word = body.word();
  const count = kind === WRITE ? body.count(MAX_VERB_WORDS) : body.left;
  const from = body.at;
  if (kind === WRITE) body.skip(count);
  body.at = start;
  return { kind, regionId, word, words: body.views.i32, from, count };
}
