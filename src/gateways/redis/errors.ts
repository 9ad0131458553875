/** Errors that are not a command's own: what Redis says of requests, and what the store says. */

import { SituError } from "../../runtime/errors.ts";
import type { Request } from "../resp/request.ts";
import type { Registered } from "./registry.ts";

/** So much of what a client sent is repeated in an error (Redis: the same). */
const MAX_SHOWN = 128;

export function unknownCommand(request: Request): string {
  const { bytes, starts, ends, count } = request;
  let beginning = "";
  for (let i = 1; i < count && beginning.length < MAX_SHOWN; i++) {
    const room = MAX_SHOWN - beginning.length;
    beginning += `'${bytes.toString("latin1", starts[i], Math.min(ends[i], starts[i] + room))}' `;
  }
  const name = bytes.toString("latin1", starts[0], Math.min(ends[0], starts[0] + MAX_SHOWN));
  return `ERR unknown command '${name}', with args beginning with: ${beginning}`;
}

export function unknownSubcommand(parent: Registered, request: Request): string {
  const { bytes, starts, ends } = request;
  const name = bytes.toString("latin1", starts[1], Math.min(ends[1], starts[1] + MAX_SHOWN));
  const help = `${parent.fullName.toUpperCase()} HELP`;
  return `ERR unknown subcommand '${name}'. Try ${help}.`;
}

/** Whether an error is the store's, and not a fault of the gateway's or a limit of the connection. */
export function isOfStore(error: unknown): error is SituError {
  return error instanceof SituError;
}

/** What an error of the store is to the client; others are none of its business. */
export function errorReply(error: unknown): string {
  if (!isOfStore(error)) throw error;
  if (error.code === "SITU_FULL") {
    return "OOM command not allowed when used memory > 'maxmemory'.";
  }
  return `ERR ${error.message} (${error.code})`;
}
