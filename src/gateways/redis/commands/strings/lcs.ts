/**
 * LCS: the longest common subsequence of two strings, by the usual table of the lengths for all
 * pairs of prefixes. Where several are equally long, the walk back through the table decides, and
 * clients see which one it took: it goes as Redis's does, from the end, and back in the second
 * string when both ways are as good.
 */

import { MAX_LCS_BYTES } from "../../../../runtime/limits.ts";
import type { Call } from "../../call.ts";
import type { Command } from "../../command.ts";
import type { Found } from "../../keyspace.ts";
import { parseInt64 } from "../../numbers.ts";
import { NOT_AN_INTEGER, ReplyError, SYNTAX } from "../../reply-error.ts";
import { STRING } from "../../tables.ts";

const NOTHING = Buffer.alloc(0);

interface Options {
  wantsLength: boolean;
  wantsPlaces: boolean;
  wantsMatchLength: boolean;
  minMatch: number;
}

/** A stretch that both have, from its first byte to its last in each. */
interface Match {
  readonly a: number;
  readonly b: number;
  readonly length: number;
}

function lcs(call: Call): void {
  const { keys } = call;
  const first = keys.find(call.arg(1));
  const second = keys.find(call.arg(2));
  if (!isString(first) || !isString(second)) {
    throw new ReplyError("ERR The specified keys must contain string values");
  }
  const options = optionsOf(call);
  const a = first?.value ?? NOTHING;
  const b = second?.value ?? NOTHING;
  if ((a.length + 1) * (b.length + 1) * 4 > MAX_LCS_BYTES) {
    throw new ReplyError(
      "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
    );
  }
  const lengths = lengthsOf(a, b);
  const length = lengths[lengths.length - 1];
  if (options.wantsLength) call.reply.integer(length);
  else if (options.wantsPlaces) replyPlaces(call, matchesOf(a, b, lengths), length, options);
  else call.reply.bulk(common(a, matchesOf(a, b, lengths), length));
}

function isString(found: Found | undefined): boolean {
  return found === undefined || found.type === STRING;
}

function optionsOf(call: Call): Options {
  const options = {
    wantsLength: false,
    wantsPlaces: false,
    wantsMatchLength: false,
    minMatch: 0,
  };
  const { count } = call;
  for (let i = 3; i < count; i++) {
    if (call.is(i, "IDX")) options.wantsPlaces = true;
    else if (call.is(i, "LEN")) options.wantsLength = true;
    else if (call.is(i, "WITHMATCHLEN")) options.wantsMatchLength = true;
    else if (call.is(i, "MINMATCHLEN") && i + 1 < count) options.minMatch = minMatchAt(call, ++i);
    else throw new ReplyError(SYNTAX);
  }
  if (options.wantsLength && options.wantsPlaces) {
    throw new ReplyError("ERR If you want both the length and indexes, please just use IDX.");
  }
  return options;
}

function minMatchAt(call: Call, index: number): number {
  const value = parseInt64(call.arg(index));
  if (value === undefined) throw new ReplyError(NOT_AN_INTEGER);
  return Math.max(0, Number(value));
}

/** Row i, column j: how long the answer is for the first i and j bytes. */
function lengthsOf(a: Buffer, b: Buffer): Uint32Array {
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = 1; i <= a.length; i++) {
    const byte = a[i - 1];
    const row = i * width;
    for (let j = 1; j < width; j++) {
      const above = lengths[row - width + j];
      const left = lengths[row + j - 1];
      if (byte === b[j - 1]) lengths[row + j] = lengths[row - width + j - 1] + 1;
      else lengths[row + j] = Math.max(above, left);
    }
  }
  return lengths;
}

/** From the last one to the first. */
function matchesOf(a: Buffer, b: Buffer, lengths: Uint32Array): Match[] {
  const width = b.length + 1;
  const matches: Match[] = [];
  let i = a.length;
  let j = b.length;
  let length = 0;
  while (i > 0 && j > 0) {
    if (a[i - 1] === b[j - 1]) {
      i--;
      j--;
      length++;
      continue;
    }
    if (length > 0) matches.push({ a: i, b: j, length });
    length = 0;
    if (lengths[(i - 1) * width + j] > lengths[i * width + j - 1]) i--;
    else j--;
  }
  if (length > 0) matches.push({ a: i, b: j, length });
  return matches;
}

function common(a: Buffer, matches: readonly Match[], length: number): Buffer {
  const text = Buffer.allocUnsafe(length);
  let end = length;
  for (const match of matches) {
    end -= match.length;
    a.copy(text, end, match.a, match.a + match.length);
  }
  return text;
}

function replyPlaces(
  { reply }: Call,
  all: readonly Match[],
  length: number,
  { minMatch, wantsMatchLength }: Options,
): void {
  const matches = all.filter((match) => match.length >= minMatch);
  reply.map(2);
  reply.text("matches");
  reply.array(matches.length);
  for (const match of matches) {
    reply.array(wantsMatchLength ? 3 : 2);
    for (const start of [match.a, match.b]) {
      reply.array(2);
      reply.integer(start);
      reply.integer(start + match.length - 1);
    }
    if (wantsMatchLength) reply.integer(match.length);
  }
  reply.text("len");
  reply.integer(length);
}

export const LCS_COMMANDS: readonly Command[] = [
  {
    name: "lcs",
    arity: -3,
    flags: ["readonly"],
    keys: [1, 2, 1],
    group: "string",
    since: "7.0.0",
    summary: "Find longest common substring",
    complexity: "O(N*M) where N and M are the lengths of s1 and s2, respectively",
    runs: "store",
    run: lcs,
  },
];
