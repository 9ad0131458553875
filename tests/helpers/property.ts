/** fast-check with the seed of the tests: every property of this project is checked through here. */

import * as fc from "fast-check";
import { fixedSeed } from "./seed.ts";

fc.configureGlobal({ seed: fixedSeed() });

export { fc };

/** Checks a property of synchronous code, as often as said or 100 times. */
export function check<Ts>(property: fc.IProperty<Ts>, runs: number | fc.Parameters<Ts> = {}): void {
  fc.assert(property, typeof runs === "number" ? { numRuns: runs } : runs);
}
