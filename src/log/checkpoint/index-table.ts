/** The index of a checkpoint while it is being written: see format.ts. */

import {
  ENTRY_BYTES,
  ENTRY_CRC,
  ENTRY_FIRST_INCARNATION,
  ENTRY_FORMAT_EPOCH,
  ENTRY_PAYLOAD_BYTES,
  ENTRY_PLACE_F64,
  ENTRY_SHAPE,
  ENTRY_SINCE_F64,
  ENTRY_UNIT,
  ENTRY_WORDS,
} from "./format.ts";

const FIRST_ENTRIES = 1_024;

export class IndexTable {
  entries = 0;
  #i32 = new Int32Array(FIRST_ENTRIES * ENTRY_WORDS);
  #f64 = new Float64Array(this.#i32.buffer);

  /** `shape` is the size class + 1, and WHOLE. */
  add(
    unit: number,
    shape: number,
    firstIncarnation: number,
    formatEpoch: number,
    since: number,
    place: number,
    payloadBytes: number,
    crc: number,
  ): void {
    if (this.entries * ENTRY_WORDS === this.#i32.length) this.#grow();
    const at = this.entries++ * ENTRY_WORDS;
    const i32 = this.#i32;
    i32[at + ENTRY_UNIT] = unit;
    i32[at + ENTRY_SHAPE] = shape;
    i32[at + ENTRY_FIRST_INCARNATION] = firstIncarnation;
    i32[at + ENTRY_FORMAT_EPOCH] = formatEpoch;
    this.#f64[at / 2 + ENTRY_SINCE_F64] = since;
    this.#f64[at / 2 + ENTRY_PLACE_F64] = place;
    i32[at + ENTRY_PAYLOAD_BYTES] = payloadBytes;
    i32[at + ENTRY_CRC] = crc;
  }

  addFree(unit: number, firstIncarnation: number, since: number): void {
    this.add(unit, 0, firstIncarnation, 0, since, 0, 0, 0);
  }

  get bytes(): Uint8Array {
    return new Uint8Array(this.#i32.buffer, 0, this.entries * ENTRY_BYTES);
  }

  #grow(): void {
    const i32 = new Int32Array(2 * this.#i32.length);
    i32.set(this.#i32);
    this.#i32 = i32;
    this.#f64 = new Float64Array(i32.buffer);
  }
}
