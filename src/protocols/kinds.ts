/** The kinds of messages. Below FIRST_MESSAGE_KIND are the verbs, which no protocol serves. */

import { ADMINISTER_KIND, DESCRIBE_KIND, MEMBERSHIP_KIND } from "../fabric/fabric.ts";

export const READ = 16;
export const LOCK = 17;
export const VALIDATE = 18;
export const LOG = 19;
export const COMMIT = 20;
export const ABORT = 21;
export const TRUNCATE = 22;
export const READ_LOCK = 27;
export const FIND = 28;
export const DECIDE = 29;
/** Of recovery (recovery/phases/table.ts). */
export const NEED_RECOVERY = 48;
export const FETCH_TX_STATE = 49;
export const REPLICATE_TX_STATE = 50;
export const RECOVERY_VOTE = 51;
export const REQUEST_VOTE = 52;
export const COMMIT_RECOVERY = 53;
export const ABORT_RECOVERY = 54;
export const TRUNCATE_RECOVERY = 55;
export const SETTLE = 56;
/** Of copying (copying/phases.ts). */
export const FETCH_TABLES = 60;
export const FETCH_ROWS = 61;
/** From clients, and between the places of a node. */
export const SUBMIT = 23;
export const CALL = 24;
export const OPEN_TABLE = 25;
export const SCAN = 26;
/** Snapshots of the cluster, and reading from them. */
export const BEGIN_SNAPSHOT = 30;
export const CUT_SNAPSHOT = 31;
export const END_SNAPSHOT = 32;
export const READ_AT = 33;
export const SCAN_AT = 34;
/** Open sessions, at the thread that serves SUBMIT and at the one that serves CALL. */
export const OPEN_SESSION = 40;
export const OPEN_CALLS = 41;
/** What became of a request whose node has left, at the same two threads. */
export const OUTCOME = 42;
export const CALL_OUTCOME = 43;

/** As people call them, for traces and counts. */
export const KIND_NAMES: Readonly<Record<number, string>> = {
  [READ]: "read",
  [READ_LOCK]: "read and lock",
  [LOCK]: "lock",
  [VALIDATE]: "validate",
  [LOG]: "log",
  [COMMIT]: "commit",
  [ABORT]: "abort",
  [TRUNCATE]: "truncate",
  [FIND]: "find",
  [DECIDE]: "decide",
  [NEED_RECOVERY]: "need recovery",
  [FETCH_TX_STATE]: "fetch state",
  [REPLICATE_TX_STATE]: "replicate state",
  [RECOVERY_VOTE]: "recovery vote",
  [REQUEST_VOTE]: "request vote",
  [COMMIT_RECOVERY]: "commit recovery",
  [ABORT_RECOVERY]: "abort recovery",
  [TRUNCATE_RECOVERY]: "truncate recovery",
  [SETTLE]: "settle",
  [FETCH_TABLES]: "fetch tables",
  [FETCH_ROWS]: "fetch rows",
  [SUBMIT]: "submit",
  [CALL]: "call",
  [OPEN_TABLE]: "open table",
  [SCAN]: "scan",
  [BEGIN_SNAPSHOT]: "begin snapshot",
  [CUT_SNAPSHOT]: "cut snapshot",
  [END_SNAPSHOT]: "end snapshot",
  [READ_AT]: "read at snapshot",
  [SCAN_AT]: "scan at snapshot",
  [OPEN_SESSION]: "open session",
  [OPEN_CALLS]: "open session of calls",
  [OUTCOME]: "outcome",
  [CALL_OUTCOME]: "outcome of a call",
  [DESCRIBE_KIND]: "describe",
  [MEMBERSHIP_KIND]: "membership",
  [ADMINISTER_KIND]: "administer",
};
