/** Table 2 of Xenic (§4.1.4), counted again, with Situ's own tables beside it. */

import { SEGMENT_SLOTS } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { chainedCost, type LookupCost, robinhoodCost } from "./lookup-cost.ts";

/** As printed in the paper. */
export interface Table2Row {
  readonly name: string;
  readonly paper: LookupCost;
  readonly counted: LookupCost;
}

export const OCCUPANCY = 0.9;
const SEGMENT = 2;
const SLACK = 1;

export function table2(keys: number, seed: number): Table2Row[] {
  const random = new Random(seed);
  const limited = (limit: number, objects: number, roundTrips: number): Table2Row => ({
    name: `Robin Hood, D_m = ${limit} (segments of ${SEGMENT}, k = ${SLACK})`,
    paper: { objects, roundTrips },
    counted: robinhoodCost(
      { keys, occupancy: OCCUPANCY, limit, segmentSlots: SEGMENT, slack: SLACK },
      random,
    ),
  });
  const chained = (slots: number, objects: number, roundTrips: number): Table2Row => ({
    name: `DrTM+H chained, B = ${slots}`,
    paper: { objects, roundTrips },
    counted: chainedCost(keys, OCCUPANCY, slots, random),
  });
  return [
    limited(8, 3.43, 1.07),
    limited(16, 4.13, 1.04),
    limited(32, 4.84, 1.02),
    {
      name: "Robin Hood, no limit (segments of 4, no slack)",
      paper: { objects: 6.39, roundTrips: 1 },
      counted: unlimited(keys, 4, 0, random),
    },
    chained(4, 4.65, 1.16),
    chained(8, 8.81, 1.1),
    chained(16, 16.96, 1.06),
  ];
}

/** What the row without a limit costs under other settings, the paper's being unknown. */
export function unlimited(
  keys: number,
  segmentSlots: number,
  slack: number,
  random: Random,
): LookupCost {
  const limit = Number.POSITIVE_INFINITY;
  return robinhoodCost({ keys, occupancy: OCCUPANCY, limit, segmentSlots, slack }, random);
}

/** The same with the segments and the limit of Situ's own table. */
export function situRobinhood(keys: number, limit: number, seed: number): LookupCost {
  const settings = { keys, occupancy: OCCUPANCY, limit, segmentSlots: SEGMENT_SLOTS, slack: SLACK };
  return robinhoodCost(settings, new Random(seed));
}
