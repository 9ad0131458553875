import { randomBytes, randomInt } from "node:crypto";

/** xorshift32: quick enough for back-off inside a spin, and seeded, so that tests can replay. */
export class Random {
  #state: number;

  constructor(seed: number = randomInt(1, 0x7fffffff)) {
    this.#state = seed | 0 || 1;
  }

  /** An unsigned 32-bit number. */
  next(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return x >>> 0;
  }

  /** A number from 0 up to, not including, `limit`. */
  below(limit: number): number {
    return Math.floor((this.next() / 2 ** 32) * limit);
  }
}

/** Names a store for good; not predictable, so two stores never share memory files. */
export function uniqueId(): string {
  return randomBytes(12).toString("hex");
}

/** Seeds the hash of a new table's keys. Never 0, which stands for the hash without a seed. */
export function hashSeed(): number {
  return randomBytes(4).readInt32LE() || 1;
}

/** 64 bits, for names that are compared as numbers; two are the same once in 2^32 names or so. */
export function uniqueNumber(): bigint {
  return randomBytes(8).readBigUInt64LE();
}
