/**
 * The rules of Robin Hood hashing on a row of slots, whatever the slots are made of: where a new pair goes, and what
 * moves when one leaves. Slots are known by the homes of their pairs. The store uses these on the segments of a
 * shard (placement.ts); the paper's Table 2 is counted with them on millions of slots (benchmarks/xenic).
 */

/** The home slot of the pair in each slot; below 0 if it is free. Beyond the last slot nothing is free. */
export interface SlotLine {
  readonly slots: number;
  homeAt(slot: number): number;
}

/** Of `findPlace`: no slot below the limit is free. */
export const NO_PLACE = -1;

/** The first free slot for a pair of this home, below `limit` slots from it; NO_PLACE if there is none. */
export function findFree(line: SlotLine, home: number, limit: number): number {
  const end = Math.min(home + limit, line.slots);
  for (let slot = home; slot < end; slot++) if (line.homeAt(slot) < 0) return slot;
  return NO_PLACE;
}

/** Where a new pair goes if `free` is the first free slot: behind all pairs that have its home or an earlier one. */
export function findPlace(line: SlotLine, home: number, free: number): number {
  let slot = free;
  while (slot > home && line.homeAt(slot - 1) > home) slot--;
  return slot;
}

/** The last slot whose pair moves back by one when the pair of `slot` leaves; `slot` itself if none does. */
export function lastToShift(line: SlotLine, slot: number): number {
  let last = slot;
  while (last + 1 < line.slots) {
    const home = line.homeAt(last + 1);
    if (home < 0 || home > last) break;
    last++;
  }
  return last;
}

/** Whether a pair of this home may lie in `slot` in place of the one that is there. */
export function fitsInto(line: SlotLine, slot: number, home: number, limit: number): boolean {
  if (home > slot || slot - home >= limit) return false;
  const before = slot > 0 ? line.homeAt(slot - 1) : -1;
  // Away from its home it must not be the first after a gap, nor lie before one of an earlier home.
  if (before < 0 ? home !== slot : before > home) return false;
  const behind = slot + 1 < line.slots ? line.homeAt(slot + 1) : -1;
  return behind < 0 || home <= behind;
}
