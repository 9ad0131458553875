/**
 * What a client has told MULTI and WATCH. WATCH is the read set of the transaction to come: each key
 * with the version that it had. EXEC looks at them again, inside its transaction, so between that
 * look and its commands nothing changes.
 */

import type { Request } from "../resp/request.ts";
import type { Keyspace } from "./keyspace.ts";
import { Queue } from "./queue.ts";
import type { Registered } from "./registry.ts";

/** Keys that a client may watch: all of them are read in one transaction. */
const MAX_WATCHED_KEYS = 10_000;

class Watched {
  readonly key: Buffer;
  /** As `Keyspace.findVersion` leaves it. */
  versionHigh = 0;
  versionLow = 0;

  constructor(key: Buffer) {
    this.key = key;
  }
}

export class TransactionState {
  /** Between MULTI and EXEC or DISCARD. */
  isOpen = false;
  /** A command was refused, so EXEC will be. */
  isSpoilt = false;
  readonly queue = new Queue();
  readonly #watched: Watched[] = [];
  /** The bytes of their keys as text. */
  readonly #names = new Set<string>();

  get watched(): number {
    return this.#watched.length;
  }

  begin(): void {
    this.isOpen = true;
  }

  add(request: Request, command: Registered): void {
    this.queue.add(request, command);
  }

  /** Remembers keys as they are, all of one moment. One that is watched already stays as it was. */
  watch(keys: Keyspace, wanted: readonly Buffer[]): void {
    const fresh: Watched[] = [];
    for (const key of wanted) {
      const name = key.toString("latin1");
      if (this.#names.has(name)) continue;
      this.#names.add(name);
      fresh.push(new Watched(Buffer.from(key)));
    }
    keys.run(lookAtAll, { keys, fresh });
    for (const each of fresh) this.#watched.push(each);
  }

  /** Inside a transaction: whether all watched keys are as they were. */
  isUnchanged(keys: Keyspace): boolean {
    for (const { key, versionHigh, versionLow } of this.#watched) {
      keys.findVersion(key);
      if (keys.versionHigh !== versionHigh || keys.versionLow !== versionLow) return false;
    }
    return true;
  }

  /** Whether so many keys more may be watched. */
  mayWatch(keys: number): boolean {
    return this.#watched.length + keys <= MAX_WATCHED_KEYS;
  }

  unwatch(): void {
    this.#watched.length = 0;
    this.#names.clear();
  }

  end(): void {
    this.isOpen = false;
    this.isSpoilt = false;
    this.queue.clear();
    this.unwatch();
  }
}

function lookAtAll({ keys, fresh }: { keys: Keyspace; fresh: readonly Watched[] }): void {
  for (const each of fresh) {
    keys.findVersion(each.key);
    each.versionHigh = keys.versionHigh;
    each.versionLow = keys.versionLow;
  }
}
