/** The dependencies of a message: objects, and the versions that somebody has seen of them. */

import type { Reader } from "../fabric/wire.ts";
import { HEADER_WORDS } from "../memory/object.ts";
import type { Region, StoreMemory } from "../memory/store-memory.ts";
import { SituError } from "../runtime/errors.ts";
import { DEPENDENCY_WORDS } from "./writes.ts";

/** Whether something holds for all of them. Refuses places that the store has not. */
export function everyDependency(
  memory: StoreMemory,
  body: Reader,
  holds: (region: Region, word: number, versionHigh: number, versionLow: number) => boolean,
): boolean {
  const count = body.count(body.left / DEPENDENCY_WORDS);
  for (let i = 0; i < count; i++) {
    const regionId = body.word();
    const word = body.word();
    const high = body.word();
    const low = body.word();
    if (!memory.hasRegion(regionId)) throw nowhere(regionId);
    const region = memory.region(regionId);
    if (word < 0 || word + HEADER_WORDS > region.i32.length) throw nowhere(regionId);
    if (!holds(region, word, high, low)) return false;
  }
  return true;
}

function nowhere(regionId: number): SituError {
  return new SituError(
    "SITU_PROTOCOL",
    `a dependency lies in region ${regionId}, but not in the store`,
  );
}
