/**
 * Commands of one client that run in one transaction: those of a pipeline that came together. Each
 * is answered as if it had run alone, which it could have: they are in their order, and nobody gets
 * in between. What it saves is most of a commit for each of them.
 *
 * The requests are places in the bytes that came; the decoder goes on to the next ones, so the
 * places are copied, and the bytes stay as they are until the batch has run.
 */

import { Request } from "../resp/request.ts";
import type { Registered } from "./registry.ts";

/** Larger ones lock more at once, and have more to do again if they meet others. */
export const MAX_BATCH = 64;
export class Batch {
  count = 0;
  readonly requests: readonly Request[] = Array.from({ length: MAX_BATCH }, () => new Request());
  readonly commands: Registered[] = [];
  /** Of their first keys, for `Keyspace.touch`. */
  readonly hashes = new Int32Array(MAX_BATCH);

  get isFull(): boolean {
    return this.count === MAX_BATCH;
  }

  add(request: Request, command: Registered): void {
    const { count } = this;
    const to = this.requests[count];
    const { starts, ends } = request;
    const last = request.count;
    while (to.starts.length < last) to.grow();
    to.bytes = request.bytes;
    to.count = last;
    for (let i = 0; i < last; i++) {
      to.starts[i] = starts[i];
      to.ends[i] = ends[i];
    }
    this.commands[count] = command;
    this.count = count + 1;
  }

  /** Also forgets the bytes, which may be many. */
  clear(): void {
    for (let i = 0; i < this.count; i++) this.requests[i].release();
    this.count = 0;
  }
}

/** A copy that lives as long as it must, for MULTI. */
export function copyOf(request: Request): Request {
  const copy = new Request();
  const { count, starts, ends } = request;
  const last = ends[count - 1];
  copy.bytes = Buffer.from(request.bytes.subarray(starts[0], last));
  copy.count = count;
  while (copy.starts.length < count) copy.grow();
  for (let i = 0; i < count; i++) {
    copy.starts[i] = starts[i] - starts[0];
    copy.ends[i] = ends[i] - starts[0];
  }
  return copy;
}
