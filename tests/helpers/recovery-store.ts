/**
 * A bare store with a log that is kept in memory, and its recovery from checkpoints and that log: to
 * see whether what is rebuilt is what there was, word for word.
 */

import type { Executor } from "../../src/engine/executor.ts";
import { awaitCommits } from "../../src/engine/snapshots/snapshot.ts";
import { Checkpoint, chainOf, listCheckpoints } from "../../src/log/checkpoint/reader.ts";
import { CheckpointWriter } from "../../src/log/checkpoint/writer.ts";
import { isDamage } from "../../src/log/head.ts";
import { Replay } from "../../src/log/recovery/apply.ts";
import { Tails } from "../../src/log/tail.ts";
import { addressOf, NO_ADDRESS, wordOf } from "../../src/memory/address.ts";
import { BLOCK_CELLS, BlockTable, SPAN } from "../../src/memory/blocks.ts";
import { EPOCH_LOW, type Geometry, SHARINGS } from "../../src/memory/control.ts";
import {
  ALLOCATED,
  ARRAY,
  ARRAY_HEADER_WORDS,
  ELEMENT_COUNT,
  ELEMENT_WORDS,
  HEADER_WORDS,
  INCARNATION,
  LOCK,
  VERSION_HIGH,
  VERSION_LOW,
} from "../../src/memory/object.ts";
import { CELL_BYTES } from "../../src/memory/size-classes.ts";
import type { StoreMemory } from "../../src/memory/store-memory.ts";
import { EngineStore, type Sharing } from "./engine-store.ts";
import { highestRegionIn, highestRegionOf } from "./highest-region.ts";
import { MemoryFiles } from "./memory-files.ts";

const MIB = 2 ** 20;
const TIMEOUT_MS = 1_000;
export const LOG_ID = "a-log";
export const CATALOGUE = { regionId: 0, word: 0 };

/** Two regions of sixteen units: a few large cells fill it. */
export const NARROW: Geometry = {
  slots: 6,
  journalBytes: MIB,
  regionBytes: MIB,
  regions: 2,
  ringBytes: 64 * 1024,
  chunkBytes: 256 * 1024,
  chunks: 2,
};

export class RecoveryStore {
  readonly store: EngineStore;
  readonly files = new MemoryFiles();
  /** The log: payloads of batches, as the log writer would write them. */
  readonly batches: Int32Array[] = [];
  readonly #tails: Tails;
  #written = 0;

  constructor(geometry: Geometry = NARROW, sharing: Sharing = "threads") {
    this.store = new EngineStore(geometry, sharing, true);
    this.#tails = new Tails(this.store.memory);
  }

  /** Writes all that was committed to the log. Nobody is committing. */
  flush(executor: Executor): void {
    const last = executor.mark();
    awaitCommits(executor, last, TIMEOUT_MS);
    this.#tails.gather(this.#written, last);
    if (this.#tails.records > 0) {
      this.batches.push(new Int32Array(new Uint8Array(Buffer.concat(this.#tails.parts)).buffer));
      this.#written = last;
    }
    executor.durability.publish(last, () => this.#tails.release());
  }

  /** Begins a checkpoint: a delta upon the newest one, if that is asked for and there is one. */
  /** Without patience for commits that are being installed, where nobody moves while this thread waits. */
  begin(executor: Executor, isDelta: boolean, patienceMs = 0): CheckpointWriter {
    const newest = isDelta ? listCheckpoints(this.files).sound[0] : undefined;
    const base = newest === undefined ? undefined : this.openCheckpoint(newest.name);
    const options = { logId: LOG_ID, catalogue: CATALOGUE, base, patienceMs };
    const writer = new CheckpointWriter(executor, this.files, options);
    const epoch = executor.mark();
    awaitCommits(executor, epoch, TIMEOUT_MS);
    writer.begin(epoch);
    return writer;
  }

  openCheckpoint(name: string): Checkpoint {
    const opened = Checkpoint.open(this.files, name);
    if (isDamage(opened)) throw new Error(JSON.stringify(opened));
    return opened;
  }

  checkpoint(executor: Executor, isDelta: boolean): string {
    const writer = this.begin(executor, isDelta);
    while (writer.step());
    return this.publish(executor, writer);
  }

  publish(executor: Executor, writer: CheckpointWriter): string {
    writer.end();
    this.flush(executor);
    return writer.publish(this.#written).name;
  }

  /**
   * Rebuilds the store from a checkpoint, or from the log alone, with so many threads' parts. The
   * caller disposes of it.
   */
  recover(name: string | undefined, parts = 1): EngineStore {
    const geometry = { ...this.store.geometry, slots: 4, journalBytes: 64 * 1024 };
    const store = new EngineStore(geometry, "threads");
    const { sound } = listCheckpoints(this.files);
    const info = sound.find((one) => one.name === name);
    const chain = info === undefined ? [] : chainOf(sound, info);
    if (isDamage(chain)) throw new Error(JSON.stringify(chain));
    const startEpoch = info?.startEpoch ?? 0;
    let highest = -1;
    for (const words of this.batches) highest = Math.max(highest, highestRegionIn(words));
    const checkpoints = chain.map((one) => this.openCheckpoint(one.name));
    for (const one of checkpoints) highest = Math.max(highest, highestRegionOf(one));
    for (let id = 0; id <= highest; id++) store.memory.createRegion(id, 0);
    for (let part = 0; part < parts; part++) {
      const isMine = (chunk: number): boolean => chunk % parts === part;
      const replay = new Replay(store.memory, { isMine, startEpoch });
      for (const one of checkpoints) {
        const damage = replay.load(one);
        if (damage !== undefined) throw new Error(JSON.stringify(damage));
      }
      for (const words of this.batches) replay.applyBatch(words);
      replay.finish();
    }
    const { control } = store.memory;
    control.i32[SHARINGS] = 1;
    const epoch = this.store.memory.control.i64[EPOCH_LOW / 2];
    Atomics.store(control.i64, EPOCH_LOW / 2, epoch + 2n);
    return store;
  }

  dispose(): void {
    this.store.dispose();
  }
}

/**
 * What is not as it was, in words for people. `dataWordsAt` says how many words a plain object has:
 * what lies behind them in its cell is nobody's. Blocks in which nothing was ever allocated are as
 * good as free memory.
 */
export function differences(
  was: StoreMemory,
  is: StoreMemory,
  dataWordsAt: (regionId: number, word: number) => number,
): string[] {
  const found: string[] = [];
  const [table, other] = [new BlockTable(was), new BlockTable(is)];
  const compare = (id: number, at: number, words: number, what: string): void => {
    const [a, b] = [was.region(id).i32, is.region(id).i32];
    if (b[at + LOCK] !== 0) found.push(`${what} at ${id}:${at} is locked`);
    for (let word = VERSION_HIGH; word < HEADER_WORDS + words; word++) {
      if (a[at + word] === b[at + word]) continue;
      found.push(`${what} at ${id}:${at}, word ${word}: ${a[at + word]} is ${b[at + word]} now`);
      return;
    }
  };
  forEachBlock(table, (block, sizeClass) => {
    if (!isUsed(was, table, block, sizeClass)) return;
    if (other.classOf(block) !== sizeClass) {
      found.push(`block ${block} of class ${sizeClass} is of class ${other.classOf(block)} now`);
      return;
    }
    const id = table.regionIdOf(block);
    const { i32 } = was.region(id);
    forEachCell(table, block, sizeClass, (at) => {
      const state = i32[at + INCARNATION];
      if ((state & ALLOCATED) === 0) compare(id, at, 0, "free cell");
      else if ((state & ARRAY) === 0) compare(id, at, dataWordsAt(id, at), "object");
      else {
        compare(id, at, ARRAY_HEADER_WORDS - HEADER_WORDS, "array");
        const words = i32[at + ELEMENT_WORDS];
        for (let index = 0; index < i32[at + ELEMENT_COUNT]; index++) {
          const element = at + ARRAY_HEADER_WORDS + index * (HEADER_WORDS + words);
          compare(id, element, words, `element ${index}`);
        }
      }
    });
  });
  forEachBlock(other, (block, sizeClass) => {
    const id = other.regionIdOf(block);
    forEachCell(other, block, sizeClass, (at) => {
      const { i32 } = is.region(id);
      if (i32[at + LOCK] !== 0) found.push(`cell ${id}:${at} is locked`);
      if ((i32[at + INCARNATION] & ALLOCATED) === 0) return;
      if (table.classOf(block) === sizeClass) {
        if ((was.region(id).i32[at + INCARNATION] & ALLOCATED) !== 0) return;
      }
      found.push(`there was no object at ${id}:${at}, in block ${block} of class ${sizeClass}`);
    });
  });
  return found;
}

/**
 * Incarnations that could come twice: for every object that the log has ever allocated, the next one
 * in its place must have a later one, unless it is still there.
 */
export function repeatedIncarnations(
  batches: readonly Int32Array[],
  memory: StoreMemory,
): string[] {
  const found: string[] = [];
  const table = new BlockTable(memory);
  for (const [place, counter] of incarnationsIn(batches)) {
    const [regionId, word] = place.split(":").map(Number);
    const next = nextCounter(memory, table, regionId, word);
    if (next < counter) found.push(`${place}: ${next} after ${counter}`);
  }
  return found;
}

/** The incarnation counter that the next object at a place can have; +1 if there is one now. */
function nextCounter(
  memory: StoreMemory,
  table: BlockTable,
  regionId: number,
  word: number,
): number {
  const address = addressOf(regionId, word);
  const block = table.blockOf(address);
  const { control } = memory;
  if (table.classOf(block) < 0) return control.i32[control.unitAt(block) + 2] >>> 2;
  const cell = table.cellOf(address);
  // Where no cell is, nothing can be allocated before the block has another class.
  if (cell === NO_ADDRESS) return Number.POSITIVE_INFINITY;
  const state = memory.region(regionId).i32[wordOf(cell) + INCARNATION];
  return (state >>> 2) + ((state & ALLOCATED) !== 0 ? 1 : 0);
}

function forEachBlock(table: BlockTable, visit: (block: number, sizeClass: number) => void): void {
  for (let unit = 0; unit < table.count; ) {
    const sizeClass = table.classOf(unit);
    if (sizeClass >= 0) visit(unit, sizeClass);
    unit += sizeClass < 0 ? 1 : SPAN[sizeClass];
  }
}

function forEachCell(
  table: BlockTable,
  block: number,
  sizeClass: number,
  visit: (at: number) => void,
): void {
  const words = CELL_BYTES[sizeClass] / 4;
  const first = table.firstWordOf(block);
  for (let index = 0; index < BLOCK_CELLS[sizeClass]; index++) visit(first + index * words);
}

function isUsed(memory: StoreMemory, table: BlockTable, block: number, sizeClass: number): boolean {
  const { i32 } = memory.region(table.regionIdOf(block));
  let used = false;
  forEachCell(table, block, sizeClass, (at) => {
    used ||= i32[at + VERSION_HIGH] !== 0 || i32[at + VERSION_LOW] !== 0;
  });
  return used;
}

/** The highest incarnation counter that the log has given to an object, by its place. */
function incarnationsIn(batches: readonly Int32Array[]): Map<string, number> {
  const highest = new Map<string, number>();
  for (const words of batches) {
    for (let record = 0; record < words.length; record += words[record]) {
      let at = record + 4;
      for (let entry = 0; entry < words[record + 1]; entry++) {
        const place = `${words[at] & 0xffff}:${words[at + 1]}`;
        if ((words[at + 2] & ALLOCATED) !== 0) {
          highest.set(place, Math.max(highest.get(place) ?? 0, words[at + 2] >>> 2));
        }
        at += 5 + words[at + 4];
      }
    }
  }
  return highest;
}
