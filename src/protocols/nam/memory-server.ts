/**
 * A memory server (NAM-DB §2.1): segments that compute servers read and write by verb. It runs nothing of a
 * transaction. What it does itself is what the paper leaves to it: it hands out memory, lets threads in and shuts
 * them out (pair-guard.ts), moves old versions to the overflow region and collects them there (version-mover.ts).
 */

import type { NodeId } from "../../fabric/fabric.ts";
import type { VerbMemory } from "../../fabric/verbs.ts";
import { Views } from "../../memory/views.ts";
import { assert } from "../../runtime/assert.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  KEPT_AT,
  MOVED_COUNT_AT,
  type NamTable,
  type NamTableOptions,
  OVERFLOW_AT,
  RING_AT,
} from "./layout.ts";
import { Members } from "./members.ts";
import { PairGuard } from "./pair-guard.ts";
import { CATALOGUE, FIRST_TABLE, TIMESTAMPS, tableOf, VECTOR_AT } from "./segments.ts";
import { LOST_VERSIONS, VersionMover } from "./version-mover.ts";

export interface MemoryServerOptions {
  readonly id: NodeId;
  readonly servers: readonly NodeId[];
  /** Of each range, at so many servers; 1 if not given. */
  readonly copies?: number;
  readonly tables: readonly NamTableOptions[];
  /** Execution threads that there may be, of all compute servers. */
  readonly pairs: number;
  /** So many of them share a slot of the vector: 1, or all threads of a compute server. */
  readonly pairsPerSlot: number;
  readonly journalWords: number;
  readonly overflowWords: number;
  /** No transaction takes longer; what nobody has needed for so long is collected. */
  readonly longestTransactionMs: number;
  /** What all segments together may take; nothing is refused without it. */
  readonly mostBytes?: number;
}

export class MemoryServer implements VerbMemory {
  readonly id: NodeId;
  readonly options: MemoryServerOptions;
  /** Those that have extents here, for the mover. */
  readonly tables: NamTable[] = [];
  readonly guard: PairGuard;
  readonly mover: VersionMover;
  /** Says which memory servers were put together, and when (formation.ts); 0 before that. */
  formation = 0;
  /** Who is a member, as far as this server knows. */
  readonly members: Members;
  /** False from when the members change until what had begun before is settled (recover.ts). */
  isReady = true;
  usedBytes = 0;
  readonly #segments: (Views | undefined)[] = [];
  readonly #byId: (NamTable | undefined)[] = [];

  constructor(options: MemoryServerOptions) {
    this.id = options.id;
    this.options = options;
    this.members = new Members(options.servers, options.copies);
    assert(
      Math.log2(options.overflowWords) % 1 === 0,
      "positions of 32 bits go around with the overflow region",
    );
    const slots = Math.ceil(options.pairs / options.pairsPerSlot);
    const own = [
      VECTOR_AT + 2 * slots,
      options.pairs * options.journalWords,
      options.overflowWords,
      2,
    ];
    assert(own.length === CATALOGUE + 1, "tables come after the server's own segments");
    own.forEach((words, segment) => {
      this.#add(segment, words);
    });
    options.tables.forEach((table, id) => {
      this.allocate(id, table);
    });
    this.guard = new PairGuard(this);
    this.mover = new VersionMover(this);
  }

  hasRegion(id: number): boolean {
    return this.#segments[id] !== undefined;
  }

  region(id: number): Views {
    const segment = this.#segments[id];
    assert(segment !== undefined, "a segment is there");
    return segment;
  }

  /** The table that a segment is of, and which of its three it is. */
  tableOf(segment: number): { readonly table: NamTable; readonly part: number } | undefined {
    const table = this.#byId[Math.floor((segment - FIRST_TABLE) / 3)];
    return table === undefined || segment < FIRST_TABLE
      ? undefined
      : { table, part: (segment - FIRST_TABLE) % 3 };
  }

  /** The extents of a table. To allocate it again with the same shape is nothing new. Throws SITU_FULL. */
  allocate(id: number, options: NamTableOptions): void {
    const table = tableOf(id, options, this.options.servers, this.members);
    const before = this.#byId[id];
    if (before !== undefined) {
      if (isSameShape(before, table)) return;
      throw new SituError("SITU_SCHEMA", `table ${options.name} has extents of another shape`);
    }
    const cells = table.servers.includes(this.id) ? table.cellsHeld : 0;
    const { cells: first, rings, old } = table.segments;
    const sizes = [table.cellWords, table.blockWords, table.ring * table.bodyWords];
    const bytes = sizes.reduce((sum, words) => sum + bytesOf(cells * words), 0);
    const { mostBytes = Number.POSITIVE_INFINITY } = this.options;
    if (this.usedBytes + bytes > mostBytes) {
      throw new SituError(
        "SITU_FULL",
        `memory server ${this.id} has ${mostBytes - this.usedBytes} bytes left, and table ${options.name} needs ${bytes}`,
      );
    }
    [first, rings, old].forEach((segment, i) => {
      this.#add(segment, cells * sizes[i]);
    });
    this.#byId[id] = table;
    this.tables.push(table);
  }

  free(id: number): void {
    const table = this.#byId[id];
    if (table === undefined) return;
    for (const segment of Object.values(table.segments) as number[]) {
      this.usedBytes -= this.region(segment).i32.byteLength;
      this.#segments[segment] = undefined;
    }
    this.#byId[id] = undefined;
    this.tables.splice(this.tables.indexOf(table), 1);
  }

  /** Others are members from now on. Nothing of what compute servers have sent before is done any more. */
  enterEpoch(epoch: number, alive: readonly NodeId[]): void {
    this.members.become(epoch, alive);
    this.isReady = false;
    this.guard.shutOut();
  }

  /**
   * All that had begun before is settled. Every record has its newest version only, because the rings of a primary that is
   * gone are gone with it: whoever needs an older one is told that it is too old. All threads are free.
   */
  beReady(): void {
    this.guard.shutOut();
    this.mover.reset();
    for (const table of this.tables) this.#forgetOldVersions(table);
    const slots = Math.ceil(this.options.pairs / this.options.pairsPerSlot);
    this.region(TIMESTAMPS).i32.fill(0, VECTOR_AT + slots, VECTOR_AT + 2 * slots);
    this.isReady = true;
  }

  #forgetOldVersions(table: NamTable): void {
    const cells = this.region(table.segments.cells).i32;
    const rings = this.region(table.segments.rings).i32;
    const held = table.servers.includes(this.id) ? table.cellsHeld : 0;
    for (let cell = 0; cell < held; cell++) {
      const kept = cells[table.cellAt(cell) + KEPT_AT];
      const block = table.blockAt(cell);
      rings.fill(0, block + RING_AT, block + table.blockWords);
      rings[block + MOVED_COUNT_AT] = kept;
      rings[block + OVERFLOW_AT] = kept === 0 ? 0 : LOST_VERSIONS;
    }
  }

  #add(segment: number, words: number): void {
    const bytes = bytesOf(words);
    assert(Number.isSafeInteger(bytes), "a segment has a size");
    this.#segments[segment] = new Views(new SharedArrayBuffer(bytes), segment);
    this.usedBytes += bytes;
  }
}

/** To an even word: headers are of two. */
function bytesOf(words: number): number {
  return (words + (words % 2)) * 4;
}

function isSameShape(a: NamTable, b: NamTable): boolean {
  return (
    a.keyWords === b.keyWords &&
    a.dataWords === b.dataWords &&
    a.ring === b.ring &&
    a.cellsPerServer === b.cellsPerServer
  );
}
