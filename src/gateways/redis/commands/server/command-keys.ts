/** Which arguments of a request are keys. */

import type { Command } from "../../command.ts";
import { parseInt64 } from "../../numbers.ts";
import { ReplyError } from "../../reply-error.ts";

/** The keys among a request's arguments, the first of which is the command's name. */
export function keysOf(command: Command, args: readonly Buffer[]): readonly Buffer[] {
  const { keys, arity, flags } = command;
  const isCounted = flags.includes("movablekeys");
  if (keys === undefined && !isCounted)
    throw new ReplyError("ERR The command has no key arguments");
  const { length } = args;
  if (arity > 0 ? length !== arity : length < -arity) {
    throw new ReplyError("ERR Invalid number of arguments specified for command");
  }
  if (isCounted) return countedKeys(args);
  const [first, last, step] = keys!;
  const end = last < 0 ? length + last : last;
  return args.filter((_, i) => i >= first && i <= end && (i - first) % step === 0);
}

/** After the name comes how many there are, and then they. */
function countedKeys(args: readonly Buffer[]): readonly Buffer[] {
  const count = parseInt64(args[1]);
  if (typeof count !== "number" || count < 1 || count > args.length - 2) {
    throw new ReplyError("ERR Invalid arguments specified for command");
  }
  return args.slice(2, 2 + count);
}
