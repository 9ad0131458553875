/**
 * What a decoder should give, written in the plainest way: all bytes at once, as a Latin-1 string,
 * with regular expressions. Shares nothing with the decoder but the limits' type.
 */

import type { DecoderLimits } from "../../../src/gateways/resp/decoder.ts";

export interface Decoded {
  /** Arguments as Latin-1 strings. */
  readonly requests: readonly (readonly string[])[];
  readonly error: string | undefined;
  /** Bytes of the request that is not complete. */
  readonly rest: number;
}

/** In the place of a request with an argument that is too long. */
export const TOO_LONG: readonly string[] = ["(too long)"];
const REDIS_BULK_BYTES = 512n * 1024n * 1024n;

/** Stops the stream; `undefined` is "more bytes are needed". */
class Stop {
  readonly text: string | undefined;

  constructor(text?: string) {
    this.text = text;
  }
}

export function encode(args: readonly string[]): string {
  return `*${args.length}\r\n${args.map((arg) => `$${arg.length}\r\n${arg}\r\n`).join("")}`;
}

function parseNumber(text: string): bigint | undefined {
  if (!/^(0|-?[1-9][0-9]*)$/.test(text)) return undefined;
  const value = BigInt(text);
  return value < -(2n ** 63n) || value >= 2n ** 63n ? undefined : value;
}

class Model {
  readonly #text: string;
  readonly #limits: DecoderLimits;
  readonly #authenticated: boolean;
  #at = 0;
  /** What is before this place is not kept. */
  #kept = 0;
  #isTooLong = false;

  constructor(text: string, limits: DecoderLimits, authenticated: boolean) {
    this.#text = text;
    this.#limits = limits;
    this.#authenticated = authenticated;
  }

  decode(): Decoded {
    const requests: (readonly string[])[] = [];
    try {
      while (this.#at < this.#text.length) {
        this.#isTooLong = false;
        const isArray = this.#text[this.#at] === "*";
        const request = isArray ? this.#array(this.#at) : splitLine(this.#line());
        if (this.#isTooLong) requests.push(TOO_LONG);
        else if (request.length > 0) requests.push(request);
        this.#kept = this.#at;
      }
    } catch (stop) {
      if (!(stop instanceof Stop)) throw stop;
      if (stop.text !== undefined) {
        return { requests, error: `ERR Protocol error: ${stop.text}`, rest: 0 };
      }
    }
    return { requests, error: undefined, rest: this.#text.length - this.#kept };
  }

  #array(start: number): string[] {
    const count = parseNumber(this.#length("mbulk").slice(1));
    if (count === undefined || count > 1_048_576n) throw new Stop("invalid multibulk length");
    if (count > 10n && !this.#authenticated) throw new Stop("unauthenticated multibulk length");
    const args: string[] = [];
    while (args.length < count) args.push(this.#argument(start));
    return args;
  }

  #argument(start: number): string {
    const { maxBulkBytes, maxRequestBytes } = this.#limits;
    const line = this.#length("bulk");
    if (line[0] !== "$") {
      throw new Stop(`expected '$', got '${(line[0] ?? " ").replace("\n", " ")}'`);
    }
    const length = parseNumber(line.slice(1));
    if (length === undefined || length < 0n || length > REDIS_BULK_BYTES) {
      throw new Stop("invalid bulk length");
    }
    const mostUnauthenticated = Math.min(16_384, maxBulkBytes);
    if (length > mostUnauthenticated && !this.#authenticated) {
      throw new Stop("unauthenticated bulk length");
    }
    const end = this.#at + Number(length);
    if (end + 2 - start > maxRequestBytes) {
      throw new Stop(`too big request, at most ${maxRequestBytes} bytes are taken`);
    }
    this.#isTooLong ||= length > maxBulkBytes;
    if (this.#isTooLong) this.#kept = Math.min(end + 2, this.#text.length);
    if (end + 2 > this.#text.length) throw new Stop();
    const argument = this.#text.slice(this.#at, end);
    this.#at = end + 2;
    return argument;
  }

  /** The line of a length, up to "\r"; whatever follows that is skipped too. */
  #length(kind: string): string {
    const { maxInlineBytes } = this.#limits;
    const end = this.#text.indexOf("\r", this.#at);
    const size = (end < 0 ? this.#text.length : end) - this.#at;
    if (size > maxInlineBytes) throw new Stop(`too big ${kind} count string`);
    if (end < 0 || end + 1 === this.#text.length) throw new Stop();
    const line = this.#text.slice(this.#at, end);
    this.#at = end + 2;
    return line;
  }

  #line(): string {
    const end = this.#text.indexOf("\n", this.#at);
    const size = (end < 0 ? this.#text.length : end) - this.#at;
    if (size > this.#limits.maxInlineBytes) throw new Stop("too big inline request");
    if (end < 0) throw new Stop();
    const line = this.#text.slice(this.#at, end).replace(/\r$/, "");
    this.#at = end + 1;
    return line;
  }
}

const DOUBLE = /"((?:\\x[0-9a-fA-F]{2}|\\.|[^"\\])*)"(?=[ \t-\r]|$)/sy;
const SINGLE = /'((?:\\'|\\(?!')|[^'\\])*)'(?=[ \t-\r]|$)/y;
const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  r: "\r",
  t: "\t",
  b: "\b",
  a: "\x07",
};

function unescapeDouble(text: string): string {
  return text.replace(/\\(?:x([0-9a-fA-F]{2})|(.))/gs, (_, hex?: string, other = "") =>
    hex === undefined ? (ESCAPES[other] ?? other) : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

function splitLine(line: string): string[] {
  const words: string[] = [];
  let at = 0;
  for (;;) {
    while (/[ \t-\r]/.test(line[at] ?? "")) at++;
    if (at === line.length) return words;
    let end = at;
    while (end < line.length && !/[ \t\r\n"']/.test(line[end])) end++;
    let word = line.slice(at, end);
    at = end;
    const quote = line[at] === '"' ? DOUBLE : line[at] === "'" ? SINGLE : undefined;
    if (quote !== undefined) {
      quote.lastIndex = at;
      const match = quote.exec(line);
      if (match === null) throw new Stop("unbalanced quotes in request");
      word += quote === DOUBLE ? unescapeDouble(match[1]) : match[1].replaceAll("\\'", "'");
      at = quote.lastIndex;
    }
    words.push(word);
  }
}

/** All that a stream of these bytes is to a decoder. */
export function decodeAll(bytes: Buffer, limits: DecoderLimits, authenticated: boolean): Decoded {
  return new Model(bytes.toString("latin1"), limits, authenticated).decode();
}
