/** The counters of an end that has just been opened. */

import type { FabricCounters } from "./fabric.ts";

export function freshCounters(): FabricCounters {
  return {
    requestsSent: 0,
    requestsServed: 0,
    repliesReceived: 0,
    writes: 0,
    lost: 0,
    stale: 0,
    overloaded: 0,
    refused: {},
    connections: 0,
  };
}
