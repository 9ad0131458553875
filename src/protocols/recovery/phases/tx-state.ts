/**
 * Fetch and replicate the state of a transaction: how the primary of a partition learns what a replica
 * has seen that did not speak of it by itself, gets the writes that it lacks, and brings all replicas to
 * what any of them has seen (FaRM §5.3, steps 4 and 5).
 *
 *   FETCH      name, partition, whether the writes are wanted
 *   reply      what was seen; writes (writes.ts), or 0
 *   REPLICATE  head, partition, the strongest that was seen; writes, or 0
 *   reply      nothing, once it is kept
 */

import type { Incoming, NodeId } from "../../../fabric/fabric.ts";
import type { Reader, Writer } from "../../../fabric/wire.ts";
import { SituError } from "../../../runtime/errors.ts";
import { MAX_ACCESSES, MAX_PARTITIONS } from "../../../runtime/limits.ts";
import { replyWhenKept } from "../../disk.ts";
import { FETCH_TX_STATE, REPLICATE_TX_STATE } from "../../kinds.ts";
import { Name } from "../../names.ts";
import { Head } from "../../records.ts";
import { encodeWrites } from "../../writes.ts";
import type { PartitionWrites } from "../replica.ts";
import { RecoveryMessage, type Round } from "../round.ts";
import { SAW_COMMIT, SAW_NOTHING, type Seen } from "../votes.ts";
import type { RecoveringThread } from "./table.ts";

export class FetchTxState extends RecoveryMessage {
  readonly kind = FETCH_TX_STATE;
  readonly partition: number;
  readonly head: Head;
  seen: Seen = SAW_NOTHING;
  writes: PartitionWrites | undefined;
  readonly #wantsWrites: boolean;

  constructor(to: NodeId, round: Round, head: Head, partition: number, wantsWrites: boolean) {
    super(to, round);
    this.head = head;
    this.partition = partition;
    this.#wantsWrites = wantsWrites;
  }

  encode(out: Writer): void {
    this.head.name.encode(out);
    out.word(this.partition);
    out.word(this.#wantsWrites ? 1 : 0);
  }

  protected decode(reply: Reader): void {
    this.seen = reply.count(SAW_COMMIT) as Seen;
    this.writes = decodeWrites(reply);
  }
}

/** At a replica. */
export function serveFetch({ replica }: RecoveringThread, incoming: Incoming): void {
  const { body } = incoming;
  const name = new Name().decode(body);
  const partition = body.count(MAX_PARTITIONS);
  const wantsWrites = body.word() !== 0;
  const out = incoming.reply();
  out.word(replica.seen(name, partition));
  encodePartition(out, wantsWrites ? replica.writes(name, partition) : undefined);
}

export class ReplicateTxState extends RecoveryMessage {
  readonly kind = REPLICATE_TX_STATE;
  readonly #head: Head;
  readonly #partition: number;
  readonly #seen: Seen;
  readonly #writes: PartitionWrites | undefined;

  constructor(
    to: NodeId,
    round: Round,
    head: Head,
    partition: number,
    seen: Seen,
    writes: PartitionWrites | undefined,
  ) {
    super(to, round);
    this.#head = head;
    this.#partition = partition;
    this.#seen = seen;
    this.#writes = writes;
  }

  encode(out: Writer): void {
    this.#head.encode(out);
    out.word(this.#partition);
    out.word(this.#seen);
    encodePartition(out, this.#writes);
  }

  protected decode(_reply: Reader): void {}
}

/** At a replica. */
export function serveReplicate(thread: RecoveringThread, incoming: Incoming): void {
  const { replica, recovery, disk } = thread;
  const { body } = incoming;
  const head = Head.decode(body);
  recovery.check(head);
  const partition = body.count(MAX_PARTITIONS);
  const seen = body.count(SAW_COMMIT) as Seen;
  try {
    replica.takeOver(head, partition, seen, decodeWrites(body));
  } catch (error) {
    // A node that is being filled gets its tables soon; the sender tries until then.
    if (!(error instanceof SituError) || error.code !== "SITU_UNKNOWN_TABLE") throw error;
    throw new SituError("SITU_OVERLOADED", error.message, { cause: error });
  }
  replyWhenKept(disk, incoming);
}

function encodePartition(out: Writer, writes: PartitionWrites | undefined): void {
  if (writes === undefined) out.word(0);
  else encodeWrites(out, writes.words, writes.count);
}

function decodeWrites(body: Reader): PartitionWrites | undefined {
  const count = body.count(MAX_ACCESSES);
  if (count === 0) return undefined;
  const words = body.count(body.left);
  body.align();
  const at = body.skip(words);
  return { words: body.views.i32.slice(at, at + words), count };
}
