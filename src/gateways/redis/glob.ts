/**
 * Glob patterns of KEYS, SCAN MATCH and CONFIG GET, with the rules of Redis (util.c,
 * stringmatchlen): `*`, `?`, `[abc]`, `[^a]`, `[a-z]` also from z to a, `\` for any character.
 *
 * Only the last `*` is ever tried again: what is before it has matched as early as it can, and a
 * later match would leave less of the text to the rest. So a text of n bytes takes n times the
 * pattern's length at most, whatever the pattern is.
 */

const STAR = 0x2a;
const QUESTION = 0x3f;
const OPENING = 0x5b;
const CLOSING = 0x5d;
const CARET = 0x5e;
const BACKSLASH = 0x5c;
const DASH = 0x2d;

export function matches(pattern: Uint8Array, text: Uint8Array): boolean {
  const patternEnd = pattern.length;
  const end = text.length;
  // Redis looks at no star for an empty text, and knows only "*" by itself.
  if (end === 0) return patternEnd === 0 || matchesAll(pattern);
  let p = 0;
  let t = 0;
  // Behind the last star, and where the text goes on if it takes one byte more.
  let afterStar = -1;
  let retry = 0;
  while (t < end) {
    if (p < patternEnd) {
      if (pattern[p] === STAR) {
        afterStar = ++p;
        retry = t;
        continue;
      }
      const next = step(pattern, p, text[t]);
      if (next > 0) {
        p = next;
        t++;
        continue;
      }
    }
    if (afterStar < 0) return false;
    p = afterStar;
    t = ++retry;
  }
  while (p < patternEnd && pattern[p] === STAR) p++;
  return p === patternEnd;
}

/** Whether the pattern takes every text. */
export function matchesAll(pattern: Uint8Array): boolean {
  return pattern.length === 1 && pattern[0] === STAR;
}

/** Whether the pattern is a text without anything special, which matches only itself. */
export function isLiteral(pattern: Uint8Array): boolean {
  for (const byte of pattern) {
    if (byte === STAR || byte === QUESTION || byte === OPENING || byte === BACKSLASH) return false;
  }
  return true;
}

/** Where the pattern goes on if its part at `p`, which is no star, takes the byte; else −1. */
function step(pattern: Uint8Array, p: number, byte: number): number {
  const code = pattern[p];
  if (code === QUESTION) return p + 1;
  if (code === OPENING) return stepClass(pattern, p + 1, byte);
  // A backslash at the very end stands for itself.
  const at = code === BACKSLASH && p + 1 < pattern.length ? p + 1 : p;
  return pattern[at] === byte ? at + 1 : -1;
}

/** A class goes to its bracket, or to the pattern's end if there is none. */
function stepClass(pattern: Uint8Array, from: number, byte: number): number {
  const { length } = pattern;
  let p = from;
  const isNegated = p < length && pattern[p] === CARET;
  if (isNegated) p++;
  let isIn = false;
  for (; p < length && pattern[p] !== CLOSING; p++) {
    if (pattern[p] === BACKSLASH && p + 1 < length) {
      p++;
      if (pattern[p] === byte) isIn = true;
    } else if (p + 2 < length && pattern[p + 1] === DASH) {
      if (isBetween(byte, pattern[p], pattern[p + 2])) isIn = true;
      p += 2;
    } else if (pattern[p] === byte) {
      isIn = true;
    }
  }
  if (isIn === isNegated) return -1;
  return Math.min(p + 1, length);
}

function isBetween(byte: number, a: number, b: number): boolean {
  // Redis compares them as C's char, which is signed on most machines.
  const value = (byte << 24) >> 24;
  const first = (a << 24) >> 24;
  const last = (b << 24) >> 24;
  return first <= last ? value >= first && value <= last : value >= last && value <= first;
}
