/**
 * Fetch ends: one who copies partitions asks their primary which transactions it knows to be committed, before it asks
 * for rows. The rows have what these have written; a record of one of them may still be in doubt elsewhere, and
 * whoever settles that asks the copies of all written partitions (recovery/votes.ts). A new copy that knew nothing would
 * answer like one that had never been asked to lock.
 *
 *   message  1 for the first piece; coordinator and sequence, behind which to begin; how many partitions, and which
 *   reply    OK or LOCKED; with OK: 1 if there are more; how many names, and the coordinator and sequence of each; how
 *            many heads (records.ts), and each: with the first piece, of those that write partitions that are lost
 */

import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { COPY_STEP_NAMES, MAX_NODES, MAX_PARTITIONS, RECORD_SLOTS } from "../../runtime/limits.ts";
import { nonsense } from "../../tables/served/requests.ts";
import { FETCH_ENDS } from "../kinds.ts";
import { LOCKED, Message, OK } from "../message.ts";
import { COORDINATORS_PER_NODE, type TransactionId } from "../names.ts";
import { Head } from "../records.ts";
import type { CopySource } from "./source.ts";

/** In the slots of locks, of each thread, and of copies; and some to spare. */
const MOST_HEADS = 4 * RECORD_SLOTS;

/** Behind this one are all. */
export const NO_TRANSACTION: TransactionId = { coordinator: 0, sequence: -1 };

/** What one who copies learns of how transactions have ended. */
export interface Ends {
  readonly names: readonly TransactionId[];
  /** Of those of them that may be in doubt for long. */
  readonly heads: readonly Head[];
}

export class FetchEnds extends Message implements Ends {
  readonly kind = FETCH_ENDS;
  outcome = OK;
  hasMore = false;
  names: TransactionId[] = [];
  heads: Head[] = [];
  readonly #after: TransactionId;
  readonly #partitions: readonly number[];

  constructor(to: NodeId, after: TransactionId, partitions: readonly number[]) {
    super(to);
    this.#after = after;
    this.#partitions = partitions;
  }

  encode(out: Writer): void {
    out.word(this.#after === NO_TRANSACTION ? 1 : 0);
    out.word(this.#after.coordinator);
    out.wide(this.#after.sequence);
    out.word(this.#partitions.length);
    for (const partition of this.#partitions) out.word(partition);
  }

  protected decode(reply: Reader): void {
    this.names = [];
    this.heads = [];
    this.outcome = reply.word();
    if (this.outcome !== OK) return;
    this.hasMore = reply.word() === 1;
    for (let left = reply.count(COPY_STEP_NAMES); left > 0; left--) {
      const coordinator = reply.count(MAX_NODES * COORDINATORS_PER_NODE);
      const sequence = reply.wide();
      if (!Number.isSafeInteger(sequence)) throw nonsense();
      this.names.push({ coordinator, sequence });
    }
    for (let left = reply.count(MOST_HEADS); left > 0; left--) this.heads.push(Head.decode(reply));
  }
}

/** At the primary. */
export function serveFetchEnds(source: CopySource, incoming: Incoming): void {
  const { body } = incoming;
  const isFirst = body.word() === 1;
  const coordinator = body.count(MAX_NODES * COORDINATORS_PER_NODE);
  const sequence = body.wide();
  const partitions = new Set<number>();
  for (let left = body.count(MAX_PARTITIONS); left > 0; left--) {
    partitions.add(body.count(MAX_PARTITIONS));
  }
  const ends = source.ends(partitions, { coordinator, sequence }, COPY_STEP_NAMES, isFirst);
  const out = incoming.reply();
  if (ends === undefined) {
    out.word(LOCKED);
    return;
  }
  const { names, heads } = ends;
  out.word(OK);
  out.word(names.length === COPY_STEP_NAMES ? 1 : 0);
  out.word(names.length);
  for (const name of names) {
    out.word(name.coordinator);
    out.wide(name.sequence);
  }
  out.word(heads.length);
  for (const head of heads) head.encode(out);
}
