/**
 * The error for words of a region that no commit can have written. Only damage explains them: of a
 * store that was closed, the seal tells (engine/seal.ts); of one that was not, whoever meets them.
 */

import { SituError } from "../runtime/errors.ts";
import type { Region } from "./store-memory.ts";

export function damagedAt(region: Region, word: number, what: string): SituError {
  return new SituError(
    "SITU_CORRUPT",
    `${what}, at word ${word} of region ${region.id}: run verify`,
  );
}
