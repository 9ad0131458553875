/**
 * What a lookup costs that can only read memory: objects read and round trips, as Table 2 of Xenic (§4.1.4) counts them.
 * Keys are uniform, so only their homes matter: a table is a row of homes, and Robin Hood's rules are those of the
 * store (src/stores/robinhood/line.ts).
 *
 *   Robin Hood   one read of d + 1 + k slots from the home on, but not beyond the limit, where d is the largest
 *                displacement of the home's segment and k a slack for what was inserted since; a key in the overflow
 *                takes one read more
 *   chained      buckets of B slots, read one after the other
 *
 * The paper leaves the size of a segment open. With two slots and k = 1 the rows with a limit come out as printed. The
 * row without one does not: there 6.39 is what segments of four slots and no slack give, and the table says so.
 */

import type { Random } from "../../src/runtime/random.ts";
import { findFree, findPlace, NO_PLACE, type SlotLine } from "../../src/stores/robinhood/line.ts";

export interface LookupCost {
  readonly objects: number;
  readonly roundTrips: number;
}

export interface RobinhoodSettings {
  readonly keys: number;
  readonly occupancy: number;
  /** No pair reaches this displacement; infinite for no limit, and then there is no overflow. */
  readonly limit: number;
  readonly segmentSlots: number;
  readonly slack: number;
}

/** Slots behind the last home, for pairs that are displaced beyond it. */
const TAIL = 8_192;

class HomeLine implements SlotLine {
  readonly homes: Int32Array;
  readonly slots: number;

  constructor(slots: number) {
    this.slots = slots;
    this.homes = new Int32Array(slots).fill(-1);
  }

  homeAt(slot: number): number {
    return this.homes[slot];
  }

  insert(home: number, limit: number): boolean {
    const free = findFree(this, home, limit);
    if (free === NO_PLACE) return false;
    const place = findPlace(this, home, free);
    this.homes.copyWithin(place + 1, place, free);
    this.homes[place] = home;
    return true;
  }
}

export function robinhoodCost(settings: RobinhoodSettings, random: Random): LookupCost {
  const { keys, occupancy, limit, segmentSlots, slack } = settings;
  const homes = Math.round(keys / occupancy);
  const line = new HomeLine(homes + TAIL);
  const overflow: number[] = [];
  for (let key = 0; key < keys; key++) {
    const home = random.below(homes);
    if (!line.insert(home, limit)) overflow.push(home);
  }
  const known = new Int32Array(Math.ceil(homes / segmentSlots));
  for (const [slot, home] of line.homes.entries()) {
    if (home < 0) continue;
    const segment = Math.floor(home / segmentSlots);
    known[segment] = Math.max(known[segment], slot - home);
  }
  let objects = 0;
  const read = (home: number): void => {
    const displacement = known[Math.floor(home / segmentSlots)];
    objects += Math.min(displacement + 1 + slack, limit);
  };
  for (const home of line.homes) if (home >= 0) read(home);
  for (const home of overflow) read(home);
  return { objects: objects / keys, roundTrips: 1 + overflow.length / keys };
}

export function chainedCost(
  keys: number,
  occupancy: number,
  slots: number,
  random: Random,
): LookupCost {
  const buckets = Math.round(keys / occupancy / slots);
  const used = new Int32Array(buckets);
  let roundTrips = 0;
  for (let key = 0; key < keys; key++) {
    roundTrips += 1 + Math.floor(used[random.below(buckets)]++ / slots);
  }
  return { objects: (roundTrips * slots) / keys, roundTrips: roundTrips / keys };
}
