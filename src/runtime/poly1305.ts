/**
 * Poly1305 (RFC 8439 §2.5) of whole blocks, for messages so short that a call of node:crypto would cost
 * more than the work: each key authenticates one message.
 *
 * A number modulo 2^130 - 5 is six limbs of 22 bits, kept in doubles. A limb of the sum is below 2^23,
 * one of the key, times 20, below 2^27, so that a product of six terms stays below 2^53 and is exact.
 * 2^132 is 20 modulo the prime: that is where the 20 comes from.
 */

export const POLY1305_KEY_WORDS = 8;
export const POLY1305_BLOCK_WORDS = 4;
export const POLY1305_TAG_WORDS = 4;

const MASK = 0x3fffff;
const LIMB = 2 ** 22;
const PER_LIMB = 2 ** -22;
/** The bit that is above each block, in the last limb: 2^128 is 2^(110 + 18). */
const ABOVE_BLOCK = 1 << 18;
/** Of the last limb, bits that belong to a number below 2^130. */
const LAST_LIMB = 2 ** 20;

/**
 * Writes the tag of the first `words` words of `message`, a multiple of a block's. The key is the eight
 * words of `keys` from `at` on. All words are little-endian, as is the machine.
 */
export function poly1305(
  tag: Int32Array,
  keys: Int32Array,
  at: number,
  message: Int32Array,
  words: number,
): void {
  const k0 = keys[at] & 0x0fffffff;
  const k1 = keys[at + 1] & 0x0ffffffc;
  const k2 = keys[at + 2] & 0x0ffffffc;
  const k3 = keys[at + 3] & 0x0ffffffc;
  const r0 = k0 & MASK;
  const r1 = ((k0 >>> 22) | (k1 << 10)) & MASK;
  const r2 = ((k1 >>> 12) | (k2 << 20)) & MASK;
  const r3 = (k2 >>> 2) & MASK;
  const r4 = ((k2 >>> 24) | (k3 << 8)) & MASK;
  const r5 = k3 >>> 14;
  const s1 = 20 * r1;
  const s2 = 20 * r2;
  const s3 = 20 * r3;
  const s4 = 20 * r4;
  const s5 = 20 * r5;
  let h0 = 0;
  let h1 = 0;
  let h2 = 0;
  let h3 = 0;
  let h4 = 0;
  let h5 = 0;
  let carry = 0;
  for (let i = 0; i < words; i += POLY1305_BLOCK_WORDS) {
    const t0 = message[i];
    const t1 = message[i + 1];
    const t2 = message[i + 2];
    const t3 = message[i + 3];
    h0 += t0 & MASK;
    h1 += ((t0 >>> 22) | (t1 << 10)) & MASK;
    h2 += ((t1 >>> 12) | (t2 << 20)) & MASK;
    h3 += (t2 >>> 2) & MASK;
    h4 += ((t2 >>> 24) | (t3 << 8)) & MASK;
    h5 += (t3 >>> 14) | ABOVE_BLOCK;
    const d0 = h0 * r0 + h1 * s5 + h2 * s4 + h3 * s3 + h4 * s2 + h5 * s1;
    let d1 = h0 * r1 + h1 * r0 + h2 * s5 + h3 * s4 + h4 * s3 + h5 * s2;
    let d2 = h0 * r2 + h1 * r1 + h2 * r0 + h3 * s5 + h4 * s4 + h5 * s3;
    let d3 = h0 * r3 + h1 * r2 + h2 * r1 + h3 * r0 + h4 * s5 + h5 * s4;
    let d4 = h0 * r4 + h1 * r3 + h2 * r2 + h3 * r1 + h4 * r0 + h5 * s5;
    let d5 = h0 * r5 + h1 * r4 + h2 * r3 + h3 * r2 + h4 * r1 + h5 * r0;
    carry = Math.floor(d0 * PER_LIMB);
    h0 = d0 - carry * LIMB;
    d1 += carry;
    carry = Math.floor(d1 * PER_LIMB);
    h1 = d1 - carry * LIMB;
    d2 += carry;
    carry = Math.floor(d2 * PER_LIMB);
    h2 = d2 - carry * LIMB;
    d3 += carry;
    carry = Math.floor(d3 * PER_LIMB);
    h3 = d3 - carry * LIMB;
    d4 += carry;
    carry = Math.floor(d4 * PER_LIMB);
    h4 = d4 - carry * LIMB;
    d5 += carry;
    carry = Math.floor(d5 * PER_LIMB);
    h5 = d5 - carry * LIMB;
    h0 += 20 * carry;
    carry = Math.floor(h0 * PER_LIMB);
    h0 -= carry * LIMB;
    h1 += carry;
  }
  // Twice, for what the first time carries out at the end; it leaves a number below 2^130.
  for (let round = 0; round < 2; round++) {
    carry = Math.floor(h5 / LAST_LIMB);
    h5 -= carry * LAST_LIMB;
    h0 += 5 * carry;
    carry = Math.floor(h0 * PER_LIMB);
    h0 -= carry * LIMB;
    h1 += carry;
    carry = Math.floor(h1 * PER_LIMB);
    h1 -= carry * LIMB;
    h2 += carry;
    carry = Math.floor(h2 * PER_LIMB);
    h2 -= carry * LIMB;
    h3 += carry;
    carry = Math.floor(h3 * PER_LIMB);
    h3 -= carry * LIMB;
    h4 += carry;
    carry = Math.floor(h4 * PER_LIMB);
    h4 -= carry * LIMB;
    h5 += carry;
  }
  // h + 5 reaches 2^130 if h is at least the prime: then what remains of it is the remainder.
  const g0 = h0 + 5;
  const g1 = h1 + (g0 >= LIMB ? 1 : 0);
  const g2 = h2 + (g1 >= LIMB ? 1 : 0);
  const g3 = h3 + (g2 >= LIMB ? 1 : 0);
  const g4 = h4 + (g3 >= LIMB ? 1 : 0);
  const g5 = h5 + (g4 >= LIMB ? 1 : 0);
  if (g5 >= LAST_LIMB) {
    h0 = g0 & MASK;
    h1 = g1 & MASK;
    h2 = g2 & MASK;
    h3 = g3 & MASK;
    h4 = g4 & MASK;
    h5 = g5 & (LAST_LIMB - 1);
  }
  let sum = ((h0 | (h1 << 22)) >>> 0) + (keys[at + 4] >>> 0);
  tag[0] = sum;
  sum = (((h1 >>> 10) | (h2 << 12)) >>> 0) + (keys[at + 5] >>> 0) + (sum > 0xffffffff ? 1 : 0);
  tag[1] = sum;
  sum =
    (((h2 >>> 20) | (h3 << 2) | (h4 << 24)) >>> 0) +
    (keys[at + 6] >>> 0) +
    (sum > 0xffffffff ? 1 : 0);
  tag[2] = sum;
  sum = (((h4 >>> 8) | (h5 << 14)) >>> 0) + (keys[at + 7] >>> 0) + (sum > 0xffffffff ? 1 : 0);
  tag[3] = sum;
}
