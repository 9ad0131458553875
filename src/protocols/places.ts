/**
 * Where each phase of a transaction runs: the table that makes one protocol FaRM's or FaSST's, or a
 * mixture that neither has. A place is a thread of the node that is asked, or none of its programs: a
 * verb. Phases that share state at a node share a place: what LOCK has prepared there is validated,
 * committed and aborted by the same thread, and records are applied by the one that keeps them.
 *
 * FaRM (§3.1, §3.4) reads by verb and leaves the rest to messages, which the host's threads poll for.
 * FaSST (§4, §5) does everything by message, in the host. In Node a message that the host must serve
 * wakes another thread, so both have the NIC worker in the host's place, unless told otherwise.
 */

import type { Place } from "../fabric/fabric.ts";
import { assert } from "../runtime/assert.ts";
import {
  ABORT,
  CALL,
  COMMIT,
  LOCK,
  LOG,
  OPEN_TABLE,
  READ,
  READ_LOCK,
  SCAN,
  SUBMIT,
  TRUNCATE,
  VALIDATE,
} from "./kinds.ts";

/** A thread of a node. */
type Thread = Exclude<Place, "verb">;

export interface Places {
  readonly name: string;
  /** Finding and reading rows by key. */
  readonly execute: Place;
  /** Whether procedures lock rows in the message that reads them. */
  readonly locksOnRead: boolean;
  /** At a primary. Who locks also coordinates what clients submit to the node. */
  readonly lock: Thread;
  readonly validate: Thread;
  readonly commit: Thread;
  readonly abort: Thread;
  /** At a backup. */
  readonly log: Thread;
  readonly truncate: Thread;
}

const BY_MESSAGE = {
  lock: "nic",
  validate: "nic",
  commit: "nic",
  abort: "nic",
  log: "nic",
  truncate: "nic",
} as const;

export const PROTOCOLS = {
  "one-sided": { name: "one-sided", execute: "verb", locksOnRead: false, ...BY_MESSAGE },
  rpc: { name: "rpc", execute: "nic", locksOnRead: true, ...BY_MESSAGE },
} as const satisfies Record<string, Places>;

export type ProtocolName = keyof typeof PROTOCOLS;

/** The table of a protocol, with all messages served by one thread. */
export function placesOf(protocol: ProtocolName, thread: Thread): Places {
  const places: Places = PROTOCOLS[protocol];
  if (thread === "nic") return checked(places);
  return checked({
    ...places,
    name: `${places.name} at the host`,
    execute: places.execute === "verb" ? "verb" : thread,
    lock: thread,
    validate: thread,
    commit: thread,
    abort: thread,
    log: thread,
    truncate: thread,
  });
}

/** Which thread serves a kind of message. */
export function threadOf(places: Places, kind: number): Thread {
  switch (kind) {
    case READ:
    case SCAN:
      // What verbs cannot find is asked for by message.
      return places.execute === "verb" ? places.lock : places.execute;
    case READ_LOCK:
    case LOCK:
    case SUBMIT:
    case OPEN_TABLE:
      return places.lock;
    case VALIDATE:
      return places.validate;
    case COMMIT:
      return places.commit;
    case ABORT:
      return places.abort;
    case LOG:
      return places.log;
    case TRUNCATE:
      return places.truncate;
    case CALL:
      // The application's own code: it may take as long as it likes.
      return "host";
    default:
      return "nic";
  }
}

function checked(places: Places): Places {
  const { lock, validate, commit, abort, log, truncate } = places;
  const isOne = lock === validate && lock === commit && lock === abort;
  assert(isOne, "what LOCK has prepared is ended by the thread that holds it");
  assert(log === truncate, "records are applied by the thread that keeps them");
  return places;
}
