/**
 * Where each phase of a transaction runs: the table that makes one protocol FaRM's or FaSST's, or a
 * mixture that neither has. Rows are found by verb, which no program of the other node serves, or by
 * message; every kind of message has the thread that serves it. Phases that share state at a node
 * share a thread: what LOCK has prepared there is validated, committed and aborted by the same one, and
 * records are applied by the one that keeps them. One thread finds all that earlier lives have left.
 *
 * FaRM (§3.1, §3.4) reads by verb and leaves the rest to messages, which the host's threads poll for.
 * FaSST (§4, §5) does everything by message, in the host. In Node a message that the host must serve
 * wakes another thread, so both have the NIC worker in the host's place, unless told otherwise.
 */

import { ADMINISTER_KIND, DESCRIBE_KIND, MEMBERSHIP_KIND, type Place } from "../fabric/fabric.ts";
import { assert } from "../runtime/assert.ts";
import {
  ABORT,
  ABORT_RECOVERY,
  BEGIN_SNAPSHOT,
  CALL,
  CALL_OUTCOME,
  COMMIT,
  COMMIT_RECOVERY,
  CUT_SNAPSHOT,
  DECIDE,
  END_SNAPSHOT,
  FETCH_ROWS,
  FETCH_TABLES,
  FETCH_TX_STATE,
  FIND,
  LOCK,
  LOG,
  NEED_RECOVERY,
  OPEN_CALLS,
  OPEN_SESSION,
  OPEN_TABLE,
  OUTCOME,
  READ,
  READ_AT,
  READ_LOCK,
  RECOVERY_VOTE,
  REPLICATE_TX_STATE,
  REQUEST_VOTE,
  SCAN,
  SCAN_AT,
  SETTLE,
  SUBMIT,
  TRUNCATE,
  TRUNCATE_RECOVERY,
  VALIDATE,
} from "./kinds.ts";

/** A thread of a node. */
export type Thread = Exclude<Place, "verb">;

/** Kinds of messages, and the thread that serves each. */
export type Threads = Readonly<Record<number, Thread>>;

export interface Protocol {
  readonly name: string;
  /** How rows are found by their keys. What verbs cannot find is asked for by message. */
  readonly execute: "verb" | "message";
  /** Whether procedures lock rows in the message that reads them. */
  readonly locksOnRead: boolean;
  readonly threads: Threads;
}

const AT_NIC: Threads = {
  [READ]: "nic",
  [SCAN]: "nic",
  [READ_LOCK]: "nic",
  [LOCK]: "nic",
  [VALIDATE]: "nic",
  [COMMIT]: "nic",
  [ABORT]: "nic",
  [LOG]: "nic",
  [TRUNCATE]: "nic",
  [DECIDE]: "nic",
  [FIND]: "nic",
  [SUBMIT]: "nic",
  [OPEN_SESSION]: "nic",
  [OUTCOME]: "nic",
  [OPEN_TABLE]: "nic",
  [NEED_RECOVERY]: "nic",
  [FETCH_TX_STATE]: "nic",
  [REPLICATE_TX_STATE]: "nic",
  [RECOVERY_VOTE]: "nic",
  [REQUEST_VOTE]: "nic",
  [COMMIT_RECOVERY]: "nic",
  [ABORT_RECOVERY]: "nic",
  [TRUNCATE_RECOVERY]: "nic",
  [SETTLE]: "nic",
  [FETCH_TABLES]: "nic",
  [FETCH_ROWS]: "nic",
  [BEGIN_SNAPSHOT]: "nic",
  [CUT_SNAPSHOT]: "nic",
  [END_SNAPSHOT]: "nic",
  [READ_AT]: "nic",
  [SCAN_AT]: "nic",
};

/** Whatever the protocol: procedures are the application's own code, and may take their time. */
const FIXED: Threads = {
  [CALL]: "host",
  [OPEN_CALLS]: "host",
  [CALL_OUTCOME]: "host",
  [DESCRIBE_KIND]: "nic",
  [MEMBERSHIP_KIND]: "nic",
  [ADMINISTER_KIND]: "nic",
};

const AT_HOST: Threads = Object.fromEntries(Object.keys(AT_NIC).map((kind) => [kind, "host"]));

export const PROTOCOLS = {
  "one-sided": { name: "one-sided", execute: "verb", locksOnRead: false, threads: AT_NIC },
  rpc: { name: "rpc", execute: "message", locksOnRead: true, threads: AT_NIC },
} as const satisfies Record<string, Protocol>;

export type ProtocolName = keyof typeof PROTOCOLS;

/** A protocol with all messages served by one thread. One that is not known here reads by message. */
export function protocolOf(name: string, thread: Thread): Protocol {
  const known = Object.hasOwn(PROTOCOLS, name) ? PROTOCOLS[name as ProtocolName] : PROTOCOLS.rpc;
  return withThreads({ ...known, name }, thread === "nic" ? AT_NIC : AT_HOST);
}

/** A protocol with some messages served elsewhere. */
export function withThreads(protocol: Protocol, threads: Threads): Protocol {
  const moved = { ...protocol, threads: { ...protocol.threads, ...threads } };
  const all = [
    LOCK,
    READ_LOCK,
    SUBMIT,
    OUTCOME,
    VALIDATE,
    COMMIT,
    ABORT,
    LOG,
    TRUNCATE,
    DECIDE,
    FIND,
    FETCH_ROWS,
    BEGIN_SNAPSHOT,
    CUT_SNAPSHOT,
    END_SNAPSHOT,
    READ_AT,
    SCAN_AT,
  ];
  assertShared(moved, all, "what LOCK has prepared and LOG has kept");
  assertShared(moved, [OPEN_SESSION, SUBMIT], "a session");
  return moved;
}

/** Which thread serves a kind of message. */
export function threadOf({ threads }: Protocol, kind: number): Thread {
  return FIXED[kind] ?? threads[kind] ?? "nic";
}

function assertShared(protocol: Protocol, kinds: readonly number[], what: string): void {
  const threads = new Set(kinds.map((kind) => threadOf(protocol, kind)));
  assert(threads.size === 1, `${what} is ended by the thread that keeps it`);
}
