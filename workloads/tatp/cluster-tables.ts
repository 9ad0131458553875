/**
 * TATP's subscribers on a cluster, which has no unique index but the key: there the way from a number
 * to its subscriber is a table of its own, as in FaSST's code.
 */

import { str, table, u32 } from "situ";
import { NUMBER_DIGITS } from "./parameters.ts";
import { subscriberFields } from "./store.ts";

export const ClusterSubscriber = table("subscriber", subscriberFields, { key: "s_id" });
export const SubscriberNumber = table(
  "subscriber_number",
  { sub_nbr: str(NUMBER_DIGITS), s_id: u32() },
  { key: "sub_nbr" },
);
