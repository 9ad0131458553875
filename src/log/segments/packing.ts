/**
 * A batch's payload in fewer bytes. Records are words, and most of these words are small: counts, offsets, ids. So
 * each word is written with as many bytes as it needs, four words at a time:
 *
 *   u32   number of words
 *   then for each four words a byte with two bits for each, the first word's lowest: 0, 1, 3 or 4 bytes
 *   follow; then these bytes, the lowest first
 *   then zeroes up to a multiple of four bytes
 *
 * In the worst case this is a sixteenth longer than the words; then the words are written as they are.
 */

/** By tag: the bytes of a word. */
const BYTES = [0, 1, 3, 4];
/** By control byte: the bytes of its four words. */
const GROUP_BYTES = Uint8Array.from({ length: 256 }, (_, control) => {
  let bytes = 0;
  for (let shift = 0; shift < 8; shift += 2) bytes += BYTES[(control >>> shift) & 3];
  return bytes;
});
const COUNT_BYTES = 4;

/** Packs batches, into the same room again and again. */
export class Packer {
  #bytes = new Uint8Array(0);
  #at = 0;
  /** The control byte that is being filled, and how many words it has. */
  #control = 0;
  #words = 0;

  /** The packed words of all parts; undefined if that would save nothing. */
  pack(parts: readonly Uint8Array[]): Uint8Array | undefined {
    let bytes = 0;
    for (const part of parts) bytes += part.length;
    this.#begin(bytes);
    for (const part of parts) {
      const { buffer, byteOffset, length } = part;
      if (byteOffset % 4 !== 0 || length % 4 !== 0) return undefined;
      this.#add(new Int32Array(buffer, byteOffset, length / 4));
    }
    const end = (this.#at + 3) & ~3;
    if (end >= bytes) return undefined;
    this.#bytes.fill(0, this.#at, end);
    return this.#bytes.subarray(0, end);
  }

  #begin(bytes: number): void {
    const most = COUNT_BYTES + bytes + Math.ceil(bytes / 16) + 8;
    if (this.#bytes.length < most) this.#bytes = new Uint8Array(most);
    new DataView(this.#bytes.buffer).setUint32(0, bytes / 4, true);
    this.#at = COUNT_BYTES;
    this.#words = 0;
  }

  #add(words: Int32Array): void {
    const out = this.#bytes;
    let at = this.#at;
    let control = this.#control;
    let count = this.#words;
    for (let i = 0; i < words.length; i++) {
      if (count === 0) {
        control = at++;
        out[control] = 0;
      }
      const word = words[i];
      if (word !== 0) {
        out[at++] = word;
        if (word >>> 8 === 0) {
          out[control] |= 1 << (2 * count);
        } else {
          out[at++] = word >>> 8;
          out[at++] = word >>> 16;
          if (word >>> 24 === 0) {
            out[control] |= 2 << (2 * count);
          } else {
            out[at++] = word >>> 24;
            out[control] |= 3 << (2 * count);
          }
        }
      }
      count = (count + 1) & 3;
    }
    this.#at = at;
    this.#control = control;
    this.#words = count;
  }
}

/** The words of a packed payload, in `into` if that is large enough; undefined if it makes no sense. */
export function unpack(packed: Uint8Array, into: Int32Array): Int32Array | undefined {
  if (packed.length < COUNT_BYTES) return undefined;
  const count = new DataView(packed.buffer, packed.byteOffset).getUint32(0, true);
  // A control byte stands for four words.
  if (count > 4 * packed.length) return undefined;
  const words = into.length >= count ? into.subarray(0, count) : new Int32Array(count);
  let at = COUNT_BYTES;
  for (let i = 0; i < count; i += 4) {
    if (at >= packed.length) return undefined;
    let control = packed[at++];
    if (at + GROUP_BYTES[control] > packed.length) return undefined;
    for (let word = i; word < i + 4 && word < count; word++, control >>>= 2) {
      const tag = control & 3;
      if (tag === 0) {
        words[word] = 0;
      } else if (tag === 1) {
        words[word] = packed[at];
      } else {
        words[word] = packed[at] | (packed[at + 1] << 8) | (packed[at + 2] << 16);
        if (tag === 3) words[word] |= packed[at + 3] << 24;
      }
      at += BYTES[tag];
    }
  }
  return words;
}
