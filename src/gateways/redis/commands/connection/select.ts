/** Numbers of databases. There is one, number 0. */

import type { Call } from "../../call.ts";
import { parseInt64 } from "../../numbers.ts";
import { NOT_AN_INTEGER, ReplyError } from "../../reply-error.ts";

const MIN_INT = -(2 ** 31);
const MAX_INT = 2 ** 31 - 1;

/** Throws unless the argument is the number of the database. */
export function checkDatabase(call: Call, index: number): void {
  const value = parseInt64(call.arg(index));
  if (value === undefined) throw new ReplyError(NOT_AN_INTEGER);
  if (value < MIN_INT || value > MAX_INT) {
    throw new ReplyError(`ERR value is out of range, value must between ${MIN_INT} and ${MAX_INT}`);
  }
  if (value !== 0) throw new ReplyError("ERR DB index is out of range");
}
