/** What a command is: a row of the table that COMMAND shows, and the function that runs it. */

import type { Call } from "./call.ts";

/** As COMMAND INFO names them. */
export type Flag =
  | "write"
  | "readonly"
  | "denyoom"
  | "admin"
  | "noscript"
  | "blocking"
  | "loading"
  | "stale"
  | "fast"
  | "no_auth"
  | "no_async_loading"
  | "no_multi"
  | "skip_monitor"
  | "skip_slowlog"
  | "no_mandatory_keys"
  | "allow_busy"
  | "movablekeys";

export interface Command {
  /** In lower case; of a subcommand the last part only: "id" of CLIENT ID. */
  readonly name: string;
  /** With the name itself; negative: at least so many. */
  readonly arity: number;
  readonly flags: readonly Flag[];
  /** The first key, the last one (from the end if negative) and the step between; or none. */
  readonly keys?: readonly [first: number, last: number, step: number];
  readonly group: "connection" | "server" | "generic" | "string" | "hash" | "set" | "transactions";
  readonly since: string;
  readonly summary: string;
  readonly complexity?: string;
  /**
   * Where it runs: "store" inside a transaction, together with others of its pipeline, and again if
   * another transaction got in between: it must not change anything but keys and its reply.
   * "read" the same; but as it reads a single key, it needs no transaction where there is none.
   * "session" between transactions, once.
   */
  readonly runs: "store" | "read" | "session";
  /**
   * Writes exactly one reply to `call.reply`, or throws a ReplyError before it has changed any key.
   */
  readonly run: (call: Call) => void;
  readonly subcommands?: readonly Command[];
}
