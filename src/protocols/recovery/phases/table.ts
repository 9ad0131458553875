/**
 * The messages of recovery, and what serves them (protocols/phases/phases.ts).
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
import type { Handler } from "../../phases/registry.ts";
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

export const RECOVERY_HANDLERS: readonly Handler<RecoveringThread>[] = [
  { kind: NEED_RECOVERY, serve: serveNeedRecovery },
  { kind: FETCH_TX_STATE, serve: serveFetch },
  { kind: REPLICATE_TX_STATE, serve: serveReplicate },
  { kind: RECOVERY_VOTE, serve: serveVote },
  { kind: REQUEST_VOTE, serve: serveRequestVote },
  { kind: COMMIT_RECOVERY, serve: serveOutcome },
  { kind: ABORT_RECOVERY, serve: serveOutcome },
  { kind: TRUNCATE_RECOVERY, serve: serveOutcome },
  { kind: SETTLE, serve: serveSettle },
];
