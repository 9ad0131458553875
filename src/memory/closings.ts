/**
 * Giving empty blocks back, for other classes to use. In this order:
 *
 *  1. The block is seen to be empty, and closed: from here on nobody chooses cells in it. Whoever does
 *     this is announced like a transaction, so the block that is closed is the one that was seen.
 *  2. It is seen to be empty again. One who had chosen a cell before may still commit it.
 *  3. The epoch is advanced. Whoever had seen the block open, or an object in it, was announced
 *     before this.
 *  4. When all who were announced by then have ended, and no snapshot is left that sees what was
 *     freed last, the block is looked at once more. If no cell has been used since step 2, nobody
 *     has an address in the block any more, and it is given back. Otherwise it is opened again.
 *
 * From 1 to 4 the block stays closed, and there is one closing for it.
 *
 * A death at any point leaves a block that is closed, which `orphan` opens, or units without a block,
 * which it frees. One who does not come to step 4 for a while keeps nobody else from working: the
 * memory of its closed blocks is missing until then, no more.
 */

import { BlockTable, classOfState, type EmptyBlock } from "./blocks.ts";
import type { SlabHost } from "./slab.ts";

interface Closing extends EmptyBlock {
  readonly block: number;
  readonly sizeClass: number;
  /** The epoch of step 3. */
  since: number;
}

export class Closings {
  readonly #blocks: BlockTable;
  readonly #slot: number;
  readonly #host: SlabHost;
  #closed: Closing[] = [];
  readonly #again: EmptyBlock = { highest: 0, sum: 0, freedHigh: 0, freedLow: 0 };

  constructor(blocks: BlockTable, slot: number, host: SlabHost) {
    this.#blocks = blocks;
    this.#slot = slot;
    this.#host = host;
  }

  /** Whether blocks are closed that could not be given back yet. */
  get isWaiting(): boolean {
    return this.#closed.length > 0;
  }

  /** The epoch that the first of them wait for; Infinity if there are none. */
  get oldestEpoch(): number {
    return this.#closed.reduce(
      (oldest, { since }) => Math.min(oldest, since),
      Number.POSITIVE_INFINITY,
    );
  }

  /**
   * Closes the empty blocks, but for `reserved` ones; if memory is short, those too that somebody
   * prefers. The next call of `finish` tries to give them back.
   */
  begin(isShort: boolean, reserved: ReadonlySet<number>): void {
    const entered = this.#host.enter();
    try {
      const closed = this.#close(isShort, reserved);
      if (closed.length === 0) return;
      const since = this.#host.mark();
      for (const closing of closed) closing.since = since;
      this.#closed.push(...closed);
    } finally {
      this.#host.leave(entered);
    }
  }

  /** Steps 1 and 2. */
  #close(isShort: boolean, reserved: ReadonlySet<number>): Closing[] {
    const blocks = this.#blocks;
    const closed: Closing[] = [];
    const count = blocks.count;
    for (let block = 0; block < count; block++) {
      const state = blocks.stateOf(block);
      const sizeClass = classOfState(state);
      if (sizeClass < 0 || !BlockTable.isOpen(state, sizeClass) || reserved.has(block)) continue;
      // Nobody prefers it, and nobody has freed anything in it since it was full.
      if (!isShort && (BlockTable.isPreferred(state) || blocks.frees(block) === 0)) continue;
      const closing = { block, sizeClass, since: 0, highest: 0, sum: 0, freedHigh: 0, freedLow: 0 };
      if (!blocks.isEmpty(block, sizeClass, closing)) continue;
      if (!blocks.close(block, sizeClass, this.#slot)) continue;
      if (blocks.isEmpty(block, sizeClass, closing)) closed.push(closing);
      else blocks.reopen(block, sizeClass, this.#slot);
    }
    return closed;
  }

  /** Gives back what can be given back by now, and tells which; returns how many blocks. */
  finish(onReleased: (block: number, sizeClass: number) => void): number {
    if (this.#closed.length === 0) return 0;
    const blocks = this.#blocks;
    const waiting: Closing[] = [];
    let released = 0;
    for (const closing of this.#closed) {
      const { block, sizeClass, since, sum, highest, freedHigh, freedLow } = closing;
      if (!this.#host.isPast(since) || this.#host.isSeen(freedHigh, freedLow)) {
        waiting.push(closing);
      } else if (!blocks.isEmpty(block, sizeClass, this.#again) || this.#again.sum !== sum) {
        blocks.reopen(block, sizeClass, this.#slot);
      } else {
        onReleased(block, sizeClass);
        blocks.release(block, sizeClass, this.#slot, highest);
        released++;
      }
    }
    this.#closed = waiting;
    return released;
  }

  /** Opens a closed block of a class that needs one; -1 if there is none. */
  reopen(sizeClass: number): number {
    const at = this.#closed.findIndex((closing) => closing.sizeClass === sizeClass);
    if (at < 0) return -1;
    const [{ block }] = this.#closed.splice(at, 1);
    return this.#blocks.reopen(block, sizeClass, this.#slot) ? block : -1;
  }

  /** Whether only open snapshots keep a closed block from being given back. */
  get isKeptBySnapshots(): boolean {
    return this.#closed.some(({ since }) => this.#host.isPast(since));
  }
}
