/**
 * The control segment: what every executor must agree on before it can touch a region.
 *
 *   words 0–31       geometry, fixed when the store is created
 *   words 32–33      the epoch, 64 bits, on a cache line of its own (engine/epoch.ts)
 *   words 64–65      catalogue: region id + 1 and word of its root object
 *   word 96          counts the blocks that have become everyone's, see blocks.ts
 *   word 128         schema generation: counts the changes to the tables' indexes
 *   words 160–161    how far the table of snapshots is in use, and a count of registrations
 *                    (engine/snapshots/registry.ts)
 *   words 192–195    the keeper of old versions, and its overflow area (engine/snapshots/)
 *   word 196         1 + the highest slot that was ever claimed
 *   word 197         counts the snapshots that were released: only then versions become garbage
 *   words 198–199    who removes expired rows, and who writes device pages
 *   words 224–227    the priority of a starved transaction, on a cache line of its own (engine/priority.ts)
 *   words 256–257    the durable epoch: every commit up to it is on disk
 *   words 272–343    the log and its writer (log/)
 *   words 352–353    the limit: how many regions may be created now, and whether it rises by itself
 *   word 1024…       one slot of 64 words per executor (engine/slot.ts)
 *   then             one state word per region: absent, being created by a slot, or ready
 *   then             one state word per slot: whether its journal exists
 *   then             one state word per slot: whether its version ring exists
 *   then             four words per chunk of the overflow area
 *   then             eight words per snapshot
 *   then             912 words per slot: what its executor counts (engine/metrics.ts)
 *   then             four words per unit: state, frees, first incarnation, format epoch (blocks.ts)
 *
 * `READY` is written last, so a store whose creator died is recognised and made anew.
 *
 * The geometry has room for many more regions than the store may use, so that it can grow. The units
 * come last because they are most of it: of their pages, only those of regions below the limit are
 * backed by memory, and they are reserved before the limit is raised. Invariant: nobody reads or writes
 * the units of a region that is not below the limit and never was. Where memory is full, that would be
 * a bus error.
 */

import { SituError } from "../runtime/errors.ts";
import { MAX_SNAPSHOTS, UNIT_BYTES } from "../runtime/limits.ts";
import { uniqueId } from "../runtime/random.ts";
import { Views } from "./views.ts";

const MAGIC = 0x55544953; // "SITU", read in little-endian order
/** Changes with any change to a layout in shared memory: headers, slots, journals, buckets. */
export const LAYOUT_VERSION = 6;
const BYTE_ORDER = 0x01020304;
const READY = 1;

const WORD_MAGIC = 0;
const WORD_LAYOUT = 1;
const WORD_BYTE_ORDER = 2;
const WORD_STATE = 3;
const WORD_SLOTS = 4;
const WORD_JOURNAL_BYTES = 5;
const WORD_REGION_BYTES = 6;
const WORD_REGIONS = 7;
const WORD_RING_BYTES = 8;
const WORD_CHUNK_BYTES = 9;
const WORD_CHUNKS = 10;
const WORD_LOGGED = 11;
/** Four words that tell this run of the machine from others: what a reboot leaves is no memory. */
const WORD_BOOT = 12;
/** Three words that tell this memory of the store from any other one, earlier or elsewhere. */
const WORD_MEMORY_ID = 16;
const MEMORY_ID_WORDS = 3;

export const EPOCH_LOW = 32;
export const EPOCH_HIGH = 33;
export const CATALOGUE_REGION = 64;
export const CATALOGUE_WORD = 65;
export const SHARINGS = 96;
export const SCHEMA_GENERATION = 128;
export const SNAPSHOTS_IN_USE = 160;
export const KEEPER = 192;
export const OVERFLOW_MOVES = 193;
export const OVERFLOW_INDEX_STATE = 194;
export const RINGS_IN_USE = 195;
export const SLOTS_IN_USE = 196;
export const SNAPSHOT_RELEASES = 197;
/** Slot + 1 of the executor that removes expired rows at this moment, or 0. */
export const EXPIRY_SWEEPER = 198;
/** Slot + 1 of the executor that writes pages of device tables at this moment, or 0. */
export const DEVICE_KEEPER = 199;
/** Slot + 1 of the executor that moves rows to the device in the background, or 0. */
export const DEVICE_FLUSHER = 200;
/** Read by every commit, written only when a transaction starves. */
export const PRIORITY = 224;
export const PRIORITY_TICKETS = 225;
/** Float64. */
export const PRIORITY_RESTS = 226;
export const DURABLE_LOW = 256;
export const DURABLE_HIGH = 257;
/** How many wait for the durable epoch to move, or died over it. */
export const DURABLE_WAITERS = 258;
/** The last epoch of the last batch in the log: 64 bits, as the durable epoch. */
export const WRITTEN_LOW = 260;
/** Slot + 1 of the executor that writes the log, or 0. */
export const LOG_WRITER = 272;
/** Counts the calls for the log's writer, which sleeps on this word. */
export const LOG_CALLS = 273;
/** Whether it sleeps. */
export const LOG_SLEEPS = 274;
/** Slot + 1 of the executor that is starting a thread to write the log, or 0. */
export const LOG_STARTER = 275;
export const LOG_STATE = 288;
/** The system's error number behind the state. */
export const LOG_ERROR = 289;
/** Slot + 1 of one who is committing, does not move, and keeps the log from closing an epoch. */
export const LOG_BLOCKER = 292;
/** 1 while the log's writer rests, or there is none: then who commits calls for it. */
export const LOG_RESTS = 293;
/** Whatever was committed before this moment is on disk: machineMs, in a circle of 32 bits. */
export const LOGGED_UNTIL = 294;
/** Checkpoints that were asked for, and up to which of them they are done. */
export const CHECKPOINTS_WANTED = 290;
export const CHECKPOINTS_DONE = 291;
/** Not 0 once somebody has noticed that the memory's files were removed while it was in use. */
export const MEMORY_LOST = 295;
/** Regions that may be created. Changed by `resize`, and not cached: who runs short of memory reads it. */
export const REGION_LIMIT = 352;
/** 1 if whoever runs short of memory raises the limit, within a share of the machine's memory. */
export const LIMIT_RISES = 353;
/** Figures about the log and the checkpoints, float64. */
export const LOG_FIGURES_F64 = 304 / 2;
const SLOTS_AT = 1024;
export const SLOT_WORDS = 64;
export const UNIT_ENTRY_WORDS = 4;
export const CHUNK_ENTRY_WORDS = 4;
export const SNAPSHOT_WORDS = 8;
/** Whole cache lines, apart from the slots: those are read by everyone who looks at all slots. */
export const METRIC_WORDS = 57 * 16;

export interface Geometry {
  readonly slots: number;
  readonly journalBytes: number;
  readonly regionBytes: number;
  /** The regions that there is room for; how many of them may exist now is REGION_LIMIT. */
  readonly regions: number;
  /** Old versions: the ring of each slot, and the chunks of the overflow area. Powers of two. */
  readonly ringBytes: number;
  readonly chunkBytes: number;
  /** The most chunks the overflow area may have. */
  readonly chunks: number;
}

/** The length of the control segment; or, with a limit, of the part that must be backed by memory. */
export function controlBytes(geometry: Geometry, regionLimit = geometry.regions): number {
  const units = regionLimit * (geometry.regionBytes / UNIT_BYTES);
  const words =
    SLOTS_AT +
    geometry.slots * (SLOT_WORDS + 2) +
    geometry.regions +
    units * UNIT_ENTRY_WORDS +
    geometry.chunks * CHUNK_ENTRY_WORDS +
    (MAX_SNAPSHOTS + 1) * SNAPSHOT_WORDS +
    geometry.slots * METRIC_WORDS +
    2 * LINE_WORDS;
  return Math.ceil((words * 4) / 4096) * 4096;
}

/** The first words are enough to know the geometry, and with it the length of the whole. */
export const CONTROL_PREFIX_BYTES = 4096;

const LINE_WORDS = 16;

const NO_BOOT = new Int32Array(4);

export class Control extends Views {
  readonly geometry: Geometry;
  readonly unitsPerRegion: number;
  readonly #regionsAt: number;
  readonly #journalsAt: number;
  readonly #unitsAt: number;
  readonly #ringsAt: number;
  readonly #chunksAt: number;
  readonly #snapshotsAt: number;
  readonly #metricsAt: number;

  constructor(buffer: ArrayBufferLike, geometry: Geometry) {
    super(buffer);
    this.geometry = geometry;
    this.unitsPerRegion = geometry.regionBytes / UNIT_BYTES;
    this.#regionsAt = SLOTS_AT + geometry.slots * SLOT_WORDS;
    this.#journalsAt = this.#regionsAt + geometry.regions;
    this.#ringsAt = this.#journalsAt + geometry.slots;
    this.#chunksAt = this.#ringsAt + geometry.slots;
    // At an even word: a snapshot's entry holds 64-bit floats.
    this.#snapshotsAt = (this.#chunksAt + geometry.chunks * CHUNK_ENTRY_WORDS + 1) & ~1;
    const end = this.#snapshotsAt + MAX_SNAPSHOTS * SNAPSHOT_WORDS;
    this.#metricsAt = Math.ceil(end / LINE_WORDS) * LINE_WORDS;
    this.#unitsAt = this.#metricsAt + geometry.slots * METRIC_WORDS;
  }

  slotAt(slot: number): number {
    return SLOTS_AT + slot * SLOT_WORDS;
  }

  regionStateAt(regionId: number): number {
    return this.#regionsAt + regionId;
  }

  journalStateAt(slot: number): number {
    return this.#journalsAt + slot;
  }

  /** Units are numbered through all regions. */
  unitAt(unit: number): number {
    return this.#unitsAt + unit * UNIT_ENTRY_WORDS;
  }

  ringStateAt(slot: number): number {
    return this.#ringsAt + slot;
  }

  chunkAt(chunk: number): number {
    return this.#chunksAt + chunk * CHUNK_ENTRY_WORDS;
  }

  snapshotAt(index: number): number {
    return this.#snapshotsAt + index * SNAPSHOT_WORDS;
  }

  metricsAt(slot: number): number {
    return this.#metricsAt + slot * METRIC_WORDS;
  }

  /** Regions that may exist now. */
  get regionLimit(): number {
    return Atomics.load(this.i32, REGION_LIMIT);
  }

  /** With the words of this run of the machine, see `isOfBoot`, and the id of this memory. */
  format(
    boot: Int32Array = NO_BOOT,
    memoryId = uniqueId(),
    regionLimit = this.geometry.regions,
  ): void {
    const { i32, geometry } = this;
    Atomics.store(i32, REGION_LIMIT, regionLimit);
    i32.set(boot, WORD_BOOT);
    const id = Buffer.from(memoryId, "hex");
    for (let i = 0; i < MEMORY_ID_WORDS; i++) i32[WORD_MEMORY_ID + i] = id.readInt32BE(4 * i);
    i32[WORD_MAGIC] = MAGIC;
    i32[WORD_LAYOUT] = LAYOUT_VERSION;
    i32[WORD_BYTE_ORDER] = BYTE_ORDER;
    i32[WORD_SLOTS] = geometry.slots;
    i32[WORD_JOURNAL_BYTES] = geometry.journalBytes;
    i32[WORD_REGION_BYTES] = geometry.regionBytes;
    i32[WORD_REGIONS] = geometry.regions;
    i32[WORD_RING_BYTES] = geometry.ringBytes;
    i32[WORD_CHUNK_BYTES] = geometry.chunkBytes;
    i32[WORD_CHUNKS] = geometry.chunks;
    // Epoch 0 is never used, so that 0 in a version means "never written".
    Atomics.store(i32, EPOCH_LOW, 1);
  }

  /** Made anew each time memory is created or rebuilt: 24 hexadecimal digits. */
  get memoryId(): string {
    const id = Buffer.alloc(4 * MEMORY_ID_WORDS);
    for (let i = 0; i < MEMORY_ID_WORDS; i++) id.writeInt32BE(this.i32[WORD_MEMORY_ID + i], 4 * i);
    return id.toString("hex");
  }

  publish(): void {
    Atomics.store(this.i32, WORD_STATE, READY);
  }

  /** Whether commits are kept in their journals until they are in the log. */
  get isLogged(): boolean {
    return Atomics.load(this.i32, WORD_LOGGED) !== 0;
  }

  /** From here on; only for one who is alone in the store. */
  startLog(): void {
    Atomics.store(this.i32, LOG_RESTS, 1);
    Atomics.store(this.i32, WORD_LOGGED, 1);
  }
}

/** Whether this was made in this run of the machine. Files in memory can be on a disk, too. */
export function isOfBoot(prefix: Int32Array, boot: Int32Array): boolean {
  return boot.every((word, index) => prefix[WORD_BOOT + index] === word);
}

/** Whether the creator of this control segment got to the end. Zeroes mean that it did not. */
export function isComplete(prefix: Int32Array): boolean {
  return prefix[WORD_MAGIC] !== 0 && Atomics.load(prefix, WORD_STATE) !== 0;
}

function swapped(word: number): number {
  const bytes = new DataView(new ArrayBuffer(4));
  bytes.setInt32(0, word, true);
  return bytes.getInt32(0, false);
}

/** The layout version of a control segment; undefined if it is none, or of another byte order. */
export function layoutOf(prefix: Int32Array): number | undefined {
  return prefix[WORD_MAGIC] === MAGIC ? prefix[WORD_LAYOUT] : undefined;
}

/** Reads the geometry, or refuses a store that this version does not understand. */
export function readGeometry(prefix: Int32Array, place: string): Geometry {
  if (prefix[WORD_MAGIC] !== MAGIC && prefix[WORD_MAGIC] !== swapped(MAGIC)) {
    throw new SituError("SITU_CORRUPT", `${place} is not a Situ store: its first word is wrong`);
  }
  if (prefix[WORD_BYTE_ORDER] !== BYTE_ORDER) {
    throw new SituError(
      "SITU_LAYOUT",
      `${place} was written in another byte order ` +
        `(0x${(prefix[WORD_BYTE_ORDER] >>> 0).toString(16)}, here 0x${BYTE_ORDER.toString(16)})`,
    );
  }
  if (prefix[WORD_LAYOUT] !== LAYOUT_VERSION) {
    throw new SituError(
      "SITU_LAYOUT",
      `${place} has layout version ${prefix[WORD_LAYOUT]}, and this Situ reads version ` +
        `${LAYOUT_VERSION}: open it with the Situ that wrote it, or destroy() it`,
    );
  }
  return {
    slots: prefix[WORD_SLOTS],
    journalBytes: prefix[WORD_JOURNAL_BYTES],
    regionBytes: prefix[WORD_REGION_BYTES],
    regions: prefix[WORD_REGIONS],
    ringBytes: prefix[WORD_RING_BYTES],
    chunkBytes: prefix[WORD_CHUNK_BYTES],
    chunks: prefix[WORD_CHUNKS],
  };
}
