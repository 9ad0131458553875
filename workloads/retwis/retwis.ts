/**
 * Retwis, a Twitter-like application, as transactions on objects. The kinds, with what each gets
 * and puts, are those of Zhang et al., "Building Consistent Transactions with Inconsistent
 * Replication" (TAPIR), SOSP 2015, Table 2, and its client (store/benchmark/retwisClient.cc), which
 * reads and writes the drawn keys in their order. Sizes and skew are Xenic's (Schuh et al., SOSP
 * 2021, §5.4): values of 64 bytes, zipf 0.5, a million keys a server.
 *
 * The keys of a transaction are different here, so that what it counts can be told. TAPIR's keys
 * are random texts: popular ones lie anywhere in the key order. Here they are scattered for that.
 */

import { checkObjects } from "../objects/check.ts";
import { objectRows } from "../objects/objects.ts";
import { Plan } from "../objects/plan.ts";
import { ObjectSession } from "../objects/session.ts";
import { type ObjectStore, RETWIS_TEXT_BYTES, RetwisObjects } from "../objects/store.ts";
import { Texts } from "../objects/texts.ts";
import { DRAWS, drawDistinct } from "../random/drawn.ts";
import { Stream } from "../random/stream.ts";
import { Scattered, Zipfian } from "../random/zipfian.ts";
import type { Workload } from "../workload.ts";

interface Kind {
  readonly name: string;
  readonly percent: number;
  readonly gets: number;
  readonly puts: number;
}

const LOAD_TIMELINE = 3;
/** TAPIR, Table 2: rand(1,10) gets. */
const MAX_TIMELINE_GETS = 10;

/** TAPIR, Table 2. */
export const retwisKinds: readonly Kind[] = [
  { name: "add user", percent: 5, gets: 1, puts: 3 },
  { name: "follow", percent: 15, gets: 2, puts: 2 },
  { name: "post tweet", percent: 30, gets: 3, puts: 5 },
  { name: "load timeline", percent: 50, gets: MAX_TIMELINE_GETS, puts: 0 },
];

/** Xenic §5.4. */
export const RETWIS_THETA = 0.5;
const VALUE_BYTES = 64;
const KEY_BYTES = 4;

export interface RetwisOptions {
  /** Transactions of a session that are drawn before the run; a power of two. */
  readonly draws?: number;
}

export function retwis(keys: number, { draws = DRAWS }: RetwisOptions = {}): Workload<ObjectStore> {
  const texts = new Texts(RETWIS_TEXT_BYTES);
  const popularity = new Scattered(new Zipfian(keys, RETWIS_THETA));
  return {
    name: "retwis",
    source: "Xenic (Schuh et al., SOSP 2021), §5.4; TAPIR (Zhang et al., SOSP 2015), Table 2",
    mix: retwisKinds.map(({ name, percent }) => ({ name, percent })),
    tables: [RetwisObjects],
    scale: `${keys.toLocaleString("en")} objects of ${VALUE_BYTES} bytes, zipfian ${RETWIS_THETA}`,
    bytes: keys * (KEY_BYTES + VALUE_BYTES),
    rows: () => objectRows(RetwisObjects, keys, texts),
    session(store, { seed, lane }) {
      const plan = drawRetwis(popularity, draws, new Stream(seed, lane));
      return new ObjectSession(store, plan, texts, lane);
    },
    check: (read, tally) => checkObjects(RetwisObjects, keys, texts, read, tally),
  };
}

export function drawRetwis(popularity: Scattered, draws: number, stream: Stream): Plan {
  const plan = new Plan(draws, MAX_TIMELINE_GETS);
  for (let transaction = 0; transaction < draws; transaction++) {
    const kind = drawKind(stream);
    const { gets, puts } = retwisKinds[kind];
    const reads = kind === LOAD_TIMELINE ? 1 + stream.below(MAX_TIMELINE_GETS) : gets;
    const length = Math.max(reads, puts);
    const first = transaction * plan.stride;
    drawDistinct(popularity, stream, plan.keys, first, length);
    // The client sorts them; whoever locks in this order does not meet another one the other way.
    plan.keys.subarray(first, first + length).sort();
    plan.kinds[transaction] = kind;
    plan.reads[transaction] = reads;
    plan.writes[transaction] = puts;
  }
  return plan;
}

function drawKind(stream: Stream): number {
  let rest = stream.below(100);
  let kind = 0;
  while (rest >= retwisKinds[kind].percent) rest -= retwisKinds[kind++].percent;
  return kind;
}
