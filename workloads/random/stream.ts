/**
 * The only dice of the workloads: sfc32 (Chris Doty-Humphrey's small fast counting generator, as in
 * PractRand), 128 bits of state of which 32 count, so no seed is in a cycle shorter than 2^32.
 *
 * A stream has a seed and a lane. Streams of the same seed and other lanes are independent: both
 * numbers go through a mixer before they become state, and the first draws are thrown away.
 */
export class Stream {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, lane = 0) {
    this.#a = mix(seed ^ 0x243f6a88);
    this.#b = mix(lane ^ 0x85a308d3);
    this.#c = mix(this.#a ^ mix(this.#b + 0x13198a2e));
    // PractRand throws 12 away for a seed of 96 bits; by then each bit has reached all others.
    for (let discarded = 0; discarded < 12; discarded++) this.next();
  }

  /** 0 to 2^32 - 1. */
  next(): number {
    const drawn = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + drawn) | 0;
    return drawn >>> 0;
  }

  /**
   * 0 to n - 1, for n up to 2^32. Some numbers are drawn more often than others by a part of
   * n / 2^32: with a million keys, one time in four thousand.
   */
  below(n: number): number {
    return Math.floor(this.next() * 2 ** -32 * n);
  }

  /** 0 to just below 1, with all 53 bits that a number between 0.5 and 1 has. */
  unit(): number {
    const high = this.next() >>> 5;
    return (high * 2 ** 26 + (this.next() >>> 6)) * 2 ** -53;
  }
}

/** MurmurHash3's finalizer: each bit of the input changes half of those of the output. */
function mix(value: number): number {
  let mixed = value | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) | 0;
}
