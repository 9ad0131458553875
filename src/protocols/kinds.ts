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
export const FETCH_ENDS = 62;
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
/** Between compute servers and memory servers (protocols/nam/): all else there is a verb. */
export const NAM_CLAIM = 70;
export const NAM_ORACLE_DONE = 71;
export const NAM_FORM = 72;
export const NAM_ENTER = 73;
export const NAM_EXTENTS = 74;
export const NAM_CATALOGUE = 75;
export const NAM_MEMBERS = 76;
/** From NIC to NIC (protocols/xenic/), each one-way. */
export const XENIC_EXECUTE = 80;
export const XENIC_EXECUTED = 81;
export const XENIC_VALIDATE = 82;
export const XENIC_VALIDATED = 83;
export const XENIC_LOG = 84;
export const XENIC_LOGGED = 85;
export const XENIC_COMMIT = 86;
export const XENIC_COMMITTED = 87;
export const XENIC_ABORT = 88;
export const XENIC_ABORTED = 89;
export const XENIC_SHIP = 90;
export const XENIC_SHIPPED = 91;
export const XENIC_LOW = 92;
export const XENIC_SURVEY = 93;
export const XENIC_SURVEYED = 94;
export const XENIC_DECIDE = 95;
export const XENIC_DECIDED = 96;
export const XENIC_LOG_LENGTH = 97;
/** From clients to NICs (protocols/xenic/client-messages.ts). */
export const XENIC_OPEN_TABLE = 100;
export const XENIC_READ = 101;
export const XENIC_SUBMIT = 102;
export const XENIC_CALL = 103;

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
  [FETCH_ENDS]: "fetch ends",
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
  [NAM_CLAIM]: "claim a thread",
  [NAM_ORACLE_DONE]: "timestamp is done",
  [NAM_FORM]: "form a memory",
  [NAM_ENTER]: "enter a memory",
  [NAM_EXTENTS]: "extents",
  [NAM_CATALOGUE]: "catalogue",
  [NAM_MEMBERS]: "members of a memory",
  [XENIC_EXECUTE]: "execute",
  [XENIC_EXECUTED]: "executed",
  [XENIC_VALIDATE]: "validate at the NIC",
  [XENIC_VALIDATED]: "validated",
  [XENIC_LOG]: "log by the NIC",
  [XENIC_LOGGED]: "logged",
  [XENIC_COMMIT]: "commit at the NIC",
  [XENIC_COMMITTED]: "committed",
  [XENIC_ABORT]: "abort at the NIC",
  [XENIC_ABORTED]: "aborted",
  [XENIC_SHIP]: "ship",
  [XENIC_SHIPPED]: "shipped",
  [XENIC_LOW]: "low",
  [XENIC_SURVEY]: "survey",
  [XENIC_SURVEYED]: "surveyed",
  [XENIC_DECIDE]: "decide for all",
  [XENIC_DECIDED]: "decided",
  [XENIC_LOG_LENGTH]: "length of the log",
  [XENIC_OPEN_TABLE]: "open table at the NIC",
  [XENIC_READ]: "read at the NIC",
  [XENIC_SUBMIT]: "submit to the NIC",
  [XENIC_CALL]: "call at the NIC",
  [DESCRIBE_KIND]: "describe",
  [MEMBERSHIP_KIND]: "membership",
  [ADMINISTER_KIND]: "administer",
};
