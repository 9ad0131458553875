/**
 * Reads checkpoints. Nothing is believed before its checksum was looked at; and as the chunks must
 * lie one after the other from the head to the index, there is no byte in a file that none covers.
 */

import type { Damage, StoreFile, StoreFiles } from "../../folder/files.ts";
import type { Geometry } from "../../memory/control.ts";
import { crc32 } from "../../runtime/checksum.ts";
import { HEAD_BYTES, SIZE_CLASSES } from "../../runtime/limits.ts";
import { decodeHead, isDamage } from "../head.ts";
import {
  type CataloguePlace,
  CHECKPOINT_FORMAT,
  CHECKPOINT_MAGIC,
  CHECKPOINTS_FOLDER,
  CHUNK_CRC,
  CHUNK_CRC_AT,
  CHUNK_HEADER_BYTES,
  CHUNK_MAGIC,
  CHUNK_PAYLOAD_BYTES,
  CHUNK_RUNS,
  CHUNK_SHAPE,
  CHUNK_UNIT,
  type CheckpointHead,
  type CheckpointKind,
  CLASS_MASK,
  decodeTrailer,
  ENTRY_BYTES,
  ENTRY_CRC,
  ENTRY_PAYLOAD_BYTES,
  ENTRY_PLACE_F64,
  ENTRY_SHAPE,
  ENTRY_UNIT,
  ENTRY_WORDS,
  parseName,
  TORN_FORMAT,
  TRAILER_BYTES,
  type Trailer,
} from "./format.ts";

export interface CheckpointInfo {
  readonly name: string;
  readonly format: number;
  readonly kind: CheckpointKind;
  readonly base: number | null;
  readonly startEpoch: number;
  readonly endEpoch: number;
  /** The log must reach this epoch; QUIET if it needs no log. */
  readonly logEpoch: number;
  readonly closedMs: number;
  readonly bytes: number;
  readonly logId: string;
  readonly geometry: Geometry;
  readonly memoryBytes?: number;
  readonly catalogue: CataloguePlace;
}

/** A checkpoint whose file is open. */
export class Checkpoint {
  readonly info: CheckpointInfo;
  /** The index, as it lies in the file: see format.ts. */
  readonly words: Int32Array;
  readonly f64: Float64Array;
  readonly entries: number;
  readonly chunks: number;
  /** The chunk that was read last, from its header on. */
  chunk = new Int32Array(0);
  #chunkBytes = new Uint8Array(0);
  readonly #file: StoreFile;

  private constructor(file: StoreFile, info: CheckpointInfo, index: ArrayBuffer, chunks: number) {
    this.#file = file;
    this.info = info;
    this.words = new Int32Array(index);
    this.f64 = new Float64Array(index);
    this.entries = index.byteLength / ENTRY_BYTES;
    this.chunks = chunks;
  }

  /** Opens a checkpoint and reads its index; or says what is wrong with it. */
  static open(files: StoreFiles, name: string): Checkpoint | Damage {
    const file = files.open(name, true);
    try {
      const opened = Checkpoint.#read(file);
      if (isDamage(opened)) file.close();
      return opened;
    } catch (error) {
      file.close();
      throw error;
    }
  }

  static #read(file: StoreFile): Checkpoint | Damage {
    const ends = readEnds(file);
    if (isDamage(ends)) return ends;
    const { trailer, info } = ends;
    const index = new ArrayBuffer(trailer.entries * ENTRY_BYTES);
    const bytes = new Uint8Array(index);
    const found = readable(file, bytes, trailer.indexAt);
    if (found < bytes.length || crc32(bytes) !== trailer.indexCrc) {
      return {
        file: file.name,
        offset: trailer.indexAt,
        what: "the checksum of its index is wrong",
      };
    }
    const checkpoint = new Checkpoint(file, info, index, trailer.chunks);
    const wrong = checkpoint.#checkIndex(trailer);
    if (wrong === undefined) return checkpoint;
    return { file: file.name, offset: trailer.indexAt, what: wrong };
  }

  /** Bytes of an entry's chunk, with its header; 0 if it has none. */
  chunkBytesOf(entry: number): number {
    if (this.f64[entry * (ENTRY_WORDS / 2) + ENTRY_PLACE_F64] === 0) return 0;
    return CHUNK_HEADER_BYTES + this.words[entry * ENTRY_WORDS + ENTRY_PAYLOAD_BYTES];
  }

  /** Reads the chunk of an entry to `chunk`; or says what is wrong with it. */
  readChunk(entry: number): Damage | undefined {
    const bytes = this.chunkBytesOf(entry);
    const place = this.f64[entry * (ENTRY_WORDS / 2) + ENTRY_PLACE_F64];
    const wrong = (what: string): Damage => ({ file: this.info.name, offset: place, what });
    if (this.#chunkBytes.length < bytes) {
      const buffer = new ArrayBuffer(Math.max(bytes, 2 * this.#chunkBytes.length));
      this.#chunkBytes = new Uint8Array(buffer);
      this.chunk = new Int32Array(buffer);
    }
    const found = readable(this.#file, this.#chunkBytes.subarray(0, bytes), place);
    if (found < bytes) return wrong("the file ends within a chunk");
    const { chunk } = this;
    const header = crc32(this.#chunkBytes.subarray(0, CHUNK_CRC_AT));
    const crc = crc32(this.#chunkBytes.subarray(CHUNK_HEADER_BYTES, bytes), header);
    if (chunk[CHUNK_CRC] >>> 0 !== crc) return wrong("the checksum of a chunk is wrong");
    const { words } = this;
    const at = entry * ENTRY_WORDS;
    const fits =
      chunk[0] === CHUNK_MAGIC &&
      chunk[CHUNK_UNIT] === words[at + ENTRY_UNIT] &&
      chunk[CHUNK_SHAPE] === words[at + ENTRY_SHAPE] &&
      chunk[CHUNK_PAYLOAD_BYTES] === words[at + ENTRY_PAYLOAD_BYTES] &&
      words[at + ENTRY_CRC] === chunk[CHUNK_CRC] &&
      chunk[CHUNK_RUNS] >= 0 &&
      8 * chunk[CHUNK_RUNS] <= chunk[CHUNK_PAYLOAD_BYTES];
    return fits ? undefined : wrong("a chunk is not the one that the index speaks of");
  }

  /** Reads all, and says what is wrong. */
  verify(): Damage[] {
    const damage: Damage[] = [];
    for (let entry = 0; entry < this.entries; entry++) {
      if (this.chunkBytesOf(entry) === 0) continue;
      const found = this.readChunk(entry);
      if (found !== undefined) damage.push(found);
    }
    return damage;
  }

  close(): void {
    this.#file.close();
  }

  /** The chunks lie one after the other, the units in order. */
  #checkIndex(trailer: Trailer): string | undefined {
    const { words } = this;
    let place = HEAD_BYTES;
    let unit = -1;
    let chunks = 0;
    for (let entry = 0; entry < this.entries; entry++) {
      const at = entry * ENTRY_WORDS;
      if (words[at + ENTRY_UNIT] <= unit) return "the units of its index are not in order";
      unit = words[at + ENTRY_UNIT];
      if ((words[at + ENTRY_SHAPE] & CLASS_MASK) > SIZE_CLASSES) return "its index is impossible";
      const bytes = this.chunkBytesOf(entry);
      if (bytes === 0) continue;
      const payload = words[at + ENTRY_PAYLOAD_BYTES];
      if (this.f64[at / 2 + ENTRY_PLACE_F64] !== place || payload < 0 || payload % 8 !== 0) {
        return "its chunks do not lie one after the other";
      }
      place += bytes;
      chunks++;
    }
    const isAll = place === trailer.indexAt && chunks === trailer.chunks;
    return isAll ? undefined : "its index does not speak of all its chunks";
  }
}

/** Reads what can be read: a place that the disk does not give back is like one that is not there. */
function readable(file: StoreFile, into: Uint8Array, at: number): number {
  try {
    return file.read(into, at);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EIO") return 0;
    throw error;
  }
}

/** What a checkpoint's head and trailer say, without the index; or what is wrong with them. */
export function readInfo(files: StoreFiles, name: string): CheckpointInfo | Damage {
  const file = files.open(name, true);
  try {
    const ends = readEnds(file);
    return isDamage(ends) ? ends : ends.info;
  } finally {
    file.close();
  }
}

function readEnds(file: StoreFile): { trailer: Trailer; info: CheckpointInfo } | Damage {
  const bytes = file.size();
  const wrong = (offset: number, what: string): Damage => ({ file: file.name, offset, what });
  const headBytes = Buffer.alloc(HEAD_BYTES);
  const found = readable(file, headBytes, 0);
  const decoded = decodeHead(CHECKPOINT_MAGIC, headBytes.subarray(0, found), file.name);
  if (isDamage(decoded)) return decoded;
  const head = decoded as CheckpointHead;
  if (head.format !== CHECKPOINT_FORMAT && head.format !== TORN_FORMAT) {
    return wrong(0, `its format is ${head.format}, not ${TORN_FORMAT} or ${CHECKPOINT_FORMAT}`);
  }
  const trailerAt = bytes - TRAILER_BYTES;
  if (trailerAt < HEAD_BYTES) return wrong(bytes, "it has no trailer: it was not finished");
  const trailerBytes = Buffer.alloc(TRAILER_BYTES);
  if (readable(file, trailerBytes, trailerAt) < TRAILER_BYTES)
    return wrong(bytes, "it was cut short");
  const trailer = decodeTrailer(trailerBytes, bytes);
  if (typeof trailer === "string") return wrong(trailerAt, trailer);
  if (crc32(headBytes) !== trailer.headCrc || head.startEpoch !== trailer.startEpoch) {
    return wrong(0, "its head and its trailer do not belong together");
  }
  const { createdMs: _, ...said } = head;
  const { endEpoch, logEpoch, closedMs } = trailer;
  return { trailer, info: { ...said, name: file.name, endEpoch, logEpoch, closedMs, bytes } };
}

/** All checkpoints of a store's folder, the newest first, and those that are none any more. */
export function listCheckpoints(files: StoreFiles): {
  sound: CheckpointInfo[];
  damaged: Damage[];
} {
  const sound: CheckpointInfo[] = [];
  const damaged: Damage[] = [];
  for (const short of files.list(CHECKPOINTS_FOLDER)) {
    const said = parseName(short);
    if (said === undefined) continue;
    const name = `${CHECKPOINTS_FOLDER}/${short}`;
    const info = readInfo(files, name);
    if (isDamage(info)) damaged.push(info);
    else if (info.startEpoch === said.startEpoch && info.kind === said.kind) sound.push(info);
    else damaged.push({ file: name, offset: 0, what: "it was renamed: its head says otherwise" });
  }
  sound.sort((a, b) => b.startEpoch - a.startEpoch);
  damaged.sort((a, b) => (a.file < b.file ? 1 : -1));
  return { sound, damaged };
}

/**
 * What must be loaded for a checkpoint, in this order: a full one, then deltas up to itself. Or why
 * that cannot be.
 */
export function chainOf(
  sound: readonly CheckpointInfo[],
  checkpoint: CheckpointInfo,
): CheckpointInfo[] | Damage {
  const chain = [checkpoint];
  for (let last = checkpoint; last.kind !== "full"; ) {
    const base = sound.find((one) => one.startEpoch === last.base && one.logId === last.logId);
    if (base === undefined || base.startEpoch >= last.startEpoch) {
      const what = `it builds on the checkpoint of epoch ${last.base}, which is damaged or missing`;
      return { file: last.name, offset: 0, what };
    }
    chain.unshift(base);
    last = base;
  }
  return chain;
}
