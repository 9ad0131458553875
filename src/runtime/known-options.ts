/** Options of a caller's, before they are used: an object, and only with names that mean something. */

import { SituError } from "./errors.ts";
import { didYouMean } from "./nearest.ts";
import { show } from "./show.ts";

/** Fails with SITU_CONFIG for what is not an object, and for names that `call` does not know. */
export function refuseUnknownOptions(
  call: string,
  options: unknown,
  known: readonly string[],
): asserts options is object {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new SituError(
      "SITU_CONFIG",
      `${call}: the options are an object, such as { ${known[0]}: … }, not ${show(options)}`,
    );
  }
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const others = known.length === 1 ? `it has only ${known[0]}` : `it has ${known.join(", ")}`;
    throw new SituError(
      "SITU_CONFIG",
      `${call} has no option ${name}${didYouMean(name, known, `; ${others}`)}`,
    );
  }
}
