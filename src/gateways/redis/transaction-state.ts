/**
 * What a client has told MULTI and WATCH. WATCH is the read set of the transaction to come: each key
 * with the version that it had. EXEC looks at them again, inside its transaction, so between that
 * look and its commands nothing changes.
 */

import type { Request } from "../resp/request.ts";
import { copyOf } from "./batch.ts";
import type { Keyspace } from "./keyspace.ts";
import type { Registered } from "./registry.ts";

/** Keys that a client may watch: all of them are read in one transaction. */
const MAX_WATCHED_KEYS = 10_000;

interface Watched {
  readonly key: Buffer;
  readonly version: string;
}

interface Queued {
  readonly request: Request;
  readonly command: Registered;
}

export class TransactionState {
  /** Between MULTI and EXEC or DISCARD. */
  isOpen = false;
  /** A command was refused, so EXEC will be. */
  isSpoilt = false;
  readonly queue: Queued[] = [];
  /** By the key's bytes as latin1 text. */
  readonly #watched = new Map<string, Watched>();

  get watched(): number {
    return this.#watched.size;
  }

  begin(): void {
    this.isOpen = true;
  }

  add(request: Request, command: Registered): void {
    this.queue.push({ request: copyOf(request), command });
  }

  /** Remembers keys as they are, all of one moment. One that is watched already stays as it was. */
  watch(keys: Keyspace, wanted: readonly Buffer[]): void {
    const versions: string[] = [];
    keys.run(() => {
      versions.length = 0;
      for (const key of wanted) versions.push(keys.versionOf(key));
    }, undefined);
    for (let i = 0; i < wanted.length; i++) {
      const name = wanted[i].toString("latin1");
      if (this.#watched.has(name)) continue;
      this.#watched.set(name, { key: Buffer.from(wanted[i]), version: versions[i] });
    }
  }

  /** Inside a transaction: whether all watched keys are as they were. */
  isUnchanged(keys: Keyspace): boolean {
    for (const { key, version } of this.#watched.values()) {
      if (keys.versionOf(key) !== version) return false;
    }
    return true;
  }

  /** Whether so many keys more may be watched. */
  mayWatch(keys: number): boolean {
    return this.#watched.size + keys <= MAX_WATCHED_KEYS;
  }

  unwatch(): void {
    this.#watched.clear();
  }

  end(): void {
    this.isOpen = false;
    this.isSpoilt = false;
    this.queue.length = 0;
    this.unwatch();
  }
}
