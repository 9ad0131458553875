/** The kinds of messages. Below FIRST_MESSAGE_KIND are the verbs, which no protocol serves. */

import { DESCRIBE_KIND } from "../fabric/fabric.ts";

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
/** From clients, and between the places of a node. */
export const SUBMIT = 23;
export const CALL = 24;
export const OPEN_TABLE = 25;
export const SCAN = 26;

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
  [SUBMIT]: "submit",
  [CALL]: "call",
  [OPEN_TABLE]: "open table",
  [SCAN]: "scan",
  [DESCRIBE_KIND]: "describe",
};
