/**
 * Which cells a check has reached: no object belongs to two places. For every cell the incarnation
 * word that was reached and by whom, in lists that are made when a block is first met, so that a
 * check of millions of objects needs a few bytes for each.
 *
 * The incarnation tells one life of a cell from the next one. So cells may be reached through
 * different snapshots: the same cell in another incarnation is another object.
 */

import type { Address } from "../../memory/address.ts";
import { wordOf } from "../../memory/address.ts";
import { BLOCK_CELLS, type BlockTable } from "../../memory/blocks.ts";
import { CELL_BYTES } from "../../memory/size-classes.ts";

interface ReachedCells {
  readonly sizeClass: number;
  /** 0: not reached; the word of an allocated cell is never 0. */
  readonly incarnations: Int32Array;
  readonly owners: Uint16Array;
}

export class SeenCells {
  readonly #blocks: BlockTable;
  readonly #reached = new Map<number, ReachedCells>();
  /** Names of those who reach cells, by their numbers. */
  readonly #owners: string[] = [];

  constructor(blocks: BlockTable) {
    this.#blocks = blocks;
  }

  /** A number for one who is going to reach cells. */
  addOwner(name: string): number {
    return this.#owners.push(name) - 1;
  }

  /** Notes that a cell was reached; the name of who has reached the same object before, if any. */
  reach(cell: Address, incarnation: number, owner: number): string | undefined {
    const block = this.#blocks.blockOf(cell);
    const sizeClass = this.#blocks.classOf(block);
    let cells = this.#reached.get(block);
    if (cells?.sizeClass !== sizeClass) {
      const count = BLOCK_CELLS[sizeClass];
      const incarnations = new Int32Array(count);
      cells = { sizeClass, incarnations, owners: new Uint16Array(count) };
      this.#reached.set(block, cells);
    }
    const inBlock = wordOf(cell) - this.#blocks.firstWordOf(block);
    const index = Math.floor((4 * inBlock) / CELL_BYTES[sizeClass]);
    if (cells.incarnations[index] === incarnation) return this.#owners[cells.owners[index]];
    cells.incarnations[index] = incarnation;
    cells.owners[index] = owner;
    return undefined;
  }

  /** For one who begins again: what some have reached counts for nothing. */
  forget(from: number): void {
    for (const { incarnations, owners } of this.#reached.values()) {
      for (let index = 0; index < owners.length; index++) {
        if (owners[index] >= from) incarnations[index] = 0;
      }
    }
    this.#owners.length = from;
  }
}
