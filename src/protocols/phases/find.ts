/**
 * Find: a coordinator in a new life asks for the records that its earlier lives have left undecided. From then
 * on nothing of those lives begins here: a message of theirs that comes late finds that it is over. What they
 * have only read and locked is let go, for there is nothing to decide.
 *
 *   message  coordinator, the first sequence of the new life, the last name that was heard of
 *   reply    epoch; whether there are more; how many, and for each: coordinator, sequence, roles
 *            (records.ts), how many partitions it writes, and which
 */

import type { Epoch } from "../../engine/epoch.ts";
import { epochFrom } from "../../engine/epoch.ts";
import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { FIND_BATCH, MAX_NODES, MAX_PARTITIONS } from "../../runtime/limits.ts";
import { FIND } from "../kinds.ts";
import { Message } from "../message.ts";
import { COORDINATORS_PER_NODE, Name } from "../names.ts";
import { AT_BACKUP, AT_PRIMARY, Head, RecordReader } from "../records.ts";
import type { ServingThread } from "./table.ts";

/** What a node has of a transaction. */
export interface Found {
  readonly coordinator: number;
  readonly sequence: number;
  /** AT_PRIMARY, AT_BACKUP, or both. */
  readonly roles: number;
  readonly partitions: readonly number[];
}

export class Find extends Message {
  readonly kind = FIND;
  override readonly isInsistent = true;
  epoch: Epoch = 0;
  hasMore = false;
  found: Found[] = [];
  readonly #coordinator: number;
  readonly #first: number;
  readonly #after: Found | undefined;

  constructor(to: NodeId, coordinator: number, first: number, after: Found | undefined) {
    super(to);
    this.#coordinator = coordinator;
    this.#first = first;
    this.#after = after;
  }

  encode(out: Writer): void {
    out.word(this.#coordinator);
    out.wide(this.#first);
    out.word(this.#after?.coordinator ?? 0);
    out.wide(this.#after?.sequence ?? -1);
  }

  protected decode(reply: Reader): void {
    this.epoch = epochFrom(reply.wide());
    this.hasMore = reply.word() !== 0;
    this.found = [];
    for (let left = reply.count(FIND_BATCH); left > 0; left--) {
      const coordinator = reply.count(MAX_NODES * COORDINATORS_PER_NODE);
      const sequence = reply.wide();
      const roles = reply.count(AT_PRIMARY | AT_BACKUP);
      const partitions: number[] = [];
      for (let more = reply.count(MAX_PARTITIONS); more > 0; more--) {
        partitions.push(reply.count(MAX_PARTITIONS));
      }
      this.found.push({ coordinator, sequence, roles, partitions });
    }
  }
}

/** At any node. */
export function serveFind(thread: ServingThread, incoming: Incoming): void {
  const { body } = incoming;
  const coordinator = body.count(MAX_NODES * COORDINATORS_PER_NODE);
  const first = body.wide();
  const last = { coordinator: body.word(), sequence: body.wide() };
  const found = new Map<string, Found>();
  const node = Math.floor(coordinator / COORDINATORS_PER_NODE);
  for (let each = 0; each < COORDINATORS_PER_NODE; each++) {
    const number = node * COORDINATORS_PER_NODE + each;
    collect(
      thread,
      Object.assign(new Name(), { coordinator: number, sequence: first, low: first }),
      found,
    );
  }
  const sorted = [...found.values()].filter((one) => compare(one, last) > 0).sort(compare);
  const out = incoming.reply();
  out.wide(thread.participant.executor.epochs.current());
  out.word(sorted.length > FIND_BATCH ? 1 : 0);
  out.word(Math.min(sorted.length, FIND_BATCH));
  for (const { coordinator: number, sequence, roles, partitions } of sorted.slice(0, FIND_BATCH)) {
    out.word(number);
    out.wide(sequence);
    out.word(roles);
    out.word(partitions.length);
    for (const partition of partitions) out.word(partition);
  }
}

function collect(
  { participant, backup }: ServingThread,
  name: Name,
  found: Map<string, Found>,
): void {
  const reader = new RecordReader();
  const add = (sequence: number, role: number, record: Int32Array): void => {
    const key = `${name.coordinator} ${sequence}`;
    const roles = (found.get(key)?.roles ?? 0) | role;
    const { partitions } = Head.decode(reader.open(record));
    found.set(key, { coordinator: name.coordinator, sequence, roles, partitions });
  };
  participant.underWay.find(name);
  for (const [sequence, prepared] of participant.underWay.below(name)) {
    if (prepared.record.length > 0) add(sequence, AT_PRIMARY, prepared.record);
    else participant.drop(Object.assign(new Name(), name, { sequence }), prepared);
  }
  if (backup === undefined) return;
  backup.noteLow(name);
  for (const [sequence, logged] of backup.below(name)) add(sequence, AT_BACKUP, logged.record);
}

function compare(
  a: { readonly coordinator: number; readonly sequence: number },
  b: { readonly coordinator: number; readonly sequence: number },
): number {
  return a.coordinator - b.coordinator || a.sequence - b.sequence;
}
