/**
 * The head of a file on disk: what it is, in a form that people and tools can read. Eight bytes of
 * magic, the length and the CRC-32 of a JSON text, the text, zeroes up to HEAD_BYTES. Log and
 * checkpoints hold memory as it is, so each says of which layout that memory was.
 */

import type { Damage } from "../folder/files.ts";
import { crc32 } from "../runtime/checksum.ts";
import { HEAD_BYTES } from "../runtime/limits.ts";

const TEXT_AT = 16;

/**
 * Changes with any change to what lies in regions: headers of objects, buckets, rows. What lies in
 * the control segment is not on disk, and has a version of its own (memory/control.ts).
 */
const DISK_LAYOUT_VERSION = 5;
/** 4: no record has edits or rows (engine/journal.ts). 3: also, tables have no seed for their hash, which is then 0 (stores/shards/seed.ts). */
const OLDEST_READABLE_VERSION = 3;

/** `magic` is eight characters of ASCII. */
export function encodeHead(magic: string, content: object): Buffer {
  const text = Buffer.from(JSON.stringify({ layout: DISK_LAYOUT_VERSION, ...content }));
  if (magic.length !== 8 || TEXT_AT + text.length > HEAD_BYTES) {
    throw new RangeError(`the head of a file has ${HEAD_BYTES} bytes`);
  }
  const head = Buffer.alloc(HEAD_BYTES);
  head.write(magic, 0, "latin1");
  head.writeUInt32LE(text.length, 8);
  head.writeUInt32LE(crc32(text), 12);
  text.copy(head, TEXT_AT);
  return head;
}

/** What `encodeHead` was given; or what is wrong with the bytes, for the file of this name. */
export function decodeHead(magic: string, head: Buffer, file: string): object | Damage {
  const wrong = (offset: number, what: string): Damage => ({ file, offset, what });
  if (head.length < HEAD_BYTES) return wrong(head.length, "the file ends within its head");
  const found = head.toString("latin1", 0, 8);
  if (found !== magic) return wrong(0, `it should begin with ${magic}`);
  const length = head.readUInt32LE(8);
  if (length > HEAD_BYTES - TEXT_AT) return wrong(8, "the length of its head is impossible");
  const text = head.subarray(TEXT_AT, TEXT_AT + length);
  if (crc32(text) !== head.readUInt32LE(12)) return wrong(12, "the checksum of its head is wrong");
  const { layout, ...content } = JSON.parse(text.toString("utf8")) as { layout?: number };
  const isReadable = (each: number): boolean =>
    each >= OLDEST_READABLE_VERSION && each <= DISK_LAYOUT_VERSION;
  if (layout !== undefined && isReadable(layout)) return content;
  const has =
    `it holds memory of layout version ${layout}, and this Situ reads ` +
    `${OLDEST_READABLE_VERSION} to ${DISK_LAYOUT_VERSION}`;
  return wrong(TEXT_AT, `${has}: open the store with the Situ that wrote it`);
}

export function isDamage(result: object): result is Damage {
  return "what" in result && "offset" in result && "file" in result;
}
