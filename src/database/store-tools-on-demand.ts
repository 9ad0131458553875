/**
 * The tools for stores as wholes, loaded by the first call: a process that only opens a store does not
 * pay for them when it starts.
 */

import type * as tools from "./store-tools.ts";

type Tools = typeof tools;

const load = (): Promise<Tools> => import("./store-tools.ts");

/** Checks every checksum on disk, every structure in memory, and every index against its rows. */
export const verify: Tools["verify"] = async (...given) => (await load()).verify(...given);

/** Describes a table of a store, or a file of its log or checkpoints. */
export const inspect = (async (...given: Parameters<Tools["inspect"]>) =>
  (await load()).inspect(...given)) as Tools["inspect"];

/** Copies a store, open or not, to an empty folder; `restore` makes a store of the copy. */
export const backup: Tools["backup"] = async (...given) => (await load()).backup(...given);

/** Lists the threads and processes that have a store open, without opening it. */
export const openers: Tools["openers"] = async (...given) => (await load()).openers(...given);

/** Creates a store from a backup, or from the folder of another store, optionally as of a point in time. */
export const restore: Tools["restore"] = async (...given) => (await load()).restore(...given);
