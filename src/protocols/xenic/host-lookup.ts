/**
 * Finding a row in the host's table from its NIC, by reads over the bus (Xenic §4.1.3): which slots to read, given what
 * the NIC knows of the segment, and what to learn from the answer. It is a coroutine: it yields reads and is given what
 * they found, and so knows nothing of how memory is reached.
 *
 *   1. from the home slot on, as far as rows of the segment are known to lie, and a slack of one slot more, for what
 *      has been inserted since the NIC looked last
 *   2. the rest up to the limit, unless the order of the slots says that it is not there
 *   3. the chain, if the segment has one; before 2 if rows of the segment were seen there before
 *
 * A key that is found nowhere is absent. The hint may be old; then it costs a read more, and is better afterwards.
 */

import { DISPLACEMENT_SLACK, MAX_DISPLACEMENT } from "../../runtime/limits.ts";
import type { CachingIndex } from "./caching-index.ts";

export type HostRead =
  | { readonly kind: "slots"; readonly from: number; readonly count: number }
  | { readonly kind: "chain" };

/** What a read found. */
export interface HostAnswer {
  /** How far from the beginning of what was read the row lies; below 0 if it is not there. */
  readonly found: number;
  /** Whether the order of the slots says that the row can only be in the chain, if anywhere. */
  readonly isOver: boolean;
  /** Whether the home segment has a chain. */
  readonly hasChain: boolean;
}

export interface HostLookup {
  /** Undefined if it is in the chain. */
  readonly displacement: number | undefined;
  readonly isThere: boolean;
  readonly reads: number;
  /** Slots that were read. */
  readonly slots: number;
}

export function* lookUpInHost(
  index: CachingIndex,
  segment: number,
  home: number,
): Generator<HostRead, HostLookup, HostAnswer> {
  const known = index.knownDisplacement(segment);
  const first = Math.min(known + 1 + DISPLACEMENT_SLACK, MAX_DISPLACEMENT);
  const rest = MAX_DISPLACEMENT - first;
  const seen = yield { kind: "slots", from: home, count: first };
  if (seen.found >= 0) {
    index.learn(segment, seen.found);
    return { displacement: seen.found, isThere: true, reads: 1, slots: first };
  }
  let reads = 1;
  let slots = first;
  // What is known to overflow is more likely there than further away than any row that was seen.
  const isChainFirst = seen.hasChain && index.overflows(segment);
  if (isChainFirst) {
    reads++;
    if ((yield { kind: "chain" }).found >= 0) return inChain(reads, slots);
  }
  if (!seen.isOver && rest > 0) {
    reads++;
    slots += rest;
    const { found } = yield { kind: "slots", from: home + first, count: rest };
    if (found >= 0) {
      index.learn(segment, first + found);
      return { displacement: first + found, isThere: true, reads, slots };
    }
  }
  if (seen.hasChain && !isChainFirst) {
    reads++;
    index.learn(segment, MAX_DISPLACEMENT);
    if ((yield { kind: "chain" }).found >= 0) return inChain(reads, slots);
  }
  return { displacement: undefined, isThere: false, reads, slots };
}

function inChain(reads: number, slots: number): HostLookup {
  return { displacement: undefined, isThere: true, reads, slots };
}
