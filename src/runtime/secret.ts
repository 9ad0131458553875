/**
 * Proof that one knows a secret without saying it: HMAC-SHA256 over what both sides have said, with
 * a nonce of each, so that a proof is worth nothing on another connection.
 */

import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";

export const NONCE_BYTES = 32;
export const PROOF_BYTES = 32;

export function makeNonce(): Uint8Array {
  return randomBytes(NONCE_BYTES);
}

/** `role` says who proves, so that nobody can be made to prove for the other side. */
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
