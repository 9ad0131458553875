/**
 * Where each step of a transaction runs: the table that makes one protocol FaRM's or FaSST's, or a
 * mixture that neither has. Steps that share state at a node (a transaction that is locked there, the
 * records of a backup) share a place.
 *
 * FaRM (§3.1, §3.4) reads by verb and leaves the rest to messages, which the host's threads poll for.
 * FaSST (§4, §5) does everything by message, in the host. In Node a message that the host must serve
 * wakes another thread, so both can be had with the NIC worker in the host's place.
 */

import type { Place } from "../fabric/fabric.ts";

export interface Places {
  readonly name: string;
  /** Finding and reading rows by key. */
  readonly read: Place;
  /** Whether procedures lock rows in the message that reads them. */
  readonly locksOnRead: boolean;
  /** LOCK, COMMIT, ABORT and coordination at a primary. */
  readonly lock: Exclude<Place, "verb">;
  readonly validate: Exclude<Place, "verb">;
  /** LOG and TRUNCATE at a backup. */
  readonly log: Exclude<Place, "verb">;
}

export const PROTOCOLS = {
  "one-sided": {
    name: "one-sided",
    read: "verb",
    locksOnRead: false,
    lock: "nic",
    validate: "nic",
    log: "nic",
  },
  rpc: { name: "rpc", read: "nic", locksOnRead: true, lock: "nic", validate: "nic", log: "nic" },
} as const satisfies Record<string, Places>;

export type ProtocolName = keyof typeof PROTOCOLS;

/** The same table with all messages served by the host's thread. */
export function atHost(places: Places): Places {
  const read = places.read === "verb" ? "verb" : "host";
  return {
    ...places,
    name: `${places.name} at the host`,
    read,
    lock: "host",
    validate: "host",
    log: "host",
  };
}
