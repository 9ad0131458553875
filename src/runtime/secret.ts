/** Secrets: what is derived from them, and comparisons whose time says nothing. */

import { createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";

export const NONCE_BYTES = 32;
export const PROOF_BYTES = 32;

export function makeNonce(): Uint8Array {
  return randomBytes(NONCE_BYTES);
}

/** All that two sides have said to each other, and keys that only one who knows a secret can derive from it. */
export class Transcript {
  readonly #hash = createHash("sha256");
  #digest: Buffer | undefined;

  /** The pieces must say themselves where they end. */
  add(bytes: Uint8Array): void {
    this.#hash.update(bytes);
  }

  /** A key for one use, by HKDF (RFC 5869). Nothing can be added afterwards. */
  derive(secret: string, use: string, bytes: number): Uint8Array {
    this.#digest ??= this.#hash.digest();
    const info = Buffer.concat([Buffer.from(`${use}\0`), this.#digest]);
    return new Uint8Array(hkdfSync("sha256", secret, new Uint8Array(0), info, bytes));
  }
}

/** Of single messages without a transcript. `role` says what they are, so that they serve for nothing else. */
export function prove(secret: string, role: string, said: Uint8Array): Uint8Array {
  return createHmac("sha256", secret).update(role).update("\0").update(said).digest();
}

/** Takes the same time wherever they differ. */
export function isProof(given: Uint8Array, wanted: Uint8Array): boolean {
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

/** Whether what was given is the secret; the time says nothing, not even about its length. */
export function isSecret(given: Uint8Array, secret: string): boolean {
  const wanted = createHash("sha256").update(secret).digest();
  return timingSafeEqual(createHash("sha256").update(given).digest(), wanted);
}
