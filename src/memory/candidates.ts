/**
 * The blocks of one class that an executor knows of and that probably have free cells: what it has
 * made itself, and what it has found in the block table. A block is looked at cell by cell, once
 * around; when no cell is left it is dropped, and comes back when somebody has freed cells in it and
 * the table is looked at again. So a search costs as much as there is to find.
 */

import { FULL_REGION_PAUSE } from "../runtime/limits.ts";

export interface Candidate {
  readonly block: number;
  readonly regionId: number;
  /** Next cell to look at, and how many there are before the round is complete. */
  cursor: number;
  left: number;
  /** How far it is from one cell to the next that is looked at. */
  readonly step: number;
  /** The block's count of frees when the round began. */
  frees: number;
  /** Whether the round came upon free cells that are spoken for: the block is not full. */
  isPassedOver: boolean;
}

/** Candidates in the order in which they are looked at, and where the next search goes on. */
export class Rotation {
  readonly blocks: Candidate[] = [];
  #next = 0;

  get current(): Candidate {
    if (this.#next >= this.blocks.length) this.#next = 0;
    return this.blocks[this.#next];
  }

  /** A block that was just made comes first: it is empty. */
  addFirst(candidate: Candidate): void {
    this.#next = this.blocks.length;
    this.blocks.push(candidate);
  }

  add(candidate: Candidate): void {
    this.blocks.push(candidate);
  }

  remove(candidate: Candidate): void {
    const at = this.blocks.indexOf(candidate);
    if (at >= 0) this.blocks.splice(at, 1);
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

export class Candidates {
  readonly everywhere = new Rotation();
  readonly #byBlock = new Map<number, Candidate>();
  readonly #byRegion = new Map<number, RegionBlocks>();

  get count(): number {
    return this.everywhere.blocks.length;
  }

  find(block: number): Candidate | undefined {
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

  add(candidate: Candidate, isNew: boolean): void {
    const region = this.inRegion(candidate.regionId);
    this.#byBlock.set(candidate.block, candidate);
    if (isNew) {
      this.everywhere.addFirst(candidate);
      region.addFirst(candidate);
    } else {
      this.everywhere.add(candidate);
      region.add(candidate);
    }
  }

  remove(candidate: Candidate): void {
    this.#byBlock.delete(candidate.block);
    this.everywhere.remove(candidate);
    this.inRegion(candidate.regionId).remove(candidate);
  }
}
