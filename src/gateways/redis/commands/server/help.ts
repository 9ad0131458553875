/** What the HELP subcommands reply: a line each, with a head and a foot that are always the same. */

import type { Call } from "../../call.ts";

export function replyHelp({ reply }: Call, name: string, lines: readonly string[]): void {
  reply.array(lines.length + 3);
  reply.simple(`${name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:`);
  for (const line of lines) reply.simple(line);
  reply.simple("HELP");
  reply.simple("    Prints this help.");
}

/** Of a command that is nothing without a subcommand: its arity keeps it from being called. */
export function noSubcommand(): never {
  throw new Error("a command that has only subcommands was called");
}
