/**
 * The phases of a transaction, and the messages that ask for each: what a node needs to know of a message before
 * a handler has it. There is one row for each kind of message. A protocol (places.ts) says for each phase at which
 * place of a node it runs; the handlers are bound to the kinds where they are written (registry.ts).
 *
 *   phase       at        what for
 *   execute     primary   find and read rows: by verb, or by READ and SCAN
 *   lock        primary   prepare writes; READ_LOCK reads rows and locks them
 *   validate    primary   is what was read still so?
 *   log         backup    keep the record
 *   commit      primary   install the writes
 *   abort       primary   release the locks
 *   truncate    backup    apply the records, or drop them
 *   settle      itself    keep a decision; anyone: find what earlier lives of a coordinator have left
 *   coordinate  any node  take an executed transaction to its end, and know its outcome later
 *   snapshot    any node  a snapshot of the cluster, and reads from it
 *   recover     replicas  end what a change of the configuration has left in doubt
 *   copy        primary   give rows to a node that becomes a copy
 *   open        any node  make a table known
 *   call        any node  run a procedure
 *   belong      any node  who are you; and membership
 *
 * Some phases share state at a node: what LOCK has prepared is ended by COMMIT or ABORT, records that LOG has kept are
 * applied by TRUNCATE and found by recovery. A thread keeps that state in memory of its own, so these phases cannot be
 * at different places. `shares` says what it is; a protocol that tears it apart is refused with these words.
 */

import {
  ADMINISTER_KIND,
  DESCRIBE_KIND,
  MEMBERSHIP_KIND,
  type Place,
} from "../../fabric/fabric.ts";
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
  FETCH_ENDS,
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
} from "../kinds.ts";

export interface Phase {
  /** Places where it can run. */
  readonly at: readonly Place[];
  /** State at the node that it has in common with all phases that name the same. */
  readonly shares?: string;
}

const THREADS = ["nic", "host"] as const;
const KEPT = { at: THREADS, shares: "what LOCK has prepared and LOG has kept" } as const;

export const PHASES = {
  // What no verb can find is asked for by message.
  execute: { at: ["verb", ...THREADS] },
  lock: KEPT,
  validate: KEPT,
  log: KEPT,
  commit: KEPT,
  abort: KEPT,
  truncate: KEPT,
  settle: KEPT,
  coordinate: KEPT,
  snapshot: KEPT,
  recover: KEPT,
  copy: KEPT,
  open: { at: THREADS },
  // Procedures are the application's own code, and may take their time.
  call: { at: ["host"] },
  belong: { at: ["nic"] },
} as const satisfies Record<string, Phase>;

export type PhaseName = keyof typeof PHASES;

/** Who may send a message. Of a coordinator's the body begins with its number: only its own node may send it. */
export type AllowedSender = "anyone" | "node" | "coordinator";

export interface MessageRow {
  readonly kind: number;
  readonly phase: PhaseName;
  readonly sender: AllowedSender;
  /** Whether it begins something: a node that is being closed refuses it. */
  readonly begins?: true;
  /** Whether it says something of rows, and changes nothing. */
  readonly isReading?: true;
  /** Whether a node serves it without a lease. */
  readonly needsNoLease?: true;
}

const RECOVERY = { phase: "recover", sender: "node", needsNoLease: true } as const;
const COPYING = { phase: "copy", sender: "node" } as const;
const FROM_COORDINATOR = { sender: "coordinator" } as const;
const FROM_ANYONE = { sender: "anyone" } as const;

export const MESSAGES: readonly MessageRow[] = [
  { kind: READ, phase: "execute", ...FROM_ANYONE, isReading: true },
  { kind: SCAN, phase: "execute", ...FROM_ANYONE, isReading: true },
  { kind: READ_LOCK, phase: "lock", ...FROM_COORDINATOR, begins: true },
  { kind: LOCK, phase: "lock", ...FROM_COORDINATOR, begins: true },
  // Clients validate what they have only read; what names a transaction is checked there.
  { kind: VALIDATE, phase: "validate", ...FROM_ANYONE, isReading: true },
  { kind: LOG, phase: "log", ...FROM_COORDINATOR },
  { kind: COMMIT, phase: "commit", ...FROM_COORDINATOR },
  { kind: ABORT, phase: "abort", ...FROM_COORDINATOR },
  { kind: TRUNCATE, phase: "truncate", ...FROM_COORDINATOR },
  { kind: DECIDE, phase: "settle", ...FROM_COORDINATOR },
  { kind: FIND, phase: "settle", ...FROM_COORDINATOR },
  { kind: SUBMIT, phase: "coordinate", ...FROM_ANYONE, begins: true },
  { kind: OPEN_SESSION, phase: "coordinate", ...FROM_ANYONE, begins: true },
  { kind: OUTCOME, phase: "coordinate", ...FROM_ANYONE },
  { kind: BEGIN_SNAPSHOT, phase: "snapshot", ...FROM_ANYONE, begins: true },
  { kind: CUT_SNAPSHOT, phase: "snapshot", ...FROM_ANYONE },
  { kind: END_SNAPSHOT, phase: "snapshot", ...FROM_ANYONE },
  { kind: READ_AT, phase: "snapshot", ...FROM_ANYONE, isReading: true },
  { kind: SCAN_AT, phase: "snapshot", ...FROM_ANYONE, isReading: true },
  { kind: NEED_RECOVERY, ...RECOVERY },
  { kind: FETCH_TX_STATE, ...RECOVERY },
  { kind: REPLICATE_TX_STATE, ...RECOVERY },
  { kind: RECOVERY_VOTE, ...RECOVERY },
  { kind: REQUEST_VOTE, ...RECOVERY },
  { kind: COMMIT_RECOVERY, ...RECOVERY },
  { kind: ABORT_RECOVERY, ...RECOVERY },
  { kind: TRUNCATE_RECOVERY, ...RECOVERY },
  { kind: SETTLE, ...RECOVERY, ...FROM_COORDINATOR },
  { kind: FETCH_TABLES, ...COPYING },
  { kind: FETCH_ENDS, ...COPYING },
  { kind: FETCH_ROWS, ...COPYING },
  { kind: OPEN_TABLE, phase: "open", ...FROM_ANYONE },
  { kind: CALL, phase: "call", ...FROM_ANYONE, begins: true },
  { kind: OPEN_CALLS, phase: "call", ...FROM_ANYONE, begins: true },
  { kind: CALL_OUTCOME, phase: "call", ...FROM_ANYONE },
  { kind: DESCRIBE_KIND, phase: "belong", ...FROM_ANYONE, needsNoLease: true },
  { kind: MEMBERSHIP_KIND, phase: "belong", sender: "node", needsNoLease: true },
  { kind: ADMINISTER_KIND, phase: "belong", ...FROM_ANYONE },
];

const BY_KIND: (MessageRow | undefined)[] = new Array(256).fill(undefined);
for (const row of MESSAGES) BY_KIND[row.kind] = row;

/** The row of a kind of message; undefined for verbs and for what does not exist. */
export function messageOf(kind: number): MessageRow | undefined {
  return BY_KIND[kind];
}
