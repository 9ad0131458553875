/** What a command answers when it cannot do what it was asked: Redis's own texts. */

/**
 * Thrown by commands, before they have changed anything; the dispatcher makes it the reply. Without
 * a stack: it is an answer, not a fault.
 */
export class ReplyError extends Error {
  constructor(text: string) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(text);
    Error.stackTraceLimit = stackTraceLimit;
  }
}

export const WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value";
export const SYNTAX = "ERR syntax error";
export const NOT_AN_INTEGER = "ERR value is not an integer or out of range";
export const NOT_A_FLOAT = "ERR value is not a valid float";
export const NO_SUCH_KEY = "ERR no such key";
export const TOO_LONG = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

export function wrongArity(name: string): string {
  return `ERR wrong number of arguments for '${name}' command`;
}
