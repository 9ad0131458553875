/**
 * What a Robin Hood table promises beyond what all shards do: pairs lie in the order of their homes, none reaches the
 * limit, and there is no gap between a home and its pair. Segments are checked in the order of their numbers; one that
 * could not be read leaves those behind it out of the check of the order, up to the next free slot.
 */

import { MAX_DISPLACEMENT, SEGMENT_SLOTS, SHARD_BUCKETS } from "../../runtime/limits.ts";
import { Geometry, homeSlotOf } from "../../stores/robinhood/layout.ts";
import { TAGS } from "../../stores/shards/layout.ts";
import type { ShardRules, Tell } from "./shards.ts";

/** In place of a home: nothing is known of the slot before. */
const UNKNOWN = -2;
const FREE = -1;

export function robinhoodRules(fixedWords: number): ShardRules {
  let nextSegment = 0;
  let before = FREE;
  const lookAtSlot = (tag: number, slot: number, tell: Tell): void => {
    const home = tag === 0 ? FREE : homeSlotOf(tag);
    if (home !== FREE) {
      const displacement = slot - home;
      if (displacement < 0 || displacement >= MAX_DISPLACEMENT) {
        tell(
          `a row lies ${displacement} slots from its home, and must be below ${MAX_DISPLACEMENT}`,
        );
      } else if (before === FREE && displacement > 0) {
        tell(`a row lies ${displacement} slots from its home, behind a free one`);
      } else if (before > home) {
        tell(`a row whose home is slot ${home} lies behind one whose home is slot ${before}`);
      }
    }
    before = home;
  };
  return {
    kind: "robinhood",
    geometry: new Geometry(fixedWords),
    mayLieIn: (home, bucket, isInChain) => home === bucket || (!isInChain && home < bucket),
    opened(i32, block, tell, bucket) {
      if (block >= 0) return;
      if (bucket === 0) before = FREE;
      else if (bucket !== nextSegment) before = UNKNOWN;
      nextSegment = bucket + 1;
      for (let slot = 0; slot < SEGMENT_SLOTS; slot++) {
        lookAtSlot(i32[TAGS + slot], bucket * SEGMENT_SLOTS + slot, tell);
      }
    },
    chain(bucket, blocks, tell) {
      if (blocks > 0 && bucket >= SHARD_BUCKETS) tell("it is no home, and has a chain");
    },
  };
}
