/**
 * Makes functions of generated source, and keeps them: the same table is opened by every database of a
 * process, by each of its tools and by each node of a simulated cluster, and V8 begins with a source that it
 * has not seen by parsing and interpreting it. What is kept is the outer function, which knows nothing of
 * any table; each call of it makes the functions of one codec, with buffers of its own. Where a source is
 * used once, as in most processes, V8 still compiles the buffers in as constants.
 */

import { SituError } from "../../runtime/errors.ts";

/** Makes what was generated, of the values that its source names. */
export type Make = (...values: unknown[]) => unknown;

/** Whoever migrates table after table makes new sources for ever: so many are kept, then none. */
const MAX_KEPT = 500;

const kept = new Map<string, { readonly names: string; readonly make: Make }>();

export function compile(source: string, names: readonly string[]): Make {
  const known = kept.get(source);
  if (known?.names === names.join()) return known.make;
  const make = compileAnew(source, names);
  if (kept.size >= MAX_KEPT) kept.clear();
  kept.set(source, { names: names.join(), make });
  return make;
}

function compileAnew(source: string, names: readonly string[]): Make {
  try {
    return new Function(...names, source) as Make;
  } catch (cause) {
    throw new SituError(
      "SITU_UNSUPPORTED",
      "Situ generates code for each table and this process does not allow that: start it " +
        "without --disallow-code-generation-from-strings",
      { cause },
    );
  }
}
