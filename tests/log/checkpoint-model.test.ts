/**
 * Whatever happens while checkpoints are taken: from each of them and the log after it, and from the
 * log alone, the memory is rebuilt as it was. A seed that fails is printed; SITU_SEED=n runs it.
 */

import "../helpers/engine-all-atomics.ts";

import { expect, test } from "vitest";
import { problemsOf } from "../helpers/checkpoint-model.ts";

const SEEDS = 1_000;
const TIMEOUT_MS = 180_000;

test(
  "memory is rebuilt from checkpoints and log as it was",
  () => {
    const only = Number(process.env.SITU_SEED ?? 0);
    const [first, last] = only > 0 ? [only, only] : [1, SEEDS];
    for (let seed = first; seed <= last; seed++) {
      let problems: string[];
      try {
        problems = problemsOf(seed);
      } catch (error) {
        throw new Error(`SITU_SEED=${seed}`, { cause: error });
      }
      expect(problems.slice(0, 5), `SITU_SEED=${seed}`).toEqual([]);
    }
  },
  TIMEOUT_MS,
);
