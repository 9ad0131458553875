/**
 * The decoder under inputs of all kinds (inputs.ts). For each one it must hold that
 *
 * - decoding at once and in pieces give what the model gives (model.ts), request for request,
 *   error for error, byte for byte of what is left over;
 * - nothing throws, and there are no more steps than bytes and pieces;
 * - bytes before and behind a chunk are neither used nor changed: they differ between the two runs;
 * - what was given out stays as it is until the next `push`;
 * - a chunk may be overwritten as soon as `next` has returned false;
 * - what is held back is bounded by the limits, the decoder's memory by twice that and a chunk;
 * - after an error nothing more is given, whatever comes.
 */

import { Decoder } from "../../../src/gateways/resp/decoder.ts";
import type { Random } from "../../../src/runtime/random.ts";
import { type Input, makeInput } from "./inputs.ts";
import { type Decoded, decodeAll, TOO_LONG } from "./model.ts";

export interface FuzzReport {
  readonly inputs: number;
  readonly bytes: number;
  readonly requests: number;
  readonly errors: number;
}

class Failure extends Error {}

function expect(holds: boolean, what: string): void {
  if (!holds) throw new Failure(what);
}

/** Bytes that would change the meaning of a chunk if the decoder looked at them. */
const GUARDS = [Buffer.from("1\r\n$1\r\n\n\"'0"), Buffer.from("\n9\r\n*9\r\n'\"x")];
const MEMORY_FLOOR = 1_024;

/** One decoder, fed with pieces in chunks that have guards around them. */
class Run {
  readonly #input: Input;
  readonly #guard: Buffer;
  readonly #decoder: Decoder;
  readonly #requests: (readonly string[])[] = [];
  /** Arguments since the last push: where they are, and what they were. */
  readonly #given: { bytes: Buffer; start: number; text: string }[] = [];
  #room = Buffer.alloc(0);
  #steps = 0;
  #pieces = 0;

  constructor(input: Input, guard: Buffer) {
    this.#input = input;
    this.#guard = guard;
    this.#decoder = new Decoder(input.limits);
    this.#decoder.authenticated = input.authenticated;
  }

  /** All at once if `random` is missing. `lazy` lets chunks pile up now and then. */
  decode(random?: Random): Decoded {
    const { bytes } = this.#input;
    const size =
      random === undefined ? bytes.length : 1 + random.below(pieceSize(random, bytes.length));
    const lazy = random !== undefined && random.below(4) === 0;
    for (let at = 0; at < bytes.length; ) {
      const length = random === undefined || size === 1 ? size : 1 + random.below(size);
      this.#feed(bytes.subarray(at, at + length), lazy && random.below(2) === 0 ? 1 : Infinity);
      at += length;
    }
    this.#take(Number.POSITIVE_INFINITY);
    const rest = this.#decoder.buffered;
    const { error } = this.#decoder;
    if (error !== undefined) this.#afterError(error);
    return { requests: this.#requests, error, rest };
  }

  #feed(bytes: Buffer, most: number): void {
    const guard = this.#guard;
    const start = guard.length;
    const end = start + bytes.length;
    const whole = this.#room.length < end + start ? Buffer.alloc(2 * end) : this.#room;
    guard.copy(whole, 0);
    bytes.copy(whole, start);
    guard.copy(whole, end);
    this.#given.length = 0;
    this.#decoder.push(whole.subarray(start, end));
    this.#pieces++;
    const isDone = this.#take(most);
    for (const { bytes: at, start: from, text } of this.#given) {
      const isSame = at.toString("latin1", from, from + text.length) === text;
      expect(isSame, "changed what it had given out");
    }
    for (let i = 0; i < start; i++) {
      const isWhole = whole[i] === guard[i] && whole[end + i] === guard[i];
      if (!isWhole) throw new Failure("changed bytes before or behind the chunk");
    }
    // Else the chunk is still the decoder's, and the next one needs memory of its own.
    this.#room = isDone ? whole : Buffer.alloc(0);
    if (!isDone) return;
    whole.fill(0x2a, 0, end + start);
    const { maxRequestBytes, maxInlineBytes } = this.#input.limits;
    const bound = maxRequestBytes + 2 * maxInlineBytes + 8;
    expect(this.#decoder.buffered <= bound, "holds too much back");
  }

  /** Takes so many requests; true if there are no more. */
  #take(most: number): boolean {
    const decoder = this.#decoder;
    for (let i = 0; i < most; i++) {
      this.#steps++;
      expect(this.#steps <= this.#input.bytes.length + 2 * this.#pieces + 2, "too many steps");
      const memory = Math.max(MEMORY_FLOOR, 2 * this.#input.bytes.length);
      expect(decoder.ownBytes <= memory, "takes too much memory");
      if (!decoder.next()) return true;
      expect(decoder.error === undefined, "gives a request with an error");
      this.#requests.push(decoder.isTooLong ? TOO_LONG : this.#copy());
    }
    return false;
  }

  #copy(): string[] {
    const { bytes, count, starts, ends } = this.#decoder.request;
    expect(count > 0, "gives an empty request");
    const args: string[] = [];
    for (let i = 0; i < count; i++) {
      const inside = starts[i] >= 0 && starts[i] <= ends[i] && ends[i] <= bytes.length;
      expect(inside, "an argument lies outside of the bytes");
      const text = bytes.toString("latin1", starts[i], ends[i]);
      args.push(text);
      this.#given.push({ bytes, start: starts[i], text });
    }
    return args;
  }

  #afterError(error: string): void {
    const decoder = this.#decoder;
    decoder.push(Buffer.from("*1\r\n$4\r\nPING\r\nPING\r\n"));
    expect(!decoder.next() && !decoder.next(), "gives requests after an error");
    expect(decoder.error === error, "changes its error");
    expect(decoder.buffered === 0 && decoder.ownBytes === 0, "keeps bytes after an error");
  }
}

function pieceSize(random: Random, length: number): number {
  const kind = random.below(4);
  // Long inputs in pieces of a few bytes would take most of the time.
  const least = length > 500 ? 25 : 1;
  return least * (kind === 0 ? 1 : kind === 1 ? 4 : 40);
}

function same(a: Decoded, b: Decoded): boolean {
  return (
    a.error === b.error &&
    a.rest === b.rest &&
    a.requests.length === b.requests.length &&
    a.requests.every((request, i) => sameWords(request, b.requests[i]))
  );
}

function sameWords(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((word, i) => word === b[i]);
}

function shown(decoded: Decoded): string {
  return JSON.stringify(decoded).slice(0, 400);
}

function compare(how: string, decoded: Decoded, expected: Decoded): void {
  if (same(decoded, expected)) return;
  throw new Failure(`${how} ${shown(decoded)}, expected ${shown(expected)}`);
}

function check(input: Input): Decoded {
  const expected = decodeAll(input.bytes, input.limits, input.authenticated);
  compare("at once", new Run(input, GUARDS[0]).decode(), expected);
  compare("in pieces", new Run(input, GUARDS[1]).decode(input.random), expected);
  return expected;
}

/** Checks inputs [first, first + inputs) of a seed; throws with what it takes to see one again. */
export function fuzz(seed: number, first: number, inputs: number): FuzzReport {
  let bytes = 0;
  let requests = 0;
  let errors = 0;
  for (let index = first; index < first + inputs; index++) {
    const input = makeInput(seed, index);
    try {
      const decoded = check(input);
      bytes += input.bytes.length;
      requests += decoded.requests.length;
      if (decoded.error !== undefined) errors++;
    } catch (cause) {
      const { limits, authenticated } = makeInput(seed, index);
      const about = JSON.stringify({
        limits,
        authenticated,
        bytes: input.bytes.toString("latin1"),
      });
      const what = cause instanceof Failure ? cause.message : String(cause);
      throw new Error(`seed ${seed}, input ${index}: ${what}\n${about.slice(0, 2_000)}`, { cause });
    }
  }
  return { inputs, bytes, requests, errors };
}
