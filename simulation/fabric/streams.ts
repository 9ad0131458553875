/**
 * Random numbers of a simulation. Each purpose has a stream of its own, made of the seed and its
 * name, so that one more fault, or one more draw of it, leaves the draws of all others as they were.
 */

import { Random } from "../../src/runtime/random.ts";

/** So that seeds that differ in one bit give streams that have nothing in common. */
function mix(value: number): number {
  let x = value | 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) | 0;
}

export function streamOf(seed: number, purpose: string): Random {
  let state = mix(seed);
  for (let i = 0; i < purpose.length; i++) state = mix(state ^ (purpose.charCodeAt(i) + i));
  return new Random(state);
}

/** Whether something of this probability happens now. */
export function happens(random: Random, probability: number): boolean {
  return random.next() < probability * 2 ** 32;
}

export function between(random: Random, min: number, max: number): number {
  return min + (random.next() / 2 ** 32) * (max - min);
}
