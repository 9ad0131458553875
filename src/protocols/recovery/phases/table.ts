/**
 * The messages of recovery, as in the table of the commit's phases (protocols/phases/table.ts).
 *
 *   message             from      to        when
 *   NEED-RECOVERY       primary   replicas  the configuration is new
 *   FETCH-TX-STATE      primary   replicas  they did not speak of it, or the primary has no record
 *   REPLICATE-TX-STATE  primary   replicas  the partition is served again
 *   RECOVERY-VOTE       primary   settler   all replicas have what any has seen
 *   REQUEST-VOTE        settler   primary   it has not voted
 *   COMMIT-RECOVERY     settler   replicas  all have voted; or ABORT-RECOVERY
 *   TRUNCATE-RECOVERY   settler   replicas  all know the outcome
 *   SETTLE              coordinator  itself  one that lives wants to know the outcome
 *
 * All of them come from nodes of the same configuration: the fabric refuses others.
 */

import type { Disk } from "../../disk.ts";
import {
  ABORT_RECOVERY,
  COMMIT_RECOVERY,
  FETCH_TX_STATE,
  NEED_RECOVERY,
  RECOVERY_VOTE,
  REPLICATE_TX_STATE,
  REQUEST_VOTE,
  SETTLE,
  TRUNCATE_RECOVERY,
} from "../../kinds.ts";
import type { Handler } from "../../phases/table.ts";
import type { Recovery } from "../recovery.ts";
import type { Replica } from "../replica.ts";
import { serveNeedRecovery } from "./need-recovery.ts";
import { serveOutcome } from "./outcome.ts";
import { serveSettle } from "./settle.ts";
import { serveFetch, serveReplicate } from "./tx-state.ts";
import { serveRequestVote, serveVote } from "./vote.ts";

/** What the thread has that keeps the node's records. */
export interface RecoveringThread {
  readonly replica: Replica;
  readonly recovery: Recovery;
  readonly disk: Disk;
}

const FROM_NODES = { sender: "node", begins: false } as const;

export const RECOVERY_PHASES: readonly Handler<RecoveringThread>[] = [
  { kind: NEED_RECOVERY, ...FROM_NODES, serve: serveNeedRecovery },
  { kind: FETCH_TX_STATE, ...FROM_NODES, serve: serveFetch },
  { kind: REPLICATE_TX_STATE, ...FROM_NODES, serve: serveReplicate },
  { kind: RECOVERY_VOTE, ...FROM_NODES, serve: serveVote },
  { kind: REQUEST_VOTE, ...FROM_NODES, serve: serveRequestVote },
  { kind: COMMIT_RECOVERY, ...FROM_NODES, serve: serveOutcome },
  { kind: ABORT_RECOVERY, ...FROM_NODES, serve: serveOutcome },
  { kind: TRUNCATE_RECOVERY, ...FROM_NODES, serve: serveOutcome },
  { kind: SETTLE, sender: "coordinator", begins: false, serve: serveSettle },
];
