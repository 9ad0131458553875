/** What a client calls itself. The line of CLIENT LIST must stay one line of fields. */

import type { Call } from "../../call.ts";
import { ReplyError } from "../../reply-error.ts";

/** From "!" to "~". */
const PRINTABLE = /^[\x21-\x7e]*$/;

export function setName(call: Call, index: number): void {
  call.session.name = printable(call, index, "Client names");
}

/** An argument without spaces or special characters; `what` is named if it has some. */
export function printable(call: Call, index: number, what: string): string {
  const text = call.text(index);
  if (PRINTABLE.test(text)) return text;
  throw new ReplyError(`ERR ${what} cannot contain spaces, newlines or special characters.`);
}
