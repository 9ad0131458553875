/** TATP: what a mobile network asks its register of subscribers; four fifths of it only read. */

import type { Workload } from "../workload.ts";
import { checkTatp } from "./check.ts";
import { tatpMix } from "./parameters.ts";
import { initialRows, numberOf } from "./rows.ts";
import { TatpSession } from "./session.ts";
import {
  AccessInfo,
  CallForwarding,
  SpecialFacility,
  Subscriber,
  type TatpStore,
} from "./store.ts";

/**
 * With 34 columns a subscriber has 57 bytes. It has 2.5 access rows of 15 bytes and 2.5 facilities of
 * 13, each with 1.5 call forwardings of 22.
 */
const BYTES_PER_SUBSCRIBER = 57 + 2.5 * 15 + 2.5 * (13 + 1.5 * 22);

export function tatp(subscribers: number): Workload<TatpStore> {
  if (!Number.isSafeInteger(subscribers) || subscribers < 1) {
    throw new RangeError(`TATP needs one subscriber or more, not ${subscribers}`);
  }
  let numbers: readonly string[] | undefined;
  const numbersOnce = (): readonly string[] => {
    // Made before anything is measured, and the same for all sessions; nobody is number 0.
    numbers ??= Array.from({ length: subscribers + 1 }, (_, s_id) => numberOf(s_id));
    return numbers;
  };
  return {
    name: "tatp",
    source: "TATP Benchmark Description 1.0, IBM, 2009: population, mix and non-uniform keys",
    mix: tatpMix,
    tables: [Subscriber, AccessInfo, SpecialFacility, CallForwarding],
    scale: `${subscribers.toLocaleString("en")} subscribers, non-uniform keys`,
    bytes: Math.ceil(subscribers * BYTES_PER_SUBSCRIBER),
    rows: () => initialRows(subscribers),
    session: (store, options) => new TatpSession(store, numbersOnce(), options),
    check: (read, tally) => checkTatp(subscribers, read, tally),
  };
}
