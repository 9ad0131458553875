/**
 * Tags for messages in one direction between two who share a key: each tag depends on the key, on the
 * bytes of its message and on how many messages came before it. So a message that was changed, repeated,
 * left out or moved has another tag than the one it comes with.
 *
 * Most messages are short, and a call of node:crypto costs some microseconds however short they are. So
 * there are two ways to a tag, with keys of their own; the length decides:
 *
 *   short   Poly1305 with a key that is used once: the next 32 bytes of an AES-256-CTR stream, which is
 *           made for many messages at a time. The message is filled up with zeroes to whole blocks, and
 *           followed by a block with its length and number.
 *   long    AES-256-GCM without a text, the message as what is only authenticated, its number as nonce.
 */

import { createCipheriv, createSecretKey, type KeyObject } from "node:crypto";
import {
  POLY1305_BLOCK_WORDS,
  POLY1305_KEY_WORDS,
  POLY1305_TAG_WORDS,
  poly1305,
} from "./poly1305.ts";

export const TAG_BYTES = 4 * POLY1305_TAG_WORDS;
export const TAG_KEY_BYTES = 64;

/** Where both ways cost the same: some four microseconds. */
const SHORT_BYTES = 2_048;
const BLOCK_BYTES = 4 * POLY1305_BLOCK_WORDS;
/** Of the stream of keys for short messages, what is made at a time. */
const KEYS_AT_A_TIME = 64;
const ZEROES = new Uint8Array(4 * POLY1305_KEY_WORDS * KEYS_AT_A_TIME);
const NONCE_BYTES = 12;
const WORD = 2 ** 32;

/** One message at a time, of whichever stream, at an even address. */
const message = new Int32Array((SHORT_BYTES + BLOCK_BYTES) / 4);
const messageBytes = new Uint8Array(message.buffer);

export class TagStream {
  /** The last tag. */
  readonly tag = new Uint8Array(TAG_BYTES);
  readonly #words = new Int32Array(this.tag.buffer);
  readonly #keyStream: ReturnType<typeof createCipheriv>;
  readonly #longKey: KeyObject;
  readonly #nonce = new DataView(new ArrayBuffer(NONCE_BYTES));
  #keys = new Int32Array(0);
  #nextKey = 0;
  #sequence = 0;

  constructor(key: Uint8Array) {
    const half = TAG_KEY_BYTES / 2;
    const counter = new Uint8Array(16);
    this.#keyStream = createCipheriv("aes-256-ctr", key.subarray(0, half), counter);
    this.#longKey = createSecretKey(key.subarray(half, TAG_KEY_BYTES));
  }

  /** The tag of the next message goes to `tag`. */
  next(bytes: Uint8Array): void {
    if (bytes.length <= SHORT_BYTES) this.#short(bytes);
    else this.#long(bytes);
    this.#sequence++;
  }

  #short(bytes: Uint8Array): void {
    const { length } = bytes;
    const filled = (length + BLOCK_BYTES - 1) & -BLOCK_BYTES;
    messageBytes.set(bytes);
    messageBytes.fill(0, length, filled);
    const at = filled / 4;
    message[at] = length;
    message[at + 1] = 0;
    message[at + 2] = this.#sequence % WORD;
    message[at + 3] = this.#sequence / WORD;
    if (this.#nextKey === this.#keys.length) this.#moreKeys();
    poly1305(this.#words, this.#keys, this.#nextKey, message, at + POLY1305_BLOCK_WORDS);
    // Nobody needs it again.
    this.#keys.fill(0, this.#nextKey, this.#nextKey + POLY1305_KEY_WORDS);
    this.#nextKey += POLY1305_KEY_WORDS;
  }

  #long(bytes: Uint8Array): void {
    this.#nonce.setFloat64(0, this.#sequence);
    const cipher = createCipheriv("aes-256-gcm", this.#longKey, this.#nonce);
    cipher.setAAD(bytes);
    cipher.final();
    this.tag.set(cipher.getAuthTag());
  }

  #moreKeys(): void {
    // A copy: what node:crypto returns need not begin at a whole word.
    this.#keys = new Int32Array(new Uint8Array(this.#keyStream.update(ZEROES)).buffer);
    this.#nextKey = 0;
  }
}
