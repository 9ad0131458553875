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

/** Those of one region. */
export class RegionBlocks {
  readonly blocks: OwnedBlock[] = [];
  #turn = 0;
  /** Searches to come before the region is asked for another block. */
  #pause = 0;

  /** How many to look at in one search. */
  get looks(): number {
    return Math.min(BLOCKS_PER_SEARCH, this.blocks.length);
  }

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
  readonly #all: OwnedBlock[] = [];
  readonly #byBlock = new Map<number, OwnedBlock>();
  readonly #byRegion = new Map<number, RegionBlocks>();
  #turn = 0;
  /** Blocks to be taken before all are looked at again. */
  #patience = 0;

  get all(): readonly OwnedBlock[] {
    return this.#all;
  }

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
    this.#turn = this.#all.length;
    this.#all.push(owned);
    this.#byBlock.set(owned.block, owned);
    this.inRegion(regionId).add(owned);
  }

  remove(block: number, regionId: number): void {
    const owned = this.#byBlock.get(block);
    if (owned === undefined) return;
    this.#byBlock.delete(block);
    for (const list of [this.#all, this.inRegion(regionId).blocks]) {
      list.splice(list.indexOf(owned), 1);
    }
  }

  get looks(): number {
    return Math.min(BLOCKS_PER_SEARCH, this.#all.length);
  }

  get current(): OwnedBlock {
    if (this.#turn >= this.#all.length) this.#turn = 0;
    return this.#all[this.#turn];
  }

  next(): void {
    this.#turn++;
  }

  /** Whether all should be looked at before another block is taken. */
  isLookDue(): boolean {
    if (this.#patience === 0) return true;
    this.#patience--;
    return false;
  }

  lookedInVain(): void {
    this.#patience = Math.max(BLOCKS_PER_SEARCH, this.#all.length >> 3);
  }
}
