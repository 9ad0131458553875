/**
 * Where the random choices of tests come from. A file asks for its seed here; if one of its tests
 * fails, the command that repeats it is printed with the failure (file-setup.ts).
 *
 *   fixedSeed()    the same one each time
 *   freshSeed()    another one each time
 *   forSeeds()     many of them, one after the other
 *
 * With SITU_SEED set, that is the one.
 */

import { Random } from "../../src/runtime/random.ts";

const given = process.env.SITU_SEED;
let last: number | undefined;
/** The seed that the file asked for when it was loaded, for all of its tests. */
let ofFile: { readonly seed: number | undefined } | undefined;

export function fixedSeed(otherwise = 20_260_101): number {
  if (given === undefined) return otherwise;
  last = Number(given);
  return last;
}

export function freshSeed(): number {
  last = fixedSeed(1 + new Random().below(2 ** 30));
  return last;
}

/** Runs `work` with `count` seeds from `first` on, or only with the one that is given. */
export function forSeeds(count: number, first: number, work: (seed: number) => void): void {
  const from = fixedSeed(first);
  const to = given === undefined ? from + count : from + 1;
  for (let seed = from; seed < to; seed++) {
    last = seed;
    work(seed);
  }
  last = given === undefined ? undefined : from;
}

/** How many times more than usual: the long soaks of tests, with SITU_SOAK=10. */
export const SOAK = Math.max(1, Number(process.env.SITU_SOAK ?? 1));

/** Before a test file is loaded: a process may run several. */
export function startFile(): void {
  last = undefined;
  ofFile = undefined;
}

/** A seed that a test asks for is no other test's. */
export function startTest(): void {
  ofFile ??= { seed: last };
  last = ofFile.seed;
}

/** A shell's command that runs one test again, with its seed if that is not the same each time. */
export function commandToRepeat(file: string, name: string): string {
  const seed = last === undefined ? "" : `SITU_SEED=${last} `;
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const pattern = escaped.replaceAll(" > ", ".+").replaceAll("'", ".");
  return `${seed}npx vitest run ${file} -t '${pattern}'`;
}
