/** What hopscotch promises beyond what all shards do. */

import { SHARD_BUCKETS } from "../../runtime/limits.ts";
import { Geometry } from "../../stores/hopscotch/layout.ts";
import type { ShardRules } from "./shards.ts";

export function hopscotchRules(fixedWords: number): ShardRules {
  return {
    kind: "hopscotch",
    geometry: new Geometry(fixedWords),
    mayLieIn: (home, bucket, isInChain) => home === bucket || (!isInChain && home === bucket - 1),
    chain(bucket, blocks, tell) {
      if (blocks > 0 && bucket === SHARD_BUCKETS) tell("it is no home, and has a chain");
    },
  };
}
