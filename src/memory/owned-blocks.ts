/**
 * The blocks that a slab allocates from, and which of them to look at next.
 *
 * A store of a gigabyte has tens of thousands of blocks, nearly all of them full. Looking at each
 * before another one is taken would make an allocation dearer the more there is. So a search looks
 * at a few, goes on from there the next time, and then takes a new block. All are looked at when an
 * eighth more has been taken since that was in vain: so what others have freed is found again before
 * the slab has grown much, at the price of a few looks for each new block.
 */

import { BLOCKS_PER_SEARCH, FULL_REGION_PAUSE } from "../runtime/limits.ts";

export interface OwnedBlock {
  readonly block: number;
  /** Next cell to look at. */
  cursor: number;
  /** The block's count of frees by others when the sweep began. */
  freesSeen: number;
}

/** Blocks in the order in which they are looked at, and where the next search goes on. */
export class Rotation {
  readonly blocks: OwnedBlock[] = [];
  #turn = 0;

  get current(): OwnedBlock {
    if (this.#turn >= this.blocks.length) this.#turn = 0;
    return this.blocks[this.#turn];
  }

  next(): void {
    this.#turn++;
  }

  /** The one that was added last is empty, or the fullest of orphans: look there first. */
  add(owned: OwnedBlock): void {
    this.#turn = this.blocks.length;
    this.blocks.push(owned);
  }

  remove(owned: OwnedBlock): void {
    this.blocks.splice(this.blocks.indexOf(owned), 1);
  }
}

/** Those of one region. */
export class RegionBlocks extends Rotation {
  /** Searches to come before the region is asked for another block. */
  #pause = 0;

  mayTake(): boolean {
    if (this.#pause === 0) return true;
    this.#pause--;
    return false;
  }

  foundFull(): void {
    this.#pause = FULL_REGION_PAUSE;
  }
}

export class OwnedBlocks {
  readonly everywhere = new Rotation();
  readonly #byBlock = new Map<number, OwnedBlock>();
  readonly #byRegion = new Map<number, RegionBlocks>();
  /** Blocks to be taken before all are looked at again. */
  #patience = 0;

  find(block: number): OwnedBlock | undefined {
    return this.#byBlock.get(block);
  }

  inRegion(regionId: number): RegionBlocks {
    let found = this.#byRegion.get(regionId);
    if (found === undefined) {
      found = new RegionBlocks();
      this.#byRegion.set(regionId, found);
    }
    return found;
  }

  add(owned: OwnedBlock, regionId: number): void {
    this.#byBlock.set(owned.block, owned);
    this.everywhere.add(owned);
    this.inRegion(regionId).add(owned);
  }

  remove(block: number, regionId: number): void {
    const owned = this.#byBlock.get(block);
    if (owned === undefined) return;
    this.#byBlock.delete(block);
    this.everywhere.remove(owned);
    this.inRegion(regionId).remove(owned);
  }

  /** Whether all should be looked at before another block is taken. */
  isLookDue(): boolean {
    if (this.#patience === 0) return true;
    this.#patience--;
    return false;
  }

  lookedInVain(): void {
    this.#patience = Math.max(BLOCKS_PER_SEARCH, this.everywhere.blocks.length >> 3);
  }
}
