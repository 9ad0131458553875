/**
 * The tools for stores as wholes, loaded by the first call: a process that only opens a store does not
 * pay for them when it starts.
 */

import type * as tools from "./store-tools.ts";

type Tools = typeof tools;

const load = (): Promise<Tools> => import("./store-tools.ts");

export const verify: Tools["verify"] = async (...given) => (await load()).verify(...given);

export const inspect = (async (...given: Parameters<Tools["inspect"]>) =>
  (await load()).inspect(...given)) as Tools["inspect"];

export const backup: Tools["backup"] = async (...given) => (await load()).backup(...given);

export const restore: Tools["restore"] = async (...given) => (await load()).restore(...given);
