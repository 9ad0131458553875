/**
 * Writes and dependencies, as they travel. A transaction's part at one node is
 *
 *   word 0   dependencies, then four words each: region, word, version (high, low)
 *   then     writes, and their words in all; then at an even word the writes, which are requests
 *            to tables (tables/served/requests.ts)
 */

import type { Epoch } from "../engine/epoch.ts";
import { epochOf } from "../engine/tid.ts";
import type { NodeId } from "../fabric/fabric.ts";
import type { Reader, Writer } from "../fabric/wire.ts";
import { HEADER_WORDS } from "../memory/object.ts";
import type { Region, StoreMemory } from "../memory/store-memory.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_ACCESSES } from "../runtime/limits.ts";
import {
  decodeWrite,
  encodePut,
  encodeRemove,
  nextWrite,
  nonsense,
  type WriteRequest,
} from "../tables/served/requests.ts";

export const DEPENDENCY_WORDS = 4;

/** The part of a transaction that concerns one node. */
export class Part {
  /** Four words each; see above. */
  dependencies = new Int32Array(16);
  dependencyCount = 0;
  readonly writes: Int32Array;
  readonly writeCount: number;

  constructor(writes: Int32Array = new Int32Array(0), writeCount = 0) {
    this.writes = writes;
    this.writeCount = writeCount;
  }

  depend(regionId: number, word: number, versionHigh: number, versionLow: number): void {
    const at = this.dependencyCount * DEPENDENCY_WORDS;
    if (at === this.dependencies.length) {
      const more = new Int32Array(2 * at);
      more.set(this.dependencies);
      this.dependencies = more;
    }
    const words = this.dependencies;
    words[at] = regionId;
    words[at + 1] = word;
    words[at + 2] = versionHigh;
    words[at + 3] = versionLow;
    this.dependencyCount++;
  }

  /** The latest epoch of what it depends on. */
  get readEpoch(): Epoch {
    let epoch = 0;
    const { dependencies } = this;
    for (let i = 0; i < this.dependencyCount; i++) {
      const at = i * DEPENDENCY_WORDS;
      epoch = Math.max(epoch, epochOf(dependencies[at + 2], dependencies[at + 3]));
    }
    return epoch;
  }

  /** This part with the writes of another one, too. */
  with({ writes, writeCount }: Part): Part {
    const all = new Int32Array(this.writes.length + writes.length);
    all.set(this.writes);
    all.set(writes, this.writes.length);
    const part = new Part(all, this.writeCount + writeCount);
    part.dependencies = this.dependencies;
    part.dependencyCount = this.dependencyCount;
    return part;
  }

  encode(out: Writer): void {
    this.encodeDependencies(out);
    encodeWrites(out, this.writes, this.writeCount);
  }

  encodeDependencies(out: Writer): void {
    out.word(this.dependencyCount);
    out.words(this.dependencies, 0, this.dependencyCount * DEPENDENCY_WORDS);
  }

  /** Reads a part; what it holds are copies. */
  static decode(body: Reader): Part {
    const dependencyCount = body.count(MAX_ACCESSES);
    const from = body.skip(dependencyCount * DEPENDENCY_WORDS);
    const dependencies = body.views.i32.slice(from, body.at);
    const writeCount = body.count(MAX_ACCESSES);
    const words = body.count(body.left);
    body.align();
    const at = body.skip(words);
    const writes = body.views.i32.slice(at, at + words);
    // Coordinators and backups count on it that these are all.
    let found = 0;
    for (let next = 0; next < words; next = nextWrite(writes, next)) found++;
    if (found !== writeCount) throw nonsense();
    const part = new Part(writes, writeCount);
    part.dependencies = dependencies;
    part.dependencyCount = dependencyCount;
    return part;
  }
}

/** A transaction's part at a node, new if it had none there. */
export function partAt(parts: Map<NodeId, Part>, node: NodeId): Part {
  let part = parts.get(node);
  if (part === undefined) {
    part = new Part();
    parts.set(node, part);
  }
  return part;
}

/** Whether something holds for all dependencies of a message. Refuses places outside of the store. */
export function everyDependency(
  memory: StoreMemory,
  body: Reader,
  holds: (region: Region, word: number, versionHigh: number, versionLow: number) => boolean,
): boolean {
  const count = body.count(body.left / DEPENDENCY_WORDS);
  for (let i = 0; i < count; i++) {
    const regionId = body.word();
    const word = body.word();
    const high = body.word();
    const low = body.word();
    if (!memory.hasRegion(regionId)) throw nowhere(regionId);
    const region = memory.region(regionId);
    if (word < 0 || word + HEADER_WORDS > region.i32.length) throw nowhere(regionId);
    if (!holds(region, word, high, low)) return false;
  }
  return true;
}

export function encodeWrites(out: Writer, writes: Int32Array, count: number): void {
  out.word(count);
  out.word(writes.length);
  out.align();
  out.words(writes, 0, writes.length);
}

/** Collects writes. */
export class WriteList {
  readonly out: Writer;
  count = 0;

  constructor(out: Writer) {
    this.out = out;
  }

  put(table: number, partition: number, row: Int32Array, at: number, words: number): void {
    encodePut(this.out, table, partition, row, at, words);
    this.count++;
  }

  remove(table: number, partition: number, key: unknown): void {
    encodeRemove(this.out, table, partition, key);
    this.count++;
  }

  words(): Int32Array {
    return this.out.views.i32.slice(0, this.out.at);
  }
}

/** Walks over writes, which may be garbage. The reader is left behind the last one. */
export function* writesIn(body: Reader): Generator<WriteRequest> {
  const count = body.count(MAX_ACCESSES);
  const all = body.count(body.left);
  body.align();
  const end = body.at + all;
  if (end > body.end) throw nonsense();
  for (let i = 0; i < count; i++) yield decodeWrite(body, end);
  body.at = end;
}

/** Passes over all of them. */
export function skipWrites(body: Reader): void {
  body.count(MAX_ACCESSES);
  const words = body.count(body.left);
  body.align();
  body.skip(words);
}

function nowhere(regionId: number): SituError {
  return new SituError(
    "SITU_PROTOCOL",
    `a dependency lies in region ${regionId}, but not in the store`,
  );
}
