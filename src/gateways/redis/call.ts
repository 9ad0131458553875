/** What a command gets: its arguments, the keys, where the reply goes, and who asks. */

import type { Replies } from "../resp/replies.ts";
import type { Request } from "../resp/request.ts";
import type { Keyspace } from "./keyspace.ts";
import { parseInt64 } from "./numbers.ts";
import { NOT_AN_INTEGER, ReplyError, wrongArity } from "./reply-error.ts";
import type { Server } from "./server.ts";
import type { SessionState } from "./session-state.ts";

/** One for a session; made for each command anew by setting its fields. */
export class Call {
  readonly keys: Keyspace;
  readonly server: Server;
  readonly session: SessionState;
  readonly reply: Replies;
  request: Request;

  constructor(
    keys: Keyspace,
    server: Server,
    session: SessionState,
    reply: Replies,
    request: Request,
  ) {
    this.keys = keys;
    this.server = server;
    this.session = session;
    this.reply = reply;
    this.request = request;
  }

  /** Arguments, the command's name among them. */
  get count(): number {
    return this.request.count;
  }

  /** A view of the request's bytes: to be copied by one who keeps it. */
  arg(index: number): Buffer {
    const { bytes, starts, ends } = this.request;
    return bytes.subarray(starts[index], ends[index]);
  }

  /** As text, for options and messages; keys and values are bytes. */
  text(index: number): string {
    const { bytes, starts, ends } = this.request;
    return bytes.toString("latin1", starts[index], ends[index]);
  }

  /** Whether an argument is this word, in upper case here and in any case there. */
  is(index: number, word: string): boolean {
    const { bytes, starts, ends } = this.request;
    const start = starts[index];
    if (ends[index] - start !== word.length) return false;
    for (let i = 0; i < word.length; i++) {
      const code = bytes[start + i];
      const upper = code >= 0x61 && code <= 0x7a ? code - 0x20 : code;
      if (upper !== word.charCodeAt(i)) return false;
    }
    return true;
  }

  /** A 64-bit integer in Redis's strict form. */
  bigInteger(index: number, otherwise = NOT_AN_INTEGER): bigint {
    const value = parseInt64(this.arg(index));
    if (value === undefined) throw new ReplyError(otherwise);
    return BigInt(value);
  }

  /** The same for what must be a safe integer here: larger ones are out of range. */
  integer(index: number, otherwise = NOT_AN_INTEGER): number {
    const value = parseInt64(this.arg(index));
    if (typeof value !== "number") throw new ReplyError(otherwise);
    return value;
  }

  /** For commands whose number of arguments depends on others. */
  wrongArity(name: string): ReplyError {
    return new ReplyError(wrongArity(name));
  }
}
