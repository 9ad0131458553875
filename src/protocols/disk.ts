/**
 * Answers that wait for the disk. A node with `durability: "sync"` answers LOCK, LOG, COMMIT and what ends a
 * transaction only when all that it did for them is on disk; then whoever was told that something is committed
 * finds it after any loss of power. One sync serves all answers that wait for it.
 */

import type { Executor } from "../engine/executor.ts";
import type { Incoming, Ticket } from "../fabric/fabric.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_TIMEOUT_MS } from "../runtime/limits.ts";

export interface Disk {
  /** Whether nothing that was committed so far must be waited for. */
  readonly isIdle: boolean;
  /** Calls back once all that was committed so far is kept, or when it is known that it never will be. */
  whenKept(run: (error: SituError | undefined) => void): void;
}

/** Nobody waits: `durability` is "lazy" or "none". */
export const AT_ONCE: Disk = {
  isIdle: true,
  whenKept(run) {
    run(undefined);
  },
};

/** Waits for the durable epoch of a store to pass that of the executor's last commit. */
export class SyncedDisk implements Disk {
  readonly #executor: Executor;
  /** In the order of their epochs. */
  #waiting: { readonly epoch: number; readonly run: (error: SituError | undefined) => void }[] = [];

  constructor(executor: Executor) {
    this.#executor = executor;
  }

  get isIdle(): boolean {
    const { durability, committer } = this.#executor;
    return durability.epoch >= committer.lastEpoch;
  }

  whenKept(run: (error: SituError | undefined) => void): void {
    this.#waiting.push({ epoch: this.#executor.committer.lastEpoch, run });
    if (this.#waiting.length === 1) this.begin();
  }

  /** Somebody waits, for the first time. */
  protected begin(): void {
    void this.#await();
  }

  async #await(): Promise<void> {
    const { durability } = this.#executor;
    while (this.#waiting.length > 0) {
      try {
        await durability.await(this.#waiting[0].epoch, MAX_TIMEOUT_MS);
      } catch (error) {
        if (!(error instanceof SituError)) throw error;
        // Closed, and nobody can be answered any more: those who asked learn from others what became of it.
        if (error.code === "SITU_CLOSED") this.#waiting = [];
        this.#end(this.#waiting.length, error);
        return;
      }
      this.look();
    }
  }

  /** The durable epoch may have moved. */
  look(): void {
    const { epoch } = this.#executor.durability;
    let kept = 0;
    while (kept < this.#waiting.length && this.#waiting[kept].epoch <= epoch) kept++;
    this.#end(kept, undefined);
  }

  #end(count: number, error: SituError | undefined): void {
    const ended = this.#waiting.splice(0, count);
    for (const { run } of ended) run(error);
  }
}

const NOTHING: Int32Array = new Int32Array(0);

/** Replies once what was done for a message is kept. */
export function replyWhenKept(disk: Disk, incoming: Incoming, answer = NOTHING): void {
  if (disk.isIdle) incoming.reply().words(answer, 0, answer.length);
  else endWhenKept(disk, incoming.defer(), answer);
}

/** The same for one who was told to wait. */
export function endWhenKept(disk: Disk, ticket: Ticket, answer = NOTHING): void {
  disk.whenKept((error) => {
    if (error !== undefined) ticket.fail(error);
    else ticket.reply((out) => out.words(answer, 0, answer.length));
  });
}
