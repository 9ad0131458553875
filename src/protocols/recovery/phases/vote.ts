/**
 * Votes (FaRM §5.3, step 6). A primary whose replicas have all taken over what any of them saw tells the
 * settler of a transaction how its partitions vote. The settler asks the other primaries: one that knows
 * nothing of the transaction does not vote by itself.
 *
 *   RECOVERY-VOTE  head, votes: partition and vote of each
 *   reply          nothing
 *   REQUEST-VOTE   head, partitions
 *   reply          a vote for each of them; refused with SITU_OVERLOADED until they can vote
 */

import type { Incoming, NodeId } from "../../../fabric/fabric.ts";
import type { Reader, Writer } from "../../../fabric/wire.ts";
import { MAX_PARTITIONS } from "../../../runtime/limits.ts";
import { RECOVERY_VOTE, REQUEST_VOTE } from "../../kinds.ts";
import { Head } from "../../records.ts";
import { RecoveryMessage, type Round } from "../round.ts";
import { SAW_COMMIT, type Seen } from "../votes.ts";
import type { RecoveringThread } from "./table.ts";

/** For each partition, the strongest that its replicas have seen: its vote follows from it. */
export type Votes = Map<number, Seen>;

export class RecoveryVote extends RecoveryMessage {
  readonly kind = RECOVERY_VOTE;
  readonly #head: Head;
  readonly #votes: Votes;

  constructor(to: NodeId, round: Round, head: Head, votes: Votes) {
    super(to, round);
    this.#head = head;
    this.#votes = votes;
  }

  encode(out: Writer): void {
    this.#head.encode(out);
    out.word(this.#votes.size);
    for (const [partition, seen] of this.#votes) {
      out.word(partition);
      out.word(seen);
    }
  }

  protected decode(_reply: Reader): void {}
}

/** At the settler. */
export function serveVote({ recovery }: RecoveringThread, incoming: Incoming): void {
  const { body } = incoming;
  const head = Head.decode(body);
  const votes: Votes = new Map();
  for (let left = body.count(MAX_PARTITIONS); left > 0; left--) {
    votes.set(body.count(MAX_PARTITIONS), body.count(SAW_COMMIT) as Seen);
  }
  recovery.settle(head, votes);
  incoming.reply();
}

export class RequestVote extends RecoveryMessage {
  readonly kind = REQUEST_VOTE;
  readonly votes: Votes = new Map();
  readonly #head: Head;
  readonly #partitions: readonly number[];

  constructor(to: NodeId, round: Round, head: Head, partitions: readonly number[]) {
    super(to, round);
    this.#head = head;
    this.#partitions = partitions;
  }

  encode(out: Writer): void {
    this.#head.encode(out);
    out.word(this.#partitions.length);
    for (const partition of this.#partitions) out.word(partition);
  }

  protected decode(reply: Reader): void {
    for (const partition of this.#partitions) {
      this.votes.set(partition, reply.count(SAW_COMMIT) as Seen);
    }
  }
}

/** At a primary. */
export function serveRequestVote({ recovery }: RecoveringThread, incoming: Incoming): void {
  const { body } = incoming;
  const { name } = Head.decode(body);
  const partitions: number[] = [];
  for (let left = body.count(MAX_PARTITIONS); left > 0; left--) {
    partitions.push(body.count(MAX_PARTITIONS));
  }
  const votes = partitions.map((partition) => recovery.vote(name, partition));
  const out = incoming.reply();
  for (const vote of votes) out.word(vote);
}
