/**
 * Guarded verbs as a coroutine sends them. A verb that was lost is sent again with the same sequence number, and
 * done once all the same (fabric/guarded-verbs.ts).
 */

import type { ConfigurationId, NodeId } from "../../fabric/fabric.ts";
import {
  COMPARE_AND_SWAP_WIDE,
  FETCH_AND_ADD,
  GUARDED,
  READ,
  serveVerb,
  type VerbMemory,
  WRITE,
} from "../../fabric/verbs.ts";
import { Reader, Writer } from "../../fabric/wire.ts";
import { SituError } from "../../runtime/errors.ts";
import type { Exchange, Waiting } from "../message.ts";

/** Where a thread writes from, as the memory server knows it. */
export interface PairName {
  readonly pair: number;
  readonly incarnation: number;
  /** The number of its next writing verb at a server. */
  nextSequence(server: NodeId): number;
  /** Says why a server does not answer, if it is known better than by the fabric. */
  reasonOf?(why: SituError): SituError;
}

export abstract class GuardedVerb implements Exchange {
  readonly kind: number;
  /** The same without the flag. */
  readonly verb: number;
  readonly to: NodeId;
  readonly segment: number;
  readonly word: number;
  readonly isInsistent = false;
  error: SituError | undefined;
  waiting: Waiting | undefined;
  attempts = 0;
  configurationId: ConfigurationId | undefined;
  readonly #thread: PairName;
  readonly #pair: number;
  readonly #incarnation: number;
  readonly #sequence: number;

  constructor(kind: number, thread: PairName, to: NodeId, segment: number, word: number) {
    this.kind = kind | GUARDED;
    this.verb = kind;
    this.to = to;
    this.segment = segment;
    this.word = word;
    this.#thread = thread;
    this.#pair = thread.pair;
    this.#incarnation = thread.incarnation;
    this.#sequence = kind === READ ? 0 : thread.nextSequence(to);
  }

  encode(out: Writer): void {
    out.word(this.#pair);
    out.word(this.#incarnation);
    out.word(this.#sequence);
    out.word(this.segment);
    out.word(this.word);
    this.encodeArguments(out);
  }

  replied(reply: Reader): void {
    if (this.waiting === undefined) return;
    this.#take(reply);
    this.waiting.ended(this);
  }

  failed(why: SituError): void {
    if (this.waiting === undefined) return;
    this.error = this.#thread.reasonOf?.(why) ?? why;
    this.waiting.ended(this);
  }

  /** Does it here, for one who has the memory at hand. */
  apply(memory: VerbMemory): void {
    const out = new Writer();
    this.encode(out);
    const reply = new Writer();
    try {
      serveVerb(memory, this.kind, new Reader(out.views).reset(out.views, 0, out.at), reply);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      this.error = error;
      return;
    }
    this.#take(new Reader(reply.views).reset(reply.views, 0, reply.at));
  }

  protected abstract encodeArguments(out: Writer): void;
  protected abstract decode(reply: Reader): void;

  #take(reply: Reader): void {
    try {
      this.decode(reply);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      this.error = error;
    }
  }
}

export class ReadVerb extends GuardedVerb {
  readonly count: number;
  words: Int32Array = NOTHING;

  constructor(thread: PairName, to: NodeId, segment: number, word: number, count: number) {
    super(READ, thread, to, segment, word);
    this.count = count;
  }

  protected encodeArguments(out: Writer): void {
    out.word(this.count);
  }

  protected decode(reply: Reader): void {
    const from = reply.skip(this.count);
    this.words = reply.views.i32.slice(from, from + this.count);
  }
}

export class WriteVerb extends GuardedVerb {
  readonly words: Int32Array;

  constructor(thread: PairName, to: NodeId, segment: number, word: number, words: Int32Array) {
    super(WRITE, thread, to, segment, word);
    this.words = words;
  }

  protected encodeArguments(out: Writer): void {
    out.word(this.words.length);
    out.words(this.words, 0, this.words.length);
  }

  protected decode(): void {}
}

/** Of a header. */
export class SwapVerb extends GuardedVerb {
  readonly #expectedLow: number;
  readonly #expectedHigh: number;
  readonly #low: number;
  readonly #high: number;
  hasSwapped = false;
  foundLow = 0;
  foundHigh = 0;

  constructor(
    thread: PairName,
    to: NodeId,
    segment: number,
    word: number,
    expected: readonly [low: number, high: number],
    wanted: readonly [low: number, high: number],
  ) {
    super(COMPARE_AND_SWAP_WIDE, thread, to, segment, word);
    [this.#expectedLow, this.#expectedHigh] = expected;
    [this.#low, this.#high] = wanted;
  }

  protected encodeArguments(out: Writer): void {
    out.word(this.#expectedLow);
    out.word(this.#expectedHigh);
    out.word(this.#low);
    out.word(this.#high);
  }

  protected decode(reply: Reader): void {
    this.foundLow = reply.word();
    this.foundHigh = reply.word();
    this.hasSwapped = this.foundLow === this.#expectedLow && this.foundHigh === this.#expectedHigh;
  }
}

export class AddVerb extends GuardedVerb {
  found = 0;

  constructor(thread: PairName, to: NodeId, segment: number, word: number) {
    super(FETCH_AND_ADD, thread, to, segment, word);
  }

  protected encodeArguments(out: Writer): void {
    out.word(1);
  }

  protected decode(reply: Reader): void {
    this.found = reply.word();
  }
}

/** A thread of earlier members. */
export function superseded(): SituError {
  return new SituError(
    "SITU_STALE_CONFIGURATION",
    "the members of the memory have changed: begin again",
  );
}

const NOTHING = new Int32Array(0);
