/**
 * Restores the files of a store to a point in time, in another folder: what recovery makes of them
 * is the store as of the last batch of the log up to the point. The point must not lie before the
 * earliest checkpoint that is there, nor behind damage.
 *
 * A batch is closed within `lagMs` of its commits ("lazy"), or at once ("sync"); so a point given
 * as a time is exact to that, and to the steps of the machine's clock.
 */

import type { StoreFiles } from "../../folder/files.ts";
import { SituError } from "../../runtime/errors.ts";
import { type Copied, type CopyOptions, copyStore } from "./copy.ts";
import type { Point } from "./copy-plan.ts";

export interface RestoreOptions extends CopyOptions, Point {}

/** Copies to an empty folder. Not copied is what names the store (store.json). */
export async function restoreFiles(
  from: StoreFiles,
  to: StoreFiles,
  options: RestoreOptions = {},
): Promise<Copied> {
  const { toMs, toEpoch, ...others } = options;
  for (const [name, value] of Object.entries({ toMs, toEpoch })) {
    if (value === undefined || (Number.isFinite(value) && value >= 0)) continue;
    throw new SituError("SITU_CONFIG", `${name} is a number, 0 or more, not ${value}`);
  }
  return await copyStore(from, to, { toMs, toEpoch }, others);
}
