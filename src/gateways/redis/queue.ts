/**
 * Commands that MULTI has queued. Their bytes are copied one behind the other into one buffer, and the
 * places are kept from one MULTI to the next, so that a transaction of a few commands costs no memory.
 */

import { Request } from "../resp/request.ts";
import type { Registered } from "./registry.ts";

const FIRST_BYTES = 256;
/** More than this is given back after its MULTI. */
const KEPT_BYTES = 16 * 1024;
const KEPT_COMMANDS = 64;

const NOTHING = Buffer.alloc(0);

export class Queue {
  length = 0;
  readonly requests: Request[] = [];
  readonly commands: Registered[] = [];
  /** All that was queued since MULTI. */
  bytes = 0;
  #buffer: Buffer = NOTHING;

  add(request: Request, command: Registered): void {
    const { count, starts, ends } = request;
    const first = starts[0];
    const size = ends[count - 1] - first;
    const at = this.bytes;
    if (at + size > this.#buffer.length) this.#grow(at + size);
    request.bytes.copy(this.#buffer, at, first, first + size);
    this.bytes = at + size;
    if (this.length === this.requests.length) this.requests.push(new Request());
    this.requests[this.length].become(request, this.#buffer, at - first);
    this.commands[this.length++] = command;
  }

  clear(): void {
    for (let i = 0; i < this.length; i++) this.requests[i].release();
    this.length = 0;
    this.bytes = 0;
    if (this.#buffer.length > KEPT_BYTES) this.#buffer = NOTHING;
    if (this.requests.length > KEPT_COMMANDS) this.requests.length = KEPT_COMMANDS;
    this.commands.length = 0;
  }

  /** What was queued before stays where it is: its places are in the old buffer. */
  #grow(needed: number): void {
    let size = Math.max(FIRST_BYTES, this.#buffer.length * 2);
    while (size < needed) size *= 2;
    this.#buffer = Buffer.allocUnsafeSlow(size);
  }
}
