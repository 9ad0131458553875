/**
 * Need-recovery: a primary asks each replica of its partitions which transactions are in doubt there
 * (FaRM §5.3, step 3; there replicas say it unasked). The reply has them in pieces.
 *
 *   message  how many the primary has got already; partitions, each one
 *   reply    how many are left after these; transactions, and for each: its head (records.ts), then for
 *            each of its partitions that were asked for, in the head's order: what the replica has seen
 */

import type { Incoming, NodeId } from "../../../fabric/fabric.ts";
import type { Reader, Writer } from "../../../fabric/wire.ts";
import { MAX_PARTITIONS, RECOVERY_BATCH } from "../../../runtime/limits.ts";
import { NEED_RECOVERY } from "../../kinds.ts";
import { Head } from "../../records.ts";
import { isRecovering } from "../recovering.ts";
import { RecoveryMessage, type Round } from "../round.ts";
import { SAW_COMMIT, type Seen } from "../votes.ts";
import type { RecoveringThread } from "./table.ts";

/** What a replica has seen of a transaction, in one partition. */
export interface Report {
  readonly head: Head;
  readonly partition: number;
  readonly seen: Seen;
}

export class NeedRecovery extends RecoveryMessage {
  readonly kind = NEED_RECOVERY;
  reports: Report[] = [];
  left = 0;
  got = 0;
  readonly #from: number;
  readonly #partitions: readonly number[];

  constructor(to: NodeId, round: Round, partitions: readonly number[], from = 0) {
    super(to, round);
    this.#partitions = partitions;
    this.#from = from;
  }

  /** Asks for the rest. */
  get next(): NeedRecovery {
    return new NeedRecovery(this.to, this.round, this.#partitions, this.#from + this.got);
  }

  encode(out: Writer): void {
    out.word(this.#from);
    out.word(this.#partitions.length);
    for (const partition of this.#partitions) out.word(partition);
  }

  protected decode(reply: Reader): void {
    const asked = new Set(this.#partitions);
    this.reports = [];
    this.left = reply.count(MAX_LEFT);
    this.got = reply.count(RECOVERY_BATCH);
    for (let i = 0; i < this.got; i++) {
      const head = Head.decode(reply);
      for (const partition of head.partitions) {
        if (!asked.has(partition)) continue;
        this.reports.push({ head, partition, seen: reply.count(SAW_COMMIT) as Seen });
      }
    }
  }
}

const MAX_LEFT = 0x7fffffff;

/** At a replica. What is recovering stays as it is until all partitions have voted, so pieces fit. */
export function serveNeedRecovery(thread: RecoveringThread, incoming: Incoming): void {
  const { body } = incoming;
  const { replica, recovery } = thread;
  const { view } = recovery.current;
  const from = body.count(MAX_LEFT);
  const asked = new Set<number>();
  for (let left = body.count(MAX_PARTITIONS); left > 0; left--) {
    asked.add(body.count(MAX_PARTITIONS));
  }
  const found = [...replica.inDoubt()].filter(
    (head) => head.partitions.some((each) => asked.has(each)) && isRecovering(head, view),
  );
  const piece = found.slice(from, from + RECOVERY_BATCH);
  const out = incoming.reply();
  out.word(Math.max(0, found.length - from - piece.length));
  out.word(piece.length);
  for (const head of piece) {
    head.encode(out);
    for (const partition of head.partitions) {
      if (asked.has(partition)) out.word(replica.seen(head.name, partition));
    }
  }
}
