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
 *   TRUNCATE   backup    once the records are applied, or dropped
 *   DECIDE     itself    once the decision is kept
 *   FIND       anyone    what earlier lives of a coordinator have left
 *   snapshots  every node, from clients (snapshot.ts)
 *
 * A thread of a node serves what its `Handlers` have: these phases, SUBMIT and its relatives
 * (cluster/service.ts), and at the host CALL (node/host.ts).
 */

import type { Incoming } from "../../fabric/fabric.ts";
import { assert } from "../../runtime/assert.ts";
import { SituError } from "../../runtime/errors.ts";
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
  KIND_NAMES,
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
import { requireCoordinator } from "../names.ts";
import type { Participant } from "../participant.ts";
import { serveAbort } from "./abort.ts";
import { serveCommit } from "./commit.ts";
import { serveDecide } from "./decide.ts";
import { serveFind } from "./find.ts";
import { serveLock } from "./lock.ts";
import { serveLog } from "./log.ts";
import { serveRead, serveReadAt } from "./read.ts";
import { serveReadLock } from "./read-lock.ts";
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

export interface Handler<Thread> {
  readonly kind: number;
  /** Of a coordinator's message the body begins with its number: only its own node may send it. */
  readonly sender: "anyone" | "node" | "coordinator";
  /** Whether it begins something here: a node that is being closed refuses it. */
  readonly begins: boolean;
  /** Replies, defers, or throws a SituError, which becomes the reply. */
  serve(thread: Thread, incoming: Incoming): void;
}

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
  { kind: DECIDE, sender: "coordinator", begins: false, serve: serveDecide },
  { kind: FIND, sender: "coordinator", begins: false, serve: serveFind },
  { kind: BEGIN_SNAPSHOT, sender: "anyone", begins: true, serve: serveBeginSnapshot },
  { kind: CUT_SNAPSHOT, sender: "anyone", begins: false, serve: serveCutSnapshot },
  { kind: END_SNAPSHOT, sender: "anyone", begins: false, serve: serveEndSnapshot },
  { kind: READ_AT, sender: "anyone", begins: false, serve: serveReadAt },
  { kind: SCAN_AT, sender: "anyone", begins: false, serve: serveScanAt },
];

export class Handlers<Thread> {
  readonly #byKind = new Map<number, Handler<Thread>>();
  /** Why nothing new is begun any more. */
  #refusal: string | undefined;

  constructor(...tables: (readonly Handler<Thread>[])[]) {
    for (const handlers of tables) for (const handler of handlers) this.add(handler);
  }

  add(handler: Handler<Thread>): void {
    assert(!this.#byKind.has(handler.kind), "one handler serves each kind of message");
    this.#byKind.set(handler.kind, handler);
  }

  /** From now on what would begin something fails with SITU_OVERLOADED: others may try it later. */
  refuseBeginnings(why: string): void {
    this.#refusal = why;
  }

  serve(thread: Thread, incoming: Incoming): void {
    const handler = this.#byKind.get(incoming.kind);
    if (handler === undefined) {
      throw new SituError("SITU_PROTOCOL", `there is no message of kind ${incoming.kind}`);
    }
    if (this.#refusal !== undefined && handler.begins) {
      throw new SituError("SITU_OVERLOADED", this.#refusal);
    }
    if (handler.sender === "coordinator") requireCoordinator(incoming);
    else if (handler.sender === "node" && incoming.from.node < 0) throw onlyNodes(incoming);
    handler.serve(thread, incoming);
  }
}

function onlyNodes({ kind }: Incoming): SituError {
  return new SituError("SITU_PERMISSION", `only nodes send ${KIND_NAMES[kind]}`);
}
