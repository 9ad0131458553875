/**
 * FaSST's object store: Kalia et al., "FaSST: Fast, Scalable and Simple Distributed Transactions
 * with Two-Sided (RDMA) Datagram RPCs", OSDI 2016, §6.1. Transactions O(r, w) "read r keys, and
 * update w of these keys (on average)": each key is updated with the chance w / r (write_percentage
 * in app/tx-test/worker.cc of its repository), so the number of updates varies. Keys are uniform.
 * There, those of a transaction have primaries on different machines; here, they are different.
 */

import { Uniform } from "../random/distribution.ts";
import { DRAWS, drawDistinct } from "../random/drawn.ts";
import { Stream } from "../random/stream.ts";
import type { InitialRow, Workload } from "../workload.ts";
import { checkObjects } from "./check.ts";
import { Plan } from "./plan.ts";
import { ObjectSession } from "./session.ts";
import { OBJECT_TEXT_BYTES, type ObjectStore, Objects, type ObjectTable } from "./store.ts";
import { Texts } from "./texts.ts";

export interface ObjectsOptions {
  /** Transactions of a session that are drawn before the run; a power of two. */
  readonly draws?: number;
}

/** §6.1: "8-byte keys and 40-byte values". A key is four bytes here. */
const VALUE_BYTES = 40;
const KEY_BYTES = 4;

/** `keys` objects; §6.1 has a million for each thread of the cluster. */
export function objects(
  reads: number,
  writes: number,
  keys: number,
  { draws = DRAWS }: ObjectsOptions = {},
): Workload<ObjectStore> {
  if (writes > reads) throw new RangeError(`O(${reads}, ${writes}) updates more than it reads`);
  const texts = new Texts(OBJECT_TEXT_BYTES);
  return {
    name: `objects-${reads}-${writes}`,
    source: "FaSST (Kalia et al., OSDI 2016), §6.1",
    mix: [{ name: `O(${reads}, ${writes})`, percent: 100 }],
    tables: [Objects],
    scale: `${keys.toLocaleString("en")} objects of ${VALUE_BYTES} bytes, uniform`,
    bytes: keys * (KEY_BYTES + VALUE_BYTES),
    rows: () => objectRows(Objects, keys, texts),
    session(store, { seed, lane }) {
      const plan = drawObjects(reads, writes, keys, draws, new Stream(seed, lane));
      return new ObjectSession(store, plan, texts, lane);
    },
    check: (read, tally) => checkObjects(Objects, keys, texts, read, tally),
  };
}

export function drawObjects(
  reads: number,
  writes: number,
  keys: number,
  draws: number,
  stream: Stream,
): Plan {
  const plan = new Plan(draws, reads);
  const uniform = new Uniform(keys);
  const chance = writes / reads;
  for (let transaction = 0; transaction < draws; transaction++) {
    drawDistinct(uniform, stream, plan.keys, transaction * reads, reads);
    plan.reads[transaction] = reads;
    // Keys are alike, so those to be updated may as well be the first ones.
    for (let key = 0; key < reads; key++) {
      if (stream.unit() < chance) plan.writes[transaction]++;
    }
  }
  return plan;
}

export function* objectRows(table: ObjectTable, keys: number, texts: Texts): Iterable<InitialRow> {
  for (let key = 0; key < keys; key++) yield { table, row: texts.initialRow(key) };
}
