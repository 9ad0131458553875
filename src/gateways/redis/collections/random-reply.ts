/**
 * The replies of HRANDFIELD and SRANDMEMBER with a count: so many different members, or, if it is
 * negative, so many draws, each of all members. The latter can ask for any amount of bytes: the
 * limit of replies ends it, and the connection.
 */

import type { Call } from "../call.ts";
import { MAX_INT64 } from "../numbers.ts";
import { ReplyError } from "../reply-error.ts";
import { anyPosition, anyPositions } from "./choose.ts";
import type { Form } from "./form.ts";

const NOT_LONG = `ERR value is out of range, value must between -${MAX_INT64} and ${MAX_INT64}`;
export const OUT_OF_RANGE = "ERR value is out of range";

/** The argument that says how many. */
export function countIn(call: Call, index: number): bigint {
  const count = call.bigInteger(index);
  if (count < -MAX_INT64) throw new ReplyError(NOT_LONG);
  return count;
}

export function replyRandom(
  call: Call,
  form: Form | undefined,
  count: bigint,
  withValues: boolean,
): void {
  if (form === undefined || count === 0n) {
    call.reply.array(0);
    return;
  }
  if (count < 0n) {
    const draws = Number(-count);
    replyLength(call, draws, withValues);
    for (let i = 0; i < draws; i++) replyAt(call, form, anyPosition(form.size), withValues);
    return;
  }
  const { size } = form;
  const shown = count < BigInt(size) ? Number(count) : size;
  replyLength(call, shown, withValues);
  if (shown === size) for (let i = 0; i < size; i++) replyAt(call, form, i, withValues);
  else for (const position of anyPositions(size, shown)) replyAt(call, form, position, withValues);
}

/** Pairs are one behind the other in RESP2, and arrays of two in RESP3. */
function replyLength({ reply }: Call, count: number, withValues: boolean): void {
  reply.array(withValues && reply.protocol === 2 ? 2 * count : count);
}

function replyAt({ reply }: Call, form: Form, position: number, withValues: boolean): void {
  form.go(position);
  if (withValues && reply.protocol === 3) reply.array(2);
  form.replyMember(reply);
  if (withValues) form.replyValue(reply);
}
