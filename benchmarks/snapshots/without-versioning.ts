// What scripts/bundle.mjs puts in place of src/engine/versioning.ts in the build that keeps no versions.
import type * as versioning from "../../src/engine/versioning.ts";

export const VERSIONING = false;

/** The names that it must have, so that one that is renamed is missed when this is compiled. */
export type Replaced = { readonly [Name in keyof typeof versioning]: boolean };
({ VERSIONING }) satisfies Replaced;
