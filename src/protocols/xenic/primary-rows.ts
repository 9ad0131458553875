/**
 * The rows of a node's own shards as its NIC sees them: the caching index in front of the host's tables (§4.1.3), one index for
 * each table of each shard. A row that is not known is looked for in host memory; meanwhile anything may happen
 * to it, so the index is asked again when the row has come. If the host has applied and the NIC has dropped a newer
 * one meanwhile, what was read may be old: `#applied` counts, for each segment, and then the row is read again.
 */

import { assert } from "../../runtime/assert.ts";
import { NIC_PAGE_SLOTS } from "../../runtime/limits.ts";
import { CachingIndex, NO_SLOT, type TwoWords } from "./caching-index.ts";
import { type HostMemory, NO_VERSION, type ReadableTable, type ReadRow } from "./host.ts";
import { type HostAnswer, lookUpInHost } from "./host-lookup.ts";
import type { HostRow } from "./host-table.ts";
import {
  ABSENT,
  BUSY,
  CONFLICT,
  OK,
  type RowName,
  rowId,
  type Status,
  type Value,
} from "./message.ts";
import type { NicPorts } from "./ports.ts";
import type { NicRoutine } from "./routine.ts";

interface Indexed {
  readonly index: CachingIndex;
  readonly table: ReadableTable;
  /** How often the host has applied a commit to rows of each segment. */
  readonly applied: Uint32Array;
}

const MAX_KEY_WORDS = 2;
/** A slot in host memory has its key and its version beside the value. */
const SLOT_WORDS = 3;

export class PrimaryRows {
  readonly #ports: NicPorts;
  readonly #shardOf: (table: number, key: number) => number;
  readonly #indexes = new Map<number, Indexed[]>();
  readonly #key = new Int32Array(MAX_KEY_WORDS);

  /** `memoryBytes` is what all indexes may have together. */
  constructor(
    ports: NicPorts,
    host: HostMemory,
    shards: readonly number[],
    shardOf: (table: number, key: number) => number,
    memoryBytes: number,
  ) {
    this.#ports = ports;
    this.#shardOf = shardOf;
    const bytes = Math.floor(memoryBytes / Math.max(1, shards.length * host.tables));
    for (const shard of shards) {
      this.#indexes.set(shard, []);
      for (let number = 0; number < host.tables; number++) {
        this.add(shard, number, host.table(shard, number), bytes);
      }
    }
  }

  /** A table of a shard, with an index of so many bytes. */
  add(shard: number, number: number, table: ReadableTable, memoryBytes: number): void {
    const { segments, keyWords, valueWords } = table;
    const index = new CachingIndex({ memoryBytes, segments, keyWords, valueWords });
    const indexes = this.#indexes.get(shard);
    assert(indexes !== undefined, "a table is added where its shard is");
    indexes[number] = { index, table, applied: new Uint32Array(segments) };
  }

  get indexes(): readonly CachingIndex[] {
    return [...this.#indexes.values()].flat().map(({ index }) => index);
  }

  has({ table, key }: RowName): boolean {
    return this.#indexes.has(this.#shardOf(table, key));
  }

  isLockedByOther(row: RowName, owner: TwoWords): boolean {
    const { index, segment, key } = this.#at(row);
    const slot = index.find(segment, key);
    return slot !== NO_SLOT && index.isLocked(slot) && !index.isLockedBy(slot, owner);
  }

  /** Whether this table has no room for a row more. */
  isFull(row: RowName): boolean {
    return this.#at(row).table.isFull;
  }

  lock(row: RowName, owner: TwoWords): Status {
    const { index, segment, key } = this.#at(row);
    const slot = index.claim(segment, key);
    if (slot === NO_SLOT) return BUSY;
    return index.lock(slot, owner) ? OK : CONFLICT;
  }

  /** Whether all of these rows could be locked at once if nothing else was: a page has rows of one segment. */
  canHold(rows: readonly RowName[]): boolean {
    const wanted = new Map<CachingIndex, Map<number, Set<string>>>();
    for (const row of rows) {
      const { index, segment } = this.#at(row);
      const segments = wanted.get(index) ?? new Map<number, Set<string>>();
      wanted.set(index, segments);
      segments.set(segment, (segments.get(segment) ?? new Set()).add(rowId(row)));
    }
    return [...wanted].every(([index, segments]) => {
      const pages = [...segments.values()].map(({ size }) => Math.ceil(size / NIC_PAGE_SLOTS));
      return pages.reduce((sum, each) => sum + each, 0) <= index.pages;
    });
  }

  unlock(row: RowName, owner: TwoWords): void {
    const { index, segment, key } = this.#at(row);
    index.unlock(segment, key, owner);
  }

  /** A row that its owner has locked has this value now. It is pinned until `applied`. */
  commit(row: RowName, owner: TwoWords, value: Value): void {
    const { index, segment, key } = this.#at(row);
    index.commit(segment, key, owner, value ?? undefined, owner);
  }

  applied(row: RowName): void {
    const { index, segment, key, applied } = this.#at(row);
    index.applied(segment, key);
    applied[segment]++;
  }

  /** The newest value of a row, or undefined if another transaction has locked it. */
  *fetch(row: RowName, owner: TwoWords): NicRoutine<ReadRow | undefined> {
    for (;;) {
      const { applied, segment } = this.#at(row);
      const known = this.#known(row, owner);
      if (known !== UNKNOWN) return known;
      const before = applied[segment];
      const found = yield* this.#lookUp(row);
      const later = this.#known(row, owner);
      if (later !== UNKNOWN) return later;
      if (applied[segment] !== before) continue;
      const { index, key } = this.#at(row);
      const slot = index.claim(segment, key);
      // Without room it is used and not kept.
      if (slot !== NO_SLOT) index.note(slot, found?.value, found?.version ?? NO_VERSION);
      return found ?? { version: NO_VERSION, value: ABSENT };
    }
  }

  #known(row: RowName, owner: TwoWords): ReadRow | undefined | typeof UNKNOWN {
    const { index, segment, key, table } = this.#at(row);
    const slot = index.find(segment, key);
    if (slot === NO_SLOT) return UNKNOWN;
    if (index.isLocked(slot) && !index.isLockedBy(slot, owner)) return undefined;
    if (!index.isKnown(slot)) return UNKNOWN;
    const version = index.versionOf(slot);
    if (!index.hasValue(slot)) return { version, value: ABSENT };
    const value = new Int32Array(table.valueWords);
    index.copyValue(slot, value, 0);
    return { version, value };
  }

  /** In host memory, by DMA. */
  *#lookUp(row: RowName): NicRoutine<HostRow | undefined> {
    const { index, table, segment } = this.#at(row);
    const home = table.homeOf(row.key);
    for (;;) {
      const { generation } = table;
      const lookup = lookUpInHost(index, segment, home);
      let found: HostRow | undefined;
      let step = lookup.next();
      while (step.done !== true) {
        const read = step.value;
        const slots = read.kind === "slots" ? read.count : 1;
        let answer: (HostAnswer & { readonly row: HostRow | undefined }) | undefined;
        yield (resume) =>
          this.#ports.read(slots * (SLOT_WORDS + table.valueWords), () => {
            answer = table.read(read, row.key);
            resume();
          });
        if (answer === undefined) {
          // The host was writing there. It may have been stopped meanwhile, so nobody waits here for it.
          yield (resume) => void this.#ports.after(1, resume);
          continue;
        }
        found = answer.row ?? found;
        step = lookup.next(answer);
      }
      // Between two reads a row may have moved from where the second looked to where the first did.
      if (found !== undefined || step.value.reads === 1 || table.generation === generation) {
        return found;
      }
    }
  }

  #at({ table: number, key }: RowName): Indexed & { segment: number; key: Int32Array } {
    const indexed = this.#indexes.get(this.#shardOf(number, key))?.[number];
    assert(indexed !== undefined, "rows are asked for at their primary");
    const { table } = indexed;
    this.#key[0] = key;
    this.#key[1] = Math.floor(key / 2 ** 32);
    return { ...indexed, segment: table.segmentOf(table.homeOf(key)), key: this.#key };
  }
}

const UNKNOWN = Symbol("not known");
