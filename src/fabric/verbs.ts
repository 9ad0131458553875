/**
 * The verbs: memory operations at another node that no program of that node takes part in (FaRM
 * §2). Each is a request; `apply` is what the far end does for it, and what the near end does itself
 * where it can reach the memory. A place is a region and a word, as in an Address.
 *
 * There are no per-line versions as in FaRM §3.5: those who serve a consistent read copy in software,
 * under the seqlock of the object's header. Only the simulated fabric tears plain reads.
 *
 * A *guarded* verb comes over a queue pair: it says which, of which incarnation, and which of its verbs
 * it is. The memory's guard (guarded-verbs.ts) decides whether that pair may write so there, and sees to it that a
 * verb that arrives twice is done once. So a client may write memory, which plain verbs leave to nodes.
 */

import {
  HEADER_WORDS,
  INCARNATION,
  INSTALLING,
  LOCK,
  lockMode,
  unchanged,
  VERSION_HIGH,
  VERSION_LOW,
} from "../memory/object.ts";
import { loadAcquire } from "../memory/ordering.ts";
import type { Region } from "../memory/store-memory.ts";
import { Views } from "../memory/views.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_VERB_WORDS } from "../runtime/limits.ts";
import type { Request } from "./fabric.ts";
import { admitGuarded, type Guard } from "./guarded-verbs.ts";
import { compareAndSwapWide, wideOf } from "./wide-words.ts";
import { Reader, Writer } from "./wire.ts";

export const READ = 1;
export const READ_OBJECT = 2;
export const WRITE = 3;
export const COMPARE_AND_SWAP = 4;
export const FETCH_AND_ADD = 5;
/** Of two words at once, the first of them even: an RDMA NIC's atomics are of 64 bits. */
export const COMPARE_AND_SWAP_WIDE = 6;
/** Added to the kind of a verb that a guard judges. */
export const GUARDED = 8;

/** Memory that verbs reach: segments, each an array of words. */
export interface VerbMemory {
  hasRegion(id: number): boolean;
  region(id: number): Region;
  /** Without one, guarded verbs are refused. */
  readonly guard?: Guard | undefined;
}

/** How often a copy that a writer disturbs is begun again, before the answer is "locked". */
const COPY_ATTEMPTS = 16;

/** What is told of the outcome of any verb. */
export type Ended = (verb: Verb, error: SituError | undefined) => void;

export abstract class Verb implements Request {
  abstract readonly kind: number;
  readonly regionId: number;
  readonly word: number;
  readonly #ended: Ended;

  constructor(regionId: number, word: number, ended: Ended) {
    this.regionId = regionId;
    this.word = word;
    this.#ended = ended;
  }

  encode(out: Writer): void {
    out.word(this.regionId);
    out.word(this.word);
    this.encodeArguments(out);
  }

  replied(reply: Reader): void {
    this.decode(reply);
    this.#ended(this, undefined);
  }

  failed(why: SituError): void {
    this.#ended(this, why);
  }

  /** Does it here, for one who has mapped the memory of the node. */
  apply(memory: VerbMemory): void {
    const out = new Writer();
    this.encode(out);
    const body = new Reader(out.views).reset(out.views, 0, out.at);
    const reply = new Writer();
    let error: SituError | undefined;
    try {
      serveVerb(memory, this.kind, body, reply);
      this.decode(new Reader(reply.views).reset(reply.views, 0, reply.at));
    } catch (thrown) {
      if (!(thrown instanceof SituError)) throw thrown;
      error = thrown;
    }
    this.#ended(this, error);
  }

  protected abstract encodeArguments(out: Writer): void;
  protected abstract decode(reply: Reader): void;
}

/** Words as they are: not consistent with each other. */
export class ReadWords extends Verb {
  readonly kind = READ;
  readonly count: number;
  words: Int32Array = new Int32Array(0);

  constructor(regionId: number, word: number, count: number, ended: Ended) {
    super(regionId, word, ended);
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

/** One version of an object: its header, and so many of its data words. */
export class ReadObject extends Verb {
  readonly kind = READ_OBJECT;
  readonly dataWords: number;
  /** Somebody is installing a commit: there is no data. */
  isLocked = false;
  /** The lock word, the version and the incarnation word. */
  lock = 0;
  versionHigh = 0;
  versionLow = 0;
  incarnation = 0;
  /** The data, from word 0 on. */
  data: Views | undefined;

  constructor(regionId: number, word: number, dataWords: number, ended: Ended) {
    super(regionId, word, ended);
    this.dataWords = dataWords;
  }

  protected encodeArguments(out: Writer): void {
    out.word(this.dataWords);
  }

  protected decode(reply: Reader): void {
    this.isLocked = reply.word() !== 0;
    this.lock = reply.word();
    this.versionHigh = reply.word();
    this.versionLow = reply.word();
    this.incarnation = reply.word();
    reply.word();
    if (this.isLocked) return;
    const from = reply.skip(this.dataWords);
    const copy = new ArrayBuffer(((this.dataWords + 1) >> 1) * 8);
    new Int32Array(copy).set(reply.views.i32.subarray(from, from + this.dataWords));
    this.data = new Views(copy);
  }
}

export class WriteWords extends Verb {
  readonly kind = WRITE;
  readonly words: Int32Array;

  constructor(regionId: number, word: number, words: Int32Array, ended: Ended) {
    super(regionId, word, ended);
    this.words = words;
  }

  protected encodeArguments(out: Writer): void {
    out.word(this.words.length);
    out.words(this.words, 0, this.words.length);
  }

  protected decode(): void {}
}

/** Of one word; `found` is what was there before. */
export class CompareAndSwap extends Verb {
  readonly kind = COMPARE_AND_SWAP;
  readonly expected: number;
  readonly wanted: number;
  found = 0;

  constructor(regionId: number, word: number, expected: number, wanted: number, ended: Ended) {
    super(regionId, word, ended);
    this.expected = expected;
    this.wanted = wanted;
  }

  protected encodeArguments(out: Writer): void {
    out.word(this.expected);
    out.word(this.wanted);
  }

  protected decode(reply: Reader): void {
    this.found = reply.word();
  }
}

/** Of one word; `found` is what was there before. */
export class FetchAndAdd extends Verb {
  readonly kind = FETCH_AND_ADD;
  readonly addend: number;
  found = 0;

  constructor(regionId: number, word: number, addend: number, ended: Ended) {
    super(regionId, word, ended);
    this.addend = addend;
  }

  protected encodeArguments(out: Writer): void {
    out.word(this.addend);
  }

  protected decode(reply: Reader): void {
    this.found = reply.word();
  }
}

/** Whether a verb changes memory: only nodes may send those. */
export function isWriting(kind: number): boolean {
  return (
    kind === WRITE ||
    kind === COMPARE_AND_SWAP ||
    kind === FETCH_AND_ADD ||
    kind === COMPARE_AND_SWAP_WIDE
  );
}

/** Does what a verb asks for, and writes the body of the reply. Throws a SituError for nonsense. */
export function serveVerb(memory: VerbMemory, kind: number, body: Reader, out: Writer): void {
  if ((kind & GUARDED) !== 0) {
    const verb = kind & ~GUARDED;
    if (verb < READ || verb > COMPARE_AND_SWAP_WIDE) throw noVerb(kind);
    const start = out.at;
    const admitted = admitGuarded(memory, isWriting(verb), verb, body, out);
    if (admitted === undefined) return;
    try {
      serveVerb(memory, verb, body, out);
    } catch (error) {
      admitted.failed();
      throw error;
    }
    admitted.done(out, start);
    return;
  }
  const regionId = body.word();
  const word = body.word();
  const region = regionOf(memory, regionId);
  switch (kind) {
    case READ: {
      const count = body.count(MAX_VERB_WORDS);
      checkBounds(region, word, count);
      out.words(region.i32, word, count);
      return;
    }
    case READ_OBJECT: {
      const count = body.count(MAX_VERB_WORDS);
      checkBounds(region, word, HEADER_WORDS + count);
      copyObject(region, word, count, out);
      return;
    }
    case WRITE: {
      const count = body.count(MAX_VERB_WORDS);
      checkBounds(region, word, count);
      const from = body.skip(count);
      const { i32 } = body.views;
      for (let i = 0; i < count; i++) region.i32[word + i] = i32[from + i];
      return;
    }
    case COMPARE_AND_SWAP: {
      checkBounds(region, word, 1);
      const expected = body.word();
      out.word(Atomics.compareExchange(region.i32, word, expected, body.word()));
      return;
    }
    case FETCH_AND_ADD:
      checkBounds(region, word, 1);
      out.word(Atomics.add(region.i32, word, body.word()));
      return;
    case COMPARE_AND_SWAP_WIDE: {
      checkBounds(region, word, 2);
      if ((word & 1) !== 0) throw new SituError("SITU_PROTOCOL", "wide words begin at even ones");
      const expected = wideOf(body.word(), body.word());
      const found = compareAndSwapWide(region.i64, word >> 1, expected, body.word(), body.word());
      out.word(found.low);
      out.word(found.high);
      return;
    }
    default:
      throw noVerb(kind);
  }
}

function noVerb(kind: number): SituError {
  return new SituError("SITU_PROTOCOL", `there is no verb ${kind}`);
}

/** The seqlock of object.ts, into a message. */
function copyObject(region: Region, word: number, count: number, out: Writer): void {
  const { i32 } = region;
  const start = out.at;
  for (let attempt = 0; attempt < COPY_ATTEMPTS; attempt++) {
    out.at = start;
    const lock = loadAcquire(i32, word + LOCK);
    const high = loadAcquire(i32, word + VERSION_HIGH);
    const low = loadAcquire(i32, word + VERSION_LOW);
    if (lockMode(lock) === INSTALLING) continue;
    out.word(0);
    out.word(lock);
    out.word(high);
    out.word(low);
    out.word(i32[word + INCARNATION]);
    out.word(0);
    out.words(i32, word + HEADER_WORDS, count);
    if (unchanged(i32, word, high, low)) return;
  }
  out.at = start;
  out.word(1);
  for (let i = 0; i < 5; i++) out.word(0);
}

function regionOf(memory: VerbMemory, regionId: number): Region {
  if (!memory.hasRegion(regionId)) {
    throw new SituError("SITU_PROTOCOL", `a verb asks for region ${regionId}, which is not there`);
  }
  return memory.region(regionId);
}

function checkBounds(region: Region, word: number, count: number): void {
  if (word < 0 || word + count > region.i32.length) {
    throw new SituError("SITU_PROTOCOL", `a verb asks for words that region ${region.id} has not`);
  }
}
