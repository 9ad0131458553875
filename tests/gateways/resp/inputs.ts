/**
 * Inputs for a decoder, each from a number: requests as clients send them, the same with damage,
 * lengths that are too large or no numbers, quoted lines, and noise.
 */

import type { DecoderLimits } from "../../../src/gateways/resp/decoder.ts";
import { Random } from "../../../src/runtime/random.ts";
import { encode } from "./model.ts";

export interface Input {
  readonly bytes: Buffer;
  readonly limits: DecoderLimits;
  readonly authenticated: boolean;
  /** For the sizes of the pieces in which it comes. */
  readonly random: Random;
}

const WORDS = ["GET", "set", "PING", "mget", "ECHO", "HSET", "MULTI", "exec", "key:000000000001"];

/** Lengths at and beyond every limit, and things that are not lengths. */
const NUMBERS = [
  ..."0 1 2 3 9 10 11 15 16 17 99 100 1000 16384 16385 65535 65536 65537 1048575".split(" "),
  ..."1048576 1048577 99999999 100000000 2147483647 2147483648 4294967296".split(" "),
  ..."9007199254740993 9223372036854775807 9223372036854775808 18446744073709551617".split(" "),
  ..."-1 -0 -2 -9223372036854775808 -9223372036854775809 00 01 +1 1.5 1e3 0x10 a".split(" "),
  "",
  " 1",
  "1 ",
  "\0",
  "1\0",
  "1".repeat(21),
  "1".repeat(40),
];

const TOKENS = ["*", "$", "\r", "\n", "\r\n", '"', "'", "\\", "\\x41", "\0", " ", "\v", "*0\r\n"];

/** Mostly the small ones, so that short inputs come to them. */
const INLINE_LIMITS = [16, 64, 128, 65_536];
const BULK_LIMITS = [16, 100, 20_000, 1_048_576, 1_048_576, 1_048_576];
const REQUEST_LIMITS = [64, 256, 4_096, 8 * 1_048_576, 8 * 1_048_576, 8 * 1_048_576];

function pick<T>(random: Random, values: readonly T[]): T {
  return values[random.below(values.length)];
}

function noise(random: Random, length: number): string {
  let text = "";
  for (let i = 0; i < length; i++) text += String.fromCharCode(random.below(256));
  return text;
}

/** Bytes that mean something, in no order. */
function jumble(random: Random, length: number): string {
  let text = "";
  for (let i = 0; i < length; i++) {
    const kind = random.below(4);
    if (kind === 0) text += pick(random, TOKENS);
    else if (kind === 1) text += pick(random, NUMBERS);
    else if (kind === 2) text += pick(random, WORDS);
    else text += noise(random, 1);
  }
  return text;
}

function argument(random: Random): string {
  const kind = random.below(8);
  if (kind < 4) return pick(random, WORDS);
  if (kind < 7) return noise(random, random.below(24));
  return noise(random, 1).repeat(random.below(random.below(60) === 0 ? 20_000 : 200));
}

function request(random: Random): string {
  const count = random.below(32) === 0 ? random.below(60) : random.below(5);
  return encode(Array.from({ length: count }, () => argument(random)));
}

/** An array whose lengths may be anything. */
function oddRequest(random: Random): string {
  const count = random.below(3) === 0 ? pick(random, NUMBERS) : String(random.below(4));
  let text = `*${count}\r\n`;
  for (let i = random.below(4); i > 0; i--) {
    const data = argument(random);
    const length = random.below(3) === 0 ? pick(random, NUMBERS) : String(data.length);
    text += `$${length}\r\n${data}\r\n`;
  }
  return text;
}

function inline(random: Random): string {
  let text = "";
  for (let i = random.below(5); i > 0; i--) {
    const kind = random.below(6);
    if (kind === 0) text += `"${jumble(random, random.below(4)).replaceAll('"', "")}"`;
    else if (kind === 1) text += `'${jumble(random, random.below(4)).replaceAll("'", "")}'`;
    else if (kind === 2) text += `"\\x4${pick(random, ["1", "g", '"', ""])}\\${noise(random, 1)}"`;
    else text += pick(random, WORDS);
    text += pick(random, [" ", " ", "  ", "\t", "\v", "", "\r"]);
  }
  return text + pick(random, ["\r\n", "\n", "\r\n", "\r\r\n"]);
}

/** A line that is about as long as a line may be. */
function longLine(random: Random, limits: DecoderLimits): string {
  const begin = pick(random, ["", "*", "*1\r\n$", "*1\r\n"]);
  // The large limit is met now and then: it costs as much as a thousand others.
  if (limits.maxInlineBytes > 1_000 && random.below(100) > 0) return `${begin}1`;
  const length = limits.maxInlineBytes - 2 + random.below(5);
  return begin + pick(random, ["1", "x", "\n"]).repeat(length) + pick(random, ["", "\r\n", "\n"]);
}

function damage(random: Random, text: string): string {
  let damaged = text;
  for (let i = 1 + random.below(3); i > 0; i--) {
    const at = random.below(damaged.length + 1);
    const upTo = at + random.below(8);
    const before = damaged.slice(0, at);
    const kind = random.below(5);
    if (kind === 0) damaged = before + damaged.slice(upTo);
    else if (kind === 1) damaged = before + pick(random, TOKENS) + damaged.slice(at);
    else if (kind === 2) damaged = before + noise(random, 1) + damaged.slice(at + 1);
    else if (kind === 3) damaged = before + damaged.slice(at, upTo) + damaged.slice(at);
    else damaged = before + pick(random, NUMBERS) + damaged.slice(at + 1);
  }
  return damaged;
}

function piece(random: Random, limits: DecoderLimits): string {
  const kind = random.below(24);
  if (kind < 14) return request(random);
  if (kind < 16) return damage(random, request(random));
  if (kind < 18) return oddRequest(random);
  if (kind < 21) return inline(random);
  if (kind < 22) return jumble(random, random.below(12));
  if (kind < 23) return longLine(random, limits);
  return noise(random, random.below(40));
}

/** Input number `index` of those that a seed stands for. */
export function makeInput(seed: number, index: number): Input {
  const random = new Random((Math.imul(seed, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b)) | 0);
  // The first numbers after similar seeds are similar.
  for (let i = 0; i < 4; i++) random.next();
  const limits = {
    maxBulkBytes: pick(random, BULK_LIMITS),
    maxRequestBytes: pick(random, REQUEST_LIMITS),
    maxInlineBytes: pick(random, INLINE_LIMITS),
  };
  let text = "";
  for (let i = 1 + random.below(6); i > 0; i--) text += piece(random, limits);
  if (random.below(4) === 0) text = text.slice(0, random.below(text.length + 1));
  const authenticated = random.below(4) > 0;
  return { bytes: Buffer.from(text, "latin1"), limits, authenticated, random };
}
