/**
 * Hashes of keys. A table's rows are found by a hash that depends on a seed, chosen at random when
 * the table is made (stores/shards/seed.ts): whoever chooses keys, but does not know the seed,
 * cannot choose them so that all fall into one bucket (docs/decisions/0026).
 *
 *   one word          Murmur3's finalizer of the word, combined with the seed first. It is a
 *                     permutation: no two keys have the same hash, and which ones share a bucket
 *                     depends on the seed.
 *   several words     h = a·(h ^ word) + b·rotate16(h ^ word) for each word, where a and b are odd
 *                     numbers made from the seed, and the finalizer in the end. Of two messages that
 *                     differ in a word, whatever the difference, it has a bit among the lower 16 or
 *                     among the upper ones: one of the two products then changes at least 16 bits
 *                     in a way that depends on the multiplier. To cancel that out in a later word
 *                     one has to guess them.
 *
 * Murmur3 with a seed is no use: strings are known that collide under every seed, for its multipliers
 * are public, and a difference in the uppermost bit passes through a multiplication unchanged.
 * HalfSipHash-1-3 would be stronger, against somebody who can measure the time of many single lookups;
 * it made a lookup by a short string 19 % slower.
 *
 * Seed 0 is the unseeded hash: Murmur3 of the words. Tables that were made before there were seeds
 * have it, and so has the placement of keys in a cluster, which all machines must agree on.
 */

/** Murmur3's finalizer: every bit of the key reaches the bits that choose shard and bucket. */
export function mix(hash: number): number {
  let h = hash;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

/** The hash of the words [from, to), with the seed of a table or 0. */
export function hashWords(words: Int32Array, from: number, to: number, seed: number): number {
  return seed === 0 ? murmurOf(words, from, to) : seededOf(words, from, to, seed);
}

function murmurOf(words: Int32Array, from: number, to: number): number {
  let h = to - from;
  for (let at = from; at < to; at++) {
    h ^= Math.imul(
      (Math.imul(words[at], 0xcc9e2d51) << 15) | (Math.imul(words[at], 0xcc9e2d51) >>> 17),
      0x1b873593,
    );
    h = (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0;
  }
  return mix(h);
}

/** What the two secret multipliers are made of; any odd numbers would do. */
const FIRST = 0x9e3779b1;
const SECOND = 0x85ebca77;

function seededOf(words: Int32Array, from: number, to: number, seed: number): number {
  const a = Math.imul(seed, FIRST) | 1;
  const b = Math.imul(seed ^ (seed >>> 15), SECOND) | 1;
  let h = seed ^ (to - from);
  for (let at = from; at < to; at++) {
    h ^= words[at];
    h = (Math.imul(h, a) + Math.imul((h << 16) | (h >>> 16), b)) | 0;
  }
  return mix(h);
}
