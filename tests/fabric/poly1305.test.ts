/** Poly1305 against what node:crypto computes with it, and numbers close to the prime. */

import { createCipheriv } from "node:crypto";
import { expect, test } from "vitest";
import { poly1305 } from "../../src/runtime/poly1305.ts";
import { Random } from "../../src/runtime/random.ts";
import { fixedSeed } from "../helpers/seed.ts";

const SEED = fixedSeed(11);
const PRIME = (1n << 130n) - 5n;

function tagOf(key: Int32Array, message: Int32Array): string {
  const tag = new Int32Array(4);
  poly1305(tag, key, 0, message, message.length);
  return Buffer.from(tag.buffer).toString("hex");
}

function numberOf(words: Int32Array): bigint {
  return BigInt(`0x${Buffer.from(words.slice().buffer).reverse().toString("hex")}`);
}

/** By the definition. */
function expected(key: Int32Array, message: Int32Array): string {
  const r = numberOf(key.subarray(0, 4)) & 0x0ffffffc0ffffffc0ffffffc0fffffffn;
  let sum = 0n;
  for (let at = 0; at < message.length; at += 4) {
    sum = ((sum + numberOf(message.subarray(at, at + 4)) + (1n << 128n)) * r) % PRIME;
  }
  const tag = (sum + numberOf(key.subarray(4, 8))) & ((1n << 128n) - 1n);
  return Buffer.from(tag.toString(16).padStart(32, "0"), "hex").reverse().toString("hex");
}

function words(random: Random, count: number): Int32Array {
  // Extremes as often as anything else: carries go a long way then.
  const pick = (): number => [0, -1, 1, -2, random.below(2 ** 32)][random.below(5)] | 0;
  return Int32Array.from({ length: count }, pick);
}

test(`random messages, and such as carry far (seed ${SEED})`, () => {
  const random = new Random(SEED);
  for (let round = 0; round < 3_000; round++) {
    const key = words(random, 8);
    const message = words(random, 4 * random.below(12));
    expect(tagOf(key, message), `round ${round}`).toBe(expected(key, message));
  }
});

test("sums close to the prime (RFC 8439, appendix A.3)", () => {
  const one = Int32Array.of(1, 0, 0, 0, 0, 0, 0, 0);
  const two = Int32Array.of(2, 0, 0, 0, 0, 0, 0, 0);
  const half = Int32Array.of(2, 0, 0, 0, -1, -1, -1, -1);
  expect(tagOf(two, Int32Array.of(-1, -1, -1, -1))).toBe(`03${"00".repeat(15)}`);
  expect(tagOf(half, Int32Array.of(2, 0, 0, 0))).toBe(`03${"00".repeat(15)}`);
  const wraps = Int32Array.of(-1, -1, -1, -1, -16, -1, -1, -1, 17, 0, 0, 0);
  expect(tagOf(one, wraps)).toBe(`05${"00".repeat(15)}`);
  const zero = Int32Array.of(-1, -1, -1, -1, 0xfefefefb | 0, 0xfefefefe | 0, 0xfefefefe | 0);
  const all = new Int32Array(12);
  all.set(zero);
  all.set([0xfefefefe | 0, 0x01010101, 0x01010101, 0x01010101, 0x01010101], 7);
  expect(tagOf(one, all)).toBe("00".repeat(16));
  expect(tagOf(two, Int32Array.of(-3, -1, -1, -1))).toBe(`fa${"ff".repeat(15)}`);
});

test("as chacha20-poly1305 of node:crypto has it", () => {
  const random = new Random(SEED);
  for (let round = 0; round < 50; round++) {
    const secret = Buffer.from(words(random, 8).buffer);
    const nonce = Buffer.from(words(random, 3).buffer);
    // The key is the cipher's first block; the message the data, whole blocks of it, and both lengths.
    const stream = createCipheriv("chacha20", secret, Buffer.concat([Buffer.alloc(4), nonce]));
    const key = new Int32Array(new Uint8Array(stream.update(Buffer.alloc(32))).buffer);
    const data = words(random, 4 * random.below(80));
    const message = new Int32Array(data.length + 4);
    message.set(data);
    message[data.length] = data.length * 4;
    const cipher = createCipheriv("chacha20-poly1305", secret, nonce, { authTagLength: 16 });
    cipher.setAAD(Buffer.from(data.buffer), { plaintextLength: 0 });
    cipher.final();
    expect(tagOf(key, message)).toBe(cipher.getAuthTag().toString("hex"));
  }
});
