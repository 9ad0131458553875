/**
 * The seal of a store that nobody has open: checksums of its memory, in a file beside it. Whoever
 * closes a store last leaves one, and whoever opens it next checks it: memory lies in files, where a
 * stray write, a bad copy or a failing disk can change it while nobody looks.
 *
 *   seal   eight hexadecimal digits: the CRC-32 of the rest; a line feed; JSON: the run of the
 *          machine, and for each file its length and its pieces: offset, length, CRC-32
 *
 * It covers the control segment as far as it is in use, the units of the regions that are in use, and the old versions. Not
 * the journals: in a store that can be sealed all commits have ended and are in the log, if there is
 * one, so nobody reads what is in them. Above MAX_SEALED_BYTES the regions are left out, so that
 * opening and closing take bounded time.
 *
 * Everything here happens under the lock of the store's folder. The invariant: while there is a seal,
 * nobody has the store open, and nothing has changed since it was made.
 *
 *   made      after the last executor has left; written to another name first, and then renamed.
 *             Whoever dies before that leaves no seal, and the next opener checks nothing.
 *   broken    by the first opener, after it was checked and before anything is changed: removed. One
 *             who dies before that has changed nothing. One who dies after it leaves no seal.
 *   damaged   it stays, so that each opener is told the same, until memory is made anew.
 */

import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import {
  CONTROL_PREFIX_BYTES,
  Control,
  controlBytes,
  isComplete,
  isOfBoot,
  OVERFLOW_INDEX_STATE,
  REGION_LIMIT,
  readGeometry,
} from "../memory/control.ts";
import {
  CONTROL_NAME,
  chunkName,
  OVERFLOW_INDEX_NAME,
  regionName,
  ringName,
  ringSegmentBytes,
} from "../memory/store-memory.ts";
import { crc32 } from "../runtime/checksum.ts";
import {
  MAX_SEALED_BYTES,
  OVERFLOW_INDEX_BYTES,
  SEAL_PIECE_BYTES,
  UNIT_BYTES,
} from "../runtime/limits.ts";
import { HEAD, IDLE, isClaimed, STATUS, TAIL } from "./slot.ts";

const SEAL_NAME = "seal";
const DIGEST_BYTES = 9;

/** Offset, length and CRC-32 of some bytes of a file. */
type Piece = readonly [offset: number, bytes: number, checksum: number];

interface SealedFile {
  readonly name: string;
  readonly pieces: readonly Piece[];
}

interface Seal {
  readonly boot: readonly number[];
  readonly files: readonly SealedFile[];
}

/** Where memory is not what it was when the store was closed. */
export interface SealDamage {
  readonly file: string;
  readonly offset: number;
  readonly what: string;
}

/** Reads pieces of the files of one folder, one at a time. */
class PieceReader {
  readonly #folder: string;
  readonly #buffer = Buffer.alloc(SEAL_PIECE_BYTES);

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Calls `each` with the checksum of every range; -1 for one that the file does not have. */
  read(
    name: string,
    ranges: Iterable<readonly [offset: number, bytes: number]>,
    each: (offset: number, bytes: number, checksum: number) => boolean,
  ): void {
    const fd = openSync(join(this.#folder, name), "r");
    try {
      for (const [offset, bytes] of ranges) {
        if (!each(offset, bytes, this.#checksum(fd, offset, bytes))) return;
      }
    } finally {
      closeSync(fd);
    }
  }

  #checksum(fd: number, offset: number, bytes: number): number {
    if (bytes > this.#buffer.length) return -1;
    const piece = this.#buffer.subarray(0, bytes);
    for (let done = 0; done < bytes; ) {
      const read = readSync(fd, piece, done, bytes - done, offset + done);
      if (read === 0) return -1;
      done += read;
    }
    return crc32(piece);
  }
}

/** Seals the memory in a folder if nobody has it open; says whether it did. Under the folder's lock. */
export function sealMemory(folder: string, boot: Int32Array): boolean {
  rmSync(join(folder, SEAL_NAME), { force: true });
  const control = readControl(folder, boot);
  if (control === undefined || !isLeft(control)) return false;
  const reader = new PieceReader(folder);
  const files: SealedFile[] = [];
  for (const [name, ranges] of rangesOf(control)) {
    const pieces: Piece[] = [];
    reader.read(name, ranges, (...piece) => pieces.push(piece) > 0);
    files.push({ name, pieces });
  }
  const text = JSON.stringify({ boot: [...boot], files } satisfies Seal);
  const digest = crc32(text)
    .toString(16)
    .padStart(DIGEST_BYTES - 1, "0");
  const unfinished = join(folder, `${SEAL_NAME}.new`);
  writeFileSync(unfinished, `${digest}\n${text}`, { mode: 0o600 });
  renameSync(unfinished, join(folder, SEAL_NAME));
  return true;
}

/** The part of the control segment that is in use; undefined if it is not whole, or of another run. */
function readControl(folder: string, boot: Int32Array): Control | undefined {
  const path = join(folder, CONTROL_NAME);
  const prefix = new Int32Array(readStart(path, CONTROL_PREFIX_BYTES));
  if (!isComplete(prefix) || !isOfBoot(prefix, boot)) return undefined;
  const geometry = readGeometry(prefix, folder);
  const read = (regions: number): Control =>
    new Control(readStart(path, controlBytes(geometry, regions)), geometry);
  const control = read(prefix[REGION_LIMIT]);
  const regions = regionsOf(control);
  // More regions than the limit allows: a process died while it made the store smaller.
  return regions > prefix[REGION_LIMIT] ? read(regions) : control;
}

function readStart(path: string, bytes: number): ArrayBuffer {
  const start = new Uint8Array(bytes);
  const fd = openSync(path, "r");
  try {
    for (let done = 0; done < bytes; ) {
      const read = readSync(fd, start, done, bytes - done, done);
      if (read === 0) break;
      done += read;
    }
  } finally {
    closeSync(fd);
  }
  return start.buffer;
}

/** Regions that there are, or were being created. */
function regionsOf(control: Control): number {
  let regions = 0;
  while (regions < control.geometry.regions && control.i32[control.regionStateAt(regions)] !== 0) {
    regions++;
  }
  return regions;
}

/** Whether no slot is claimed, every commit has ended, and all of them are in the log. */
function isLeft(control: Control): boolean {
  const { i32, geometry } = control;
  for (let slot = 0; slot < geometry.slots; slot++) {
    const at = control.slotAt(slot);
    if (isClaimed(control, slot) || i32[at + STATUS] !== IDLE) return false;
    if (control.isLogged && i32[at + HEAD] !== i32[at + TAIL]) return false;
  }
  return true;
}

/** What is sealed of each file. */
function* rangesOf(
  control: Control,
): Generator<readonly [string, readonly (readonly [number, number])[]]> {
  const { i32, geometry } = control;
  yield [CONTROL_NAME, cut(0, i32.byteLength)];
  for (let slot = 0; slot < geometry.slots; slot++) {
    if (i32[control.ringStateAt(slot)] === 0) continue;
    yield [ringName(slot), cut(0, ringSegmentBytes(geometry))];
  }
  if (i32[OVERFLOW_INDEX_STATE] !== 0) yield [OVERFLOW_INDEX_NAME, cut(0, OVERFLOW_INDEX_BYTES)];
  for (let chunk = 0; chunk < geometry.chunks; chunk++) {
    if (i32[control.chunkAt(chunk)] === 0) continue;
    yield [chunkName(chunk), cut(0, geometry.chunkBytes)];
  }
  const units = usedUnits(control);
  if (units.reduce((sum, each) => sum + each.length, 0) * UNIT_BYTES > MAX_SEALED_BYTES) return;
  for (const [region, used] of units.entries()) {
    if (used.length === 0) continue;
    const ranges: [number, number][] = [];
    for (const unit of used) {
      const last = ranges[ranges.length - 1];
      const offset = unit * UNIT_BYTES;
      if (last !== undefined && last[0] + last[1] === offset && last[1] < SEAL_PIECE_BYTES) {
        last[1] += UNIT_BYTES;
      } else {
        ranges.push([offset, UNIT_BYTES]);
      }
    }
    yield [regionName(region), ranges];
  }
}

/** By region, the units that are not free. */
function usedUnits(control: Control): number[][] {
  const { i32, unitsPerRegion } = control;
  return Array.from({ length: regionsOf(control) }, (_, region) => {
    const used: number[] = [];
    for (let unit = 0; unit < unitsPerRegion; unit++) {
      if (i32[control.unitAt(region * unitsPerRegion + unit)] !== 0) used.push(unit);
    }
    return used;
  });
}

function cut(from: number, to: number): [number, number][] {
  const ranges: [number, number][] = [];
  for (let at = from; at < to; at += SEAL_PIECE_BYTES) {
    ranges.push([at, Math.min(SEAL_PIECE_BYTES, to - at)]);
  }
  return ranges;
}

/**
 * Checks the memory in a folder against its seal. Undefined if it is as it was, or if there is no
 * seal. Under the folder's lock, before anything of the memory is believed.
 */
export function checkSeal(folder: string, boot: Int32Array): SealDamage | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(join(folder, SEAL_NAME));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const text = bytes.subarray(DIGEST_BYTES);
  const digest = bytes.toString("latin1", 0, DIGEST_BYTES - 1);
  if (Number.parseInt(digest, 16) !== crc32(text)) {
    return { file: SEAL_NAME, offset: 0, what: "its checksum is wrong" };
  }
  const seal = JSON.parse(text.toString("utf8")) as Seal;
  // What a reboot left is no memory any more, sound or not.
  if (seal.boot.some((word, i) => word !== boot[i])) return undefined;
  const reader = new PieceReader(folder);
  for (const { name, pieces } of seal.files) {
    const damage = damageIn(reader, name, pieces);
    if (damage !== undefined) return damage;
  }
  return undefined;
}

function damageIn(
  reader: PieceReader,
  name: string,
  pieces: readonly Piece[],
): SealDamage | undefined {
  let damage: SealDamage | undefined;
  const wanted = new Map(pieces.map(([offset, , checksum]) => [offset, checksum]));
  const ranges = pieces.map(([offset, bytes]) => [offset, bytes] as const);
  try {
    reader.read(name, ranges, (offset, bytes, checksum) => {
      if (checksum === wanted.get(offset)) return true;
      const what =
        checksum < 0
          ? "the file is shorter than it was when the store was closed"
          : `the ${bytes} bytes from here on have changed since the store was closed`;
      damage = { file: name, offset, what };
      return false;
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    damage = { file: name, offset: 0, what: "it is gone since the store was closed" };
  }
  return damage;
}

/** Whether somebody has sealed the memory, soundly or not, and nobody has opened the store since. */
export function isSealed(folder: string): boolean {
  return existsSync(join(folder, SEAL_NAME));
}

/** From here on memory may change. Under the folder's lock, after `checkSeal`. */
export function breakSeal(folder: string): void {
  rmSync(join(folder, SEAL_NAME), { force: true });
}
