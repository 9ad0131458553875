/** What OBJECT ENCODING says: the form that Redis 7.0 would have, whatever ours is. */

import { HASH } from "../tables.ts";
import { INTEGERS } from "./form.ts";
import { LARGE } from "./large.ts";

/** Of a hash or set, from the value of its key's row. Redis packs no sets but those of integers. */
export function encodingOf(value: Uint8Array, type: number): "listpack" | "intset" | "hashtable" {
  if (type === HASH) return value[0] === LARGE ? "hashtable" : "listpack";
  return value[0] === INTEGERS ? "intset" : "hashtable";
}
