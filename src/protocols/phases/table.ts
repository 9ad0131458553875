/**
 * The phases of a transaction at the nodes that it concerns: which message asks for each, who may send
 * it, and what serves it. Each phase is a file of this folder, with the message, its encoding and the
 * side that serves it. Where a phase runs is a column of the protocol's table (places.ts): moving one
 * to another thread changes that table and nothing here.
 *
 *   phase      at        reply
 *   READ       primary   rows, and the versions they depend on
 *   SCAN       primary   the same, for a step of a scan
 *   READ_LOCK  primary   rows, locked where they can be
 *   LOCK       primary   whether the writes are prepared
 *   VALIDATE   primary   whether what was read is still so
 *   LOG        backup    once the record is kept
 *   COMMIT     primary   once the writes are installed
 *   ABORT      primary   once the locks are released
 *   TRUNCATE   backup    once the records are known to be committed
 */

import { ABORT, COMMIT, LOCK, LOG, READ, READ_LOCK, SCAN, TRUNCATE, VALIDATE } from "../kinds.ts";
import type { Handler, ServingThread } from "../serving.ts";
import { serveAbort } from "./abort.ts";
import { serveCommit } from "./commit.ts";
import { serveLock } from "./lock.ts";
import { serveLog } from "./log.ts";
import { serveRead } from "./read.ts";
import { serveReadLock } from "./read-lock.ts";
import { serveScan } from "./scan.ts";
import { serveTruncate } from "./truncate.ts";
import { serveValidate } from "./validate.ts";

export const PHASES: readonly Handler<ServingThread>[] = [
  { kind: READ, sender: "anyone", begins: false, serve: serveRead },
  { kind: SCAN, sender: "anyone", begins: false, serve: serveScan },
  { kind: READ_LOCK, sender: "coordinator", begins: true, serve: serveReadLock },
  { kind: LOCK, sender: "coordinator", begins: true, serve: serveLock },
  // Clients validate what they have only read; what names a transaction is checked there.
  { kind: VALIDATE, sender: "anyone", begins: false, serve: serveValidate },
  { kind: LOG, sender: "coordinator", begins: false, serve: serveLog },
  { kind: COMMIT, sender: "coordinator", begins: false, serve: serveCommit },
  { kind: ABORT, sender: "coordinator", begins: false, serve: serveAbort },
  { kind: TRUNCATE, sender: "coordinator", begins: false, serve: serveTruncate },
];
