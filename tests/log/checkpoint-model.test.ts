/**
 * Whatever happens while checkpoints are taken: from each of them and the log after it, and from the
 * log alone, the memory is rebuilt as it was.
 */

import "../helpers/engine-all-atomics.ts";

import { expect, test } from "vitest";
import { problemsOf } from "../helpers/checkpoint-model.ts";
import { forSeeds, SOAK } from "../helpers/seed.ts";

const SEEDS = 60 * SOAK;

test("memory is rebuilt from checkpoints and log as it was", () => {
  forSeeds(SEEDS, 1, (seed) => {
    expect(problemsOf(seed).slice(0, 5), `seed ${seed}`).toEqual([]);
  });
});
