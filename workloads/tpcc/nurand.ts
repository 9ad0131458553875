/**
 * TPC-C's non-uniform draws (clause 2.1.6), and the last names that are made of them (clause
 * 4.3.2.3).
 *
 *   NURand(A, x, y) = (((random(0, A) | random(x, y)) + C) % (y - x + 1)) + x
 *
 * The bitwise or prefers numbers with many bits set; adding C moves them to other places.
 */

import type { Stream } from "../random/stream.ts";

const SYLLABLES = "BAR OUGHT ABLE PRI PRES ESE ANTI CALLY ATION EING".split(" ");

export function nurand(stream: Stream, a: number, c: number, least: number, most: number): number {
  const drawn = stream.below(a + 1) | (least + stream.below(most - least + 1));
  return ((drawn + c) % (most - least + 1)) + least;
}

/** Of a number from 0 to 999: a syllable for each of its three digits. */
export function lastName(number: number): string {
  const hundreds = SYLLABLES[Math.floor(number / 100)];
  const tens = SYLLABLES[Math.floor(number / 10) % 10];
  // Joined: a sum would stay in pieces, and whoever encodes it would pay for that.
  return [hundreds, tens, SYLLABLES[number % 10]].join("");
}
