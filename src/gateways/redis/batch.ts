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
  /** They are all reads, which need no transaction: gathered, they run in a tighter loop. */
  isReads = false;

  get isFull(): boolean {
    return this.count === MAX_BATCH;
  }

  add(request: Request, command: Registered): void {
    const { count } = this;
    if (count === 0) this.isReads = command.isRead;
    this.requests[count].become(request, request.bytes, 0);
    this.commands[count] = command;
    this.count = count + 1;
  }

  /** Also forgets the bytes, which may be many. */
  clear(): void {
    for (let i = 0; i < this.count; i++) this.requests[i].release();
    this.count = 0;
    this.isReads = false;
  }
}
