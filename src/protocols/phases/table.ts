/**
 * The handlers of a commit's phases: READ, LOCK and the others. Each is a file of this folder, with the message,
 * its encoding and the side that serves it. Who may send a message and which phase it belongs to is a row of the table
 * of phases (phases.ts); where that phase runs is the protocol's (places.ts).
 *
 * A thread of a node serves what its `Registry` has: these, SUBMIT and its relatives (cluster/service.ts), and at
 * the host CALL (node/host.ts).
 */

import type { DecisionLog } from "../../tables/served/contract.ts";
import type { BackupRecords } from "../backup-records.ts";
import type { CurrentView } from "../cluster-view.ts";
import type { Disk } from "../disk.ts";
import {
  ABORT,
  BEGIN_SNAPSHOT,
  COMMIT,
  CUT_SNAPSHOT,
  DECIDE,
  END_SNAPSHOT,
  FIND,
  LOCK,
  LOG,
  READ,
  READ_AT,
  READ_LOCK,
  SCAN,
  SCAN_AT,
  TRUNCATE,
  VALIDATE,
} from "../kinds.ts";
import type { Participant } from "../participant.ts";
import { serveAbort } from "./abort.ts";
import { serveCommit } from "./commit.ts";
import { serveDecide } from "./decide.ts";
import { serveFind } from "./find.ts";
import { serveLock } from "./lock.ts";
import { serveLog } from "./log.ts";
import { serveRead, serveReadAt } from "./read.ts";
import { serveReadLock } from "./read-lock.ts";
import type { Handler } from "./registry.ts";
import { serveScan, serveScanAt } from "./scan.ts";
import { serveBeginSnapshot, serveCutSnapshot, serveEndSnapshot } from "./snapshot.ts";
import { serveTruncate } from "./truncate.ts";
import { serveValidate } from "./validate.ts";

/** What a thread of a node has for the phases that it serves. */
export interface ServingThread {
  readonly view: CurrentView;
  readonly participant: Participant;
  /** Only at the one thread that keeps the node's copies for others. */
  readonly backup: BackupRecords | undefined;
  /** What answers wait for. */
  readonly disk: Disk;
  readonly decisions: DecisionLog;
}

export const COMMIT_HANDLERS: readonly Handler<ServingThread>[] = [
  { kind: READ, serve: serveRead },
  { kind: SCAN, serve: serveScan },
  { kind: READ_LOCK, serve: serveReadLock },
  { kind: LOCK, serve: serveLock },
  { kind: VALIDATE, serve: serveValidate },
  { kind: LOG, serve: serveLog },
  { kind: COMMIT, serve: serveCommit },
  { kind: ABORT, serve: serveAbort },
  { kind: TRUNCATE, serve: serveTruncate },
  { kind: DECIDE, serve: serveDecide },
  { kind: FIND, serve: serveFind },
  { kind: BEGIN_SNAPSHOT, serve: serveBeginSnapshot },
  { kind: CUT_SNAPSHOT, serve: serveCutSnapshot },
  { kind: END_SNAPSHOT, serve: serveEndSnapshot },
  { kind: READ_AT, serve: serveReadAt },
  { kind: SCAN_AT, serve: serveScanAt },
];
