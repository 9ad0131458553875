import { threadId } from "node:worker_threads";

/** xorshift32: quick enough for back-off inside a spin, and seeded, so that tests can replay. */
export class Random {
  #state: number;

  constructor(seed: number = differentSeed()) {
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

/** Another one for each thread and moment. Not a secret, so node:crypto need not be loaded for it. */
function differentSeed(): number {
  const [seconds, nanoseconds] = process.hrtime();
  const who = Math.imul(process.pid, 0x9e3779b1) ^ Math.imul(threadId, 0x85ebca6b);
  return (Math.imul(nanoseconds, 0xc2b2ae35) + seconds) ^ who;
}

/** Loaded by the first who needs it: opening a store does not. */
function randomBytes(bytes: number): Buffer {
  return process.getBuiltinModule("node:crypto").randomBytes(bytes);
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
