/**
 * Verbs as a NIC's DMA does them: cache line by cache line, at different instants (FaRM §3.5). Between
 * two lines anything may happen at the node, so a plain read is torn. A consistent read is the
 * seqlock of the object's header over such copies, and begins again when it was disturbed.
 *
 * Each function is a coroutine; where it yields, time passes. Every line goes through `serveVerb`, so
 * that bounds and errors are those of the other fabrics.
 */

import { type Admitted, admitGuarded } from "../../src/fabric/guarded-verbs.ts";
import {
  GUARDED,
  isWriting,
  READ,
  READ_OBJECT,
  serveVerb,
  type VerbMemory,
  WRITE,
} from "../../src/fabric/verbs.ts";
import { Reader, Writer } from "../../src/fabric/wire.ts";
import { HEADER_WORDS, INSTALLING, LOCK, lockMode, VERSION_HIGH } from "../../src/memory/object.ts";
import { MAX_VERB_WORDS } from "../../src/runtime/limits.ts";

const LINE_WORDS = 16;
/** As in verbs.ts: then the answer is "locked". */
const COPY_ATTEMPTS = 16;

export type Steps = Generator<void, void>;

export function* serveInLines(memory: VerbMemory, kind: number, body: Reader, out: Writer): Steps {
  const verb = kind & ~GUARDED;
  if (verb === kind || (verb !== READ && verb !== WRITE)) {
    yield* serveAdmitted(memory, kind, body, out, undefined);
    return;
  }
  const admitted = admitGuarded(memory, isWriting(verb), verb, body, out);
  if (admitted === undefined) return;
  try {
    yield* serveAdmitted(memory, verb, body, out, admitted);
  } catch (error) {
    admitted.failed();
    throw error;
  }
  admitted.done(out, 0);
}

function* serveAdmitted(
  memory: VerbMemory,
  kind: number,
  body: Reader,
  out: Writer,
  admitted: Admitted | undefined,
): Steps {
  if (kind !== READ && kind !== READ_OBJECT && kind !== WRITE) {
    serveVerb(memory, kind, body, out);
    return;
  }
  const start = body.at;
  const regionId = body.word();
  const word = body.word();
  const count = body.count(MAX_VERB_WORDS);
  if (kind !== READ_OBJECT && partOf(word, count) === count) {
    body.at = start;
    serveVerb(memory, kind, body, out);
    return;
  }
  const line = new Line(memory, regionId, admitted);
  // What does not fit the region is refused before the first line is done.
  line.check(word, count + (kind === READ_OBJECT ? HEADER_WORDS : 0));
  if (kind === READ) yield* line.read(word, count, out);
  else if (kind === WRITE) yield* line.write(word, body, count);
  else yield* readObject(line, word, count, out);
}

function* readObject(line: Line, word: number, count: number, out: Writer): Steps {
  const header = new Writer();
  const start = out.at;
  for (let attempt = 0; attempt < COPY_ATTEMPTS; attempt++) {
    if (attempt > 0) yield;
    out.at = start;
    line.readNow(word, HEADER_WORDS, header);
    const [lock, high, low, incarnation] = header.views.i32;
    if (lockMode(lock) === INSTALLING) continue;
    for (const each of [0, lock, high, low, incarnation, 0]) out.word(each);
    yield* line.read(word + HEADER_WORDS, count, out);
    line.readNow(word, HEADER_WORDS, header);
    const { i32 } = header.views;
    if (lockMode(i32[LOCK]) === INSTALLING) continue;
    if (i32[VERSION_HIGH] === high && i32[VERSION_HIGH + 1] === low) return;
  }
  out.at = start;
  for (const each of [1, 0, 0, 0, 0, 0]) out.word(each);
}

/** Accesses to one region that stay within a line each. */
class Line {
  readonly #memory: VerbMemory;
  readonly #regionId: number;
  /** The pair of a guarded verb may be taken over between two lines. */
  readonly #admitted: Admitted | undefined;
  readonly #request = new Writer();
  readonly #reader = new Reader(this.#request.views);

  constructor(memory: VerbMemory, regionId: number, admitted: Admitted | undefined) {
    this.#memory = memory;
    this.#regionId = regionId;
    this.#admitted = admitted;
  }

  check(word: number, count: number): void {
    this.#serve(READ, word, 1, undefined, 0, this.#request);
    this.#serve(READ, word + count, 0, undefined, 0, this.#request);
  }

  /** At one instant, into an empty writer. */
  readNow(word: number, count: number, out: Writer): void {
    out.clear();
    this.#serve(READ, word, count, undefined, 0, out);
  }

  *read(word: number, count: number, out: Writer): Steps {
    for (let done = 0; done < count; ) {
      if (done > 0) yield;
      const part = partOf(word + done, count - done);
      this.#serve(READ, word + done, part, undefined, 0, out);
      done += part;
    }
  }

  /** In increasing order of addresses (FaRM §2). */
  *write(word: number, body: Reader, count: number): Steps {
    const from = body.skip(count);
    for (let done = 0; done < count; ) {
      if (done > 0) yield;
      const part = partOf(word + done, count - done);
      this.#serve(WRITE, word + done, part, body.views.i32, from + done, this.#request);
      done += part;
    }
  }

  #serve(
    kind: number,
    word: number,
    count: number,
    words: Int32Array | undefined,
    from: number,
    out: Writer,
  ): void {
    const request = this.#request;
    this.#admitted?.check();
    request.clear();
    request.word(this.#regionId);
    request.word(word);
    request.word(count);
    if (words !== undefined) request.words(words, from, count);
    this.#reader.reset(request.views, 0, request.at);
    serveVerb(this.#memory, kind, this.#reader, out);
  }
}

/** Words up to the end of the line that `word` is in. */
function partOf(word: number, left: number): number {
  return Math.min(left, LINE_WORDS - (word % LINE_WORDS));
}
