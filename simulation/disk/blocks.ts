/**
 * The content of a file on a disk that may lose power. Two layers of blocks: those that are on disk,
 * and those that were written since the last sync and are in the cache. A block that nobody wrote is
 * in neither layer and reads as zeroes, so a large reserved file costs nothing. Blocks are never
 * changed in place: copies of a disk share them.
 */

import type { Random } from "../../src/runtime/random.ts";

/** One step since the last sync: a block as it was then written, or a new length. */
export type Change =
  | {
      readonly block: number;
      readonly content: Uint8Array;
      /** The bytes of the block that were written. */
      readonly from: number;
      readonly to: number;
    }
  | { readonly size: number };

/** What becomes of a change when the power fails: on disk, not, or in part. */
export type Fate = "kept" | "lost" | "torn";

export class FileContent {
  size = 0;
  readonly #blockBytes: number;
  readonly #zeroes: Uint8Array;
  #durable = new Map<number, Uint8Array>();
  #durableSize = 0;
  readonly #cache = new Map<number, Uint8Array>();
  #changes: Change[] = [];

  constructor(blockBytes: number) {
    this.#blockBytes = blockBytes;
    this.#zeroes = new Uint8Array(blockBytes);
  }

  /** Steps that a power loss may undo. */
  get unsynced(): number {
    return this.#changes.length;
  }

  read(into: Uint8Array, at: number): number {
    const bytes = Math.max(Math.min(into.length, this.size - at), 0);
    for (let done = 0; done < bytes; ) {
      const start = (at + done) % this.#blockBytes;
      const taken = Math.min(this.#blockBytes - start, bytes - done);
      const content = this.#block(Math.floor((at + done) / this.#blockBytes));
      into.set(content.subarray(start, start + taken), done);
      done += taken;
    }
    return bytes;
  }

  /** Takes a copy of the bytes that nobody else holds. */
  write(data: Uint8Array, at: number): void {
    if (at + data.length > this.size) this.resize(at + data.length);
    for (let done = 0; done < data.length; ) {
      const block = Math.floor((at + done) / this.#blockBytes);
      const from = (at + done) % this.#blockBytes;
      const to = Math.min(this.#blockBytes, from + data.length - done);
      let content = data.subarray(done, done + to - from);
      if (content.length < this.#blockBytes) {
        const part = content;
        content = this.#block(block).slice();
        content.set(part, from);
      }
      this.#cache.set(block, content);
      this.#changes.push({ block, content, from, to });
      done += to - from;
    }
  }

  resize(size: number): void {
    if (size < this.size) {
      for (const block of [...this.#cache.keys(), ...this.#durable.keys()]) {
        const content = this.#cut(this.#block(block), block, size);
        if (content !== this.#block(block)) this.#cache.set(block, content);
      }
    }
    this.size = size;
    this.#changes.push({ size });
  }

  sync(): void {
    for (const [block, content] of this.#cache) this.#durable.set(block, content);
    this.#durableSize = this.size;
    this.#clean();
  }

  /** A sync that failed: what it was to write is in the cache no more, and not on disk. */
  loseUnsynced(): void {
    const { size } = this;
    this.size = this.#durableSize;
    this.#clean();
    // A length is kept elsewhere, and not lost with the blocks.
    if (size !== this.size) this.resize(size);
  }

  /** Changes bytes behind everybody's back, on disk and in the cache. */
  spoil(at: number, change: (old: number) => number): void {
    const block = Math.floor(at / this.#blockBytes);
    for (const layer of [this.#durable, this.#cache]) {
      const old = layer.get(block);
      if (old === undefined && layer === this.#cache) continue;
      const content = (old ?? this.#zeroes).slice();
      content[at % this.#blockBytes] = change(content[at % this.#blockBytes]);
      layer.set(block, content);
    }
  }

  /** A copy for which everything is on disk that was written. */
  settled(): FileContent {
    return this.afterPowerLoss(() => "kept", undefined);
  }

  /** What is on disk when the power comes back, as `fate` says of each change. */
  afterPowerLoss(fate: (change: number) => Fate, random: Random | undefined): FileContent {
    const found = new FileContent(this.#blockBytes);
    const blocks = new Map(this.#durable);
    let size = this.#durableSize;
    for (let i = 0; i < this.#changes.length; i++) {
      const change = this.#changes[i];
      const itsFate = fate(i);
      if (itsFate === "lost") continue;
      if ("size" in change) {
        if (change.size < size) this.#cutAll(blocks, change.size);
        size = change.size;
      } else if (itsFate === "torn" && random !== undefined) {
        const old = blocks.get(change.block) ?? this.#zeroes;
        blocks.set(change.block, torn(old, change.content, change.from, change.to, random));
      } else {
        blocks.set(change.block, change.content);
      }
    }
    this.#cutAll(blocks, size);
    found.#durable = blocks;
    found.#durableSize = size;
    found.size = size;
    return found;
  }

  #block(block: number): Uint8Array {
    return this.#cache.get(block) ?? this.#durable.get(block) ?? this.#zeroes;
  }

  #clean(): void {
    this.#cache.clear();
    this.#changes = [];
  }

  #cutAll(blocks: Map<number, Uint8Array>, size: number): void {
    for (const [block, content] of blocks) blocks.set(block, this.#cut(content, block, size));
  }

  /** A block of a file that has this size: zero behind its end. */
  #cut(content: Uint8Array, block: number, size: number): Uint8Array {
    const kept = size - block * this.#blockBytes;
    if (kept >= this.#blockBytes) return content;
    return kept <= 0 ? this.#zeroes : content.slice().fill(0, kept);
  }
}

/** Of the bytes that were written, some at the front are there, the others as before, or garbage. */
function torn(
  old: Uint8Array,
  content: Uint8Array,
  from: number,
  to: number,
  random: Random,
): Uint8Array {
  const end = from + random.below(to - from);
  const found = old.slice();
  found.set(content.subarray(0, end));
  found.set(content.subarray(to), to);
  if (random.below(2) === 0) for (let i = end; i < to; i++) found[i] = random.below(256);
  return found;
}
