/**
 * What the bucket store promises beyond what all shards do: only a full bucket has a chain, each
 * block says how many there are from it on, no version below a main bucket is later than that of the
 * bucket, which stands for all, and the pointers in slots tell the size of their rows.
 */

import { isLater } from "../../engine/tid.ts";
import { CHAIN_BLOCKS, Geometry, NEXT } from "../../stores/buckets/layout.ts";
import { POINTER_ROW_WORDS } from "../../stores/shards/layout.ts";
import type { ObjectReader } from "./reader.ts";
import type { ShardRules, Tell } from "./shards.ts";

export function bucketsRules(fixedWords: number, reader: ObjectReader): ShardRules {
  const geometry = new Geometry(fixedWords);
  /** The version of the main bucket, and how many blocks its first one says that there are. */
  let main = { high: 0, low: 0 };
  let promised = 0;
  const lookAtVersion = (what: string, { high, low }: typeof main, tell: Tell): void => {
    if (!isLater(high, low, main.high, main.low)) return;
    tell(`${what} has a later version than the main bucket that stands for it`);
  };
  return {
    kind: "buckets",
    geometry,
    mayLieIn: (home, bucket) => home === bucket,
    opened(i32, block, tell) {
      const version = { high: reader.versionHigh, low: reader.versionLow };
      if (block < 0) {
        main = version;
        promised = 0;
        return;
      }
      lookAtVersion("it", version, tell);
      const blocks = i32[CHAIN_BLOCKS];
      if (block === 0) promised = blocks;
      else if (blocks !== promised - block) {
        tell(`it says ${blocks} blocks from it on, the first one ${promised}`);
      }
    },
    holder(i32, block, used, tell) {
      const hasRoom = block < 0 && used < geometry.slots;
      if (hasRoom && i32[NEXT] !== 0) tell("it has room, and a chain");
    },
    chain(_bucket, blocks, tell) {
      if (blocks !== promised) tell(`its chain has ${blocks} blocks, and says ${promised}`);
    },
    rowObject(i32, at, words, tell) {
      lookAtVersion("its row", { high: reader.versionHigh, low: reader.versionLow }, tell);
      const told = i32[at + POINTER_ROW_WORDS];
      if (told !== words) tell(`it says that its row has ${told} words, it has ${words}`);
    },
  };
}
