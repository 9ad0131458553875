/**
 * HSCAN and SSCAN. A collection that is one piece is given at once. One whose members are in the
 * table is walked by position, from the highest down, and the cursor is how many positions are left,
 * all of them below those that were seen; so 0 is the end, and as an argument the beginning.
 *
 * No member that stays is missed: members move only when another one is removed, from the last
 * position to a lower one. One that has not been met was below the cursor, and still is. One that was
 * met may be met again, which Redis's clients must reckon with, too. New members come last, and are
 * met or not, as in Redis.
 */

import type { Call } from "../call.ts";
import { matches, matchesAll } from "../glob.ts";
import { ReplyError, SYNTAX } from "../reply-error.ts";
import type { Form } from "./form.ts";
import { InTable } from "./in-table.ts";

const INVALID_CURSOR = "ERR invalid cursor";
const DEFAULT_COUNT = 10;
const CURSOR = /^[+-]?\d+$/;
const MAX_CURSOR = 2n ** 64n - 1n;

/** What C's strtoul makes of it: also nothing at all is 0, and −1 the highest one. */
export function parseCursor(text: string): bigint {
  if (text === "") return 0n;
  if (!CURSOR.test(text)) throw new ReplyError(INVALID_CURSOR);
  const value = BigInt(text.replace(/^\+/, ""));
  if (value > MAX_CURSOR || value < -MAX_CURSOR) throw new ReplyError(INVALID_CURSOR);
  return BigInt.asUintN(64, value);
}

/** The reply to HSCAN or SSCAN; if there is no such key, the options are not even looked at. */
export function scan(
  call: Call,
  form: Form | undefined,
  cursor: bigint,
  withValues: boolean,
): void {
  const { reply } = call;
  if (form === undefined) {
    reply.array(2);
    reply.text("0");
    reply.array(0);
    return;
  }
  let count = DEFAULT_COUNT;
  let pattern: Buffer | undefined;
  for (let i = 3; i < call.count; i += 2) {
    if (i + 1 === call.count) throw new ReplyError(SYNTAX);
    if (call.is(i, "COUNT")) {
      // All of it is enough, however large the number is.
      const wanted = call.bigInteger(i + 1);
      if (wanted < 1n) throw new ReplyError(SYNTAX);
      count = Number(wanted);
    } else if (call.is(i, "MATCH")) {
      pattern = matchesAll(call.arg(i + 1)) ? undefined : call.arg(i + 1);
    } else {
      throw new ReplyError(SYNTAX);
    }
  }
  const { size } = form;
  const isWalk = form instanceof InTable;
  const from = isWalk && cursor > 0n && cursor < BigInt(size) ? Number(cursor) : size;
  const to = isWalk ? Math.max(0, from - count) : 0;
  const positions = pattern === undefined ? undefined : matching(form, from, to, pattern);
  const shown = positions?.length ?? from - to;
  reply.array(2);
  reply.text(String(to));
  reply.array(withValues ? 2 * shown : shown);
  for (let i = 0; i < shown; i++) {
    form.go(positions?.[i] ?? to + i);
    form.replyMember(reply);
    if (withValues) form.replyValue(reply);
  }
}

function matching(form: Form, from: number, to: number, pattern: Buffer): number[] {
  const positions: number[] = [];
  for (let i = to; i < from; i++) {
    form.go(i);
    if (matches(pattern, form.member)) positions.push(i);
  }
  return positions;
}
