/**
 * How much has changed since an epoch: by this one decides whether an incremental checkpoint pays. It
 * looks at headers only, and in a large store at some of the blocks, evenly spread, so that it takes
 * milliseconds whatever the size of the store.
 */

import type { Executor } from "../../engine/executor.ts";
import { UnitLook } from "../../memory/blocks.ts";
import { MAX_BLOCK_UNITS } from "../../runtime/limits.ts";
import { CopyPlan } from "./copy.ts";
import { Installs } from "./installs.ts";

/** Groups of units that are looked at, at most. */
const SAMPLED_GROUPS = 256;

/** Bytes that an incremental and a full checkpoint would have; estimated for a large store. */
export function changedBytes(
  executor: Executor,
  sinceEpoch: number,
  sampledGroups = SAMPLED_GROUPS,
): { changed: number; total: number } {
  const { blocks } = executor.slabs;
  const groups = blocks.count / MAX_BLOCK_UNITS;
  const every = Math.max(1, Math.ceil(groups / sampledGroups));
  const plan = new CopyPlan(new Installs(executor));
  const look = new UnitLook();
  let changed = 0;
  let total = 0;
  let seen = 0;
  for (let group = 0; group < groups; group += every) {
    const entered = executor.enter();
    try {
      const start = group * MAX_BLOCK_UNITS;
      for (let unit = start; unit < start + MAX_BLOCK_UNITS; unit++) {
        blocks.look(unit, look);
        if (look.sizeClass < 0) continue;
        const { i32 } = executor.memory.region(blocks.regionIdOf(unit));
        const first = blocks.firstWordOf(unit);
        plan.planChanges(i32, first, look.sizeClass, sinceEpoch);
        changed += plan.payloadBytes;
        plan.planWhole(i32, first, look.sizeClass);
        total += plan.payloadBytes;
      }
    } finally {
      executor.leave(entered);
    }
    seen++;
  }
  const scale = seen === 0 ? 1 : groups / seen;
  return { changed: Math.round(changed * scale), total: Math.round(total * scale) };
}
