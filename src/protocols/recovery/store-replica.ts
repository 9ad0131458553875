/**
 * The replica that a node is: what its participant has locked, and what its backup has logged, as
 * recovery sees them. How a transaction ended at one of them is the truth about all of it, in whichever
 * partition: nobody is told to commit before all can, nor to abort what may be committed.
 *
 * What a node has locked as a primary stays locked. What it has as a backup it cannot lock, should it
 * have become the primary: rows that lie apart at one node may share an object at another. Such a
 * partition is served when its last doubt is settled.
 */

import type { ConfigurationId, NodeId } from "../../fabric/fabric.ts";
import { Writer } from "../../fabric/wire.ts";
import { MAX_NODES } from "../../runtime/limits.ts";
import { nextWrite, partitionAt } from "../../tables/served/requests.ts";
import { type BackupRecords, Told } from "../backup-records.ts";
import type { FillingReplica } from "../copying/copying.ts";
import type { Ends } from "../copying/fetch-ends.ts";
import type { KnownEnds } from "../copying/source.ts";
import {
  ABORTED,
  COMMITTED,
  COORDINATORS_PER_NODE,
  coordinatorNumber,
  Name,
  type TransactionId,
} from "../names.ts";
import { maintainTables, type Participant } from "../participant.ts";
import { AT_BACKUP, Head, RecordReader, recordOf } from "../records.ts";
import { encodeWrites, writesIn } from "../writes.ts";
import type { PartitionWrites, Replica } from "./replica.ts";
import { keyOf } from "./round.ts";
import {
  SAW_ABORT,
  SAW_COMMIT,
  SAW_END,
  SAW_LOCK,
  SAW_LOG,
  SAW_NOTHING,
  type Seen,
  strongest,
} from "./votes.ts";

/** What a record holds. */
interface Opened extends PartitionWrites {
  readonly head: Head;
}

/**
 * A partition that this node fills. It began with nothing, so what the node knows of an earlier transaction from other
 * partitions, even that it is over, says nothing about this one: its writes count as done here when they have come.
 */
interface Fill {
  readonly since: ConfigurationId;
  /** Transactions of earlier configurations whose writes have come. */
  readonly came: Set<string>;
}

/** What other replicas of partitions have seen of a transaction. */
interface Heard {
  readonly id: TransactionId;
  readonly seen: Map<number, Seen>;
}

export class StoreReplica implements Replica, FillingReplica, KnownEnds {
  readonly #participant: Participant;
  readonly #backup: BackupRecords;
  readonly #reader = new RecordReader();
  readonly #out = new Writer();
  /** What other replicas have seen, of what is not settled everywhere. */
  readonly #heard = new Map<string, Heard>();
  /** What is aborted, and locked until all replicas know it. */
  readonly #aborted = new Set<string>();
  readonly #fills = new Map<number, Fill>();

  constructor(participant: Participant, backup: BackupRecords) {
    this.#participant = participant;
    this.#backup = backup;
    participant.underWay.remembersLives = true;
    participant.rememberInstalled();
    backup.rememberLives();
  }

  release(node: NodeId, isInDoubt: (name: Name) => boolean): void {
    const { underWay } = this.#participant;
    for (const thread of ["nic", "host"] as const) {
      const coordinator = coordinatorNumber(node, thread);
      const all = Object.assign(new Name(), { coordinator, sequence: Number.POSITIVE_INFINITY });
      for (const [sequence, prepared] of underWay.below(all)) {
        if (prepared.record.length > 0) continue;
        const name = Object.assign(new Name(), { coordinator, sequence });
        if (!isInDoubt(name)) this.#participant.drop(name, prepared);
      }
    }
  }

  /**
   * This node has become a member, perhaps once more: drops records of partitions of which it is no copy. The
   * others went on without it, and have settled what it has records of.
   */
  keepOnly(isCopy: (partition: number) => boolean): void {
    const { underWay } = this.#participant;
    for (const record of [...this.#records()]) {
      const { head, words } = this.#open(record);
      if (partitionsIn(words).some(isCopy)) continue;
      const name = withoutLow(head.name);
      // It may have two of one transaction, of what it was the primary and a backup of: each is looked at by itself.
      const prepared = underWay.find(name);
      if (prepared?.record === record) this.#participant.discard(name, prepared);
      else this.#backup.discard(name);
    }
  }

  /** This node begins to fill a partition, in a configuration. */
  fills(partition: number, since: ConfigurationId): void {
    this.#fills.set(partition, { since, came: new Set() });
    // It may have begun before, and lost what had come by then.
    for (const { seen } of this.#heard.values()) seen.delete(partition);
  }

  /** It is a copy by now, or has nothing of the partition any more. */
  fillsNoMore(partition: number): void {
    this.#fills.delete(partition);
  }

  *inDoubt(): Generator<Head> {
    const known = new Set<string>();
    for (const record of [...this.#records()]) {
      const { head } = this.#open(record);
      const key = keyOf(head.name);
      if (!known.has(key)) yield head;
      known.add(key);
    }
  }

  seen(given: Name, partition: number): Seen {
    const name = withoutLow(given);
    const { underWay } = this.#participant;
    const logged = this.#backup.find(name);
    const prepared = underWay.find(name);
    const isOver = underWay.isOver(name) || this.#backup.isOver(name);
    let seen =
      this.#heard.get(keyOf(name))?.seen.get(partition) ?? (isOver ? SAW_END : SAW_NOTHING);
    if (this.#writesIn(prepared?.record, partition) !== undefined) {
      seen = strongest(seen, SAW_LOCK);
    }
    // COMMIT has come, and is tried until there is room.
    if (prepared?.isInstalling) seen = strongest(seen, SAW_COMMIT);
    if (this.#writesIn(logged?.record, partition) !== undefined) seen = strongest(seen, SAW_LOG);
    if (this.#aborted.has(keyOf(name))) seen = strongest(seen, SAW_ABORT);
    for (const end of [underWay.endOf(name), this.#backup.endOf(name), logged?.decision]) {
      if (end === COMMITTED) seen = strongest(seen, SAW_COMMIT);
      else if (end === ABORTED) seen = strongest(seen, SAW_ABORT);
    }
    return seen;
  }

  writes(given: Name, partition: number): PartitionWrites | undefined {
    const name = withoutLow(given);
    return (
      this.#writesIn(this.#participant.underWay.find(name)?.record, partition) ??
      this.#writesIn(this.#backup.find(name)?.record, partition)
    );
  }

  orderOf(name: Name): number {
    return this.#backup.find(withoutLow(name))?.arrival ?? -1;
  }

  takeOver(head: Head, partition: number, seen: Seen, writes: PartitionWrites | undefined): void {
    const name = withoutLow(head.name);
    // What has ended here, in whichever role, is not done again: later ones may have written the same rows since.
    const isOver = this.#backup.isOver(name) || this.#participant.underWay.isOver(name);
    const fill = this.#fills.get(partition);
    const isMissing =
      fill !== undefined && head.configurationId < fill.since && !fill.came.has(keyOf(name));
    if (writes !== undefined && this.writes(name, partition) === undefined) {
      if (!isOver || isMissing) this.#keep(head, name, writes);
    }
    if (writes !== undefined) fill?.came.add(keyOf(name));
    this.#note(name, partition, seen);
  }

  #note({ coordinator, sequence }: TransactionId, partition: number, seen: Seen): void {
    const id = { coordinator, sequence };
    const heard = this.#heard.get(keyOf(id)) ?? { id, seen: new Map<number, Seen>() };
    this.#heard.set(keyOf(id), heard);
    heard.seen.set(partition, strongest(heard.seen.get(partition) ?? SAW_NOTHING, seen));
  }

  /**
   * What the primary of partitions that this node fills knows to be committed. The rows that follow have it, and no record
   * of it comes: but for this, the node would say that it has never heard of it. What may be in doubt until a lost
   * partition is back is kept in the store.
   */
  hear({ names, heads }: Ends, partitions: ReadonlySet<number>): void {
    const backup = this.#backup;
    for (const head of heads) {
      const name = withoutLow(head.name);
      if (this.#isUnderWay(name) || backup.isOver(name)) continue;
      backup.keepCommitted(new Head(name, head.configurationId, head.origin, head.partitions));
    }
    for (const each of names) {
      const name = withoutLow(each);
      if (!this.#isUnderWay(name)) backup.commit(name, new Told());
      // Of other partitions there is a record here: how that ends, it is told.
      else for (const partition of partitions) this.#note(name, partition, SAW_COMMIT);
    }
  }

  #isUnderWay(name: Name): boolean {
    return this.#participant.underWay.find(name) !== undefined || this.#backup.isKept(name);
  }

  committedAfter(after: TransactionId, most: number): TransactionId[] {
    const found: TransactionId[] = [];
    const heard = new Map<number, number[]>();
    for (const { id, seen } of this.#heard.values()) {
      if (![...seen.values()].includes(SAW_COMMIT)) continue;
      const sequences = heard.get(id.coordinator);
      if (sequences === undefined) heard.set(id.coordinator, [id.sequence]);
      else sequences.push(id.sequence);
    }
    const last = MAX_NODES * COORDINATORS_PER_NODE;
    for (let { coordinator } = after; coordinator < last; coordinator++) {
      const from = coordinator === after.coordinator ? after.sequence : -1;
      const sequences = new Set([
        ...this.#participant.underWay.endedOf(coordinator, COMMITTED),
        ...this.#backup.committedOf(coordinator),
        ...(heard.get(coordinator) ?? []),
      ]);
      const wanted = [...sequences].filter((sequence) => sequence > from).sort((a, b) => a - b);
      for (const sequence of wanted) {
        if (found.length === most) return found;
        found.push({ coordinator, sequence });
      }
    }
    return found;
  }

  *installed(): Generator<Head> {
    for (const record of [...this.#participant.installed(), ...this.#backup.installed()]) {
      yield this.#open(record).head;
    }
  }

  lock(given: Name, partition: number): boolean {
    const prepared = this.#participant.underWay.find(withoutLow(given));
    return this.#writesIn(prepared?.record, partition) !== undefined;
  }

  isBehind(partition: number): boolean {
    return this.#backup.isBehind(partition);
  }

  commit(given: Name): boolean {
    const name = withoutLow(given);
    const participant = this.#participant;
    const prepared = participant.underWay.find(name);
    if (prepared !== undefined) {
      if (!participant.install(prepared)) return false;
      maintainTables(prepared.tables);
      participant.finish(name, prepared, COMMITTED);
    }
    this.#backup.commit(name, new Told());
    this.#backup.apply();
    return !this.#backup.isKept(name);
  }

  abort(given: Name): void {
    const name = withoutLow(given);
    this.#backup.abort(name, new Told());
    const { underWay } = this.#participant;
    if (underWay.find(name) !== undefined) this.#aborted.add(keyOf(name));
    else if (!underWay.isOver(name)) underWay.end(name, ABORTED);
  }

  forget(given: Name): void {
    const name = withoutLow(given);
    this.#heard.delete(keyOf(name));
    if (!this.#aborted.delete(keyOf(name))) return;
    const prepared = this.#participant.underWay.find(name);
    if (prepared !== undefined) this.#participant.drop(name, prepared);
  }

  /**
   * Of all that is locked here, or logged and not applied. What is known to be committed may wait for others that write
   * the same rows: one who copies must get both, or the later one is missing there.
   */
  *#records(): Generator<Int32Array> {
    for (const { record } of this.#participant.underWay.states()) {
      // What was only locked as it was read has none.
      if (record.length > 0) yield record;
    }
    for (const { record, decision } of this.#backup.records()) {
      if (decision !== ABORTED) yield record;
    }
  }

  /** Keeps what others have logged, with what is logged here of other partitions. */
  #keep(head: Head, name: Name, writes: PartitionWrites): void {
    const before = this.#backup.find(name);
    const others = before && this.#open(before.record);
    const words = new Int32Array((others?.words.length ?? 0) + writes.words.length);
    words.set(others?.words ?? []);
    words.set(writes.words, words.length - writes.words.length);
    const out = this.#out;
    out.clear();
    new Head(name, head.configurationId, head.origin, head.partitions).encode(out);
    encodeWrites(out, words, (others?.count ?? 0) + writes.count);
    const record = recordOf(AT_BACKUP, { views: out.views }, 0, out.at);
    const body = this.#reader.open(record);
    Head.decode(body);
    const rows: number[] = [];
    const { tables } = this.#backup;
    for (const request of writesIn(body)) rows.push(tables.byId(request.table).check(request));
    if (before === undefined) this.#backup.keep(name, record, rows);
    else this.#backup.extend(before, record, rows.slice(others!.count));
  }

  #writesIn(record: Int32Array | undefined, partition: number): PartitionWrites | undefined {
    if (record === undefined || record.length === 0) return undefined;
    const { words } = this.#open(record);
    const found: number[] = [];
    let count = 0;
    for (let at = 0; at < words.length; at = nextWrite(words, at)) {
      if (partitionAt(words, at) !== partition) continue;
      for (let i = at; i < nextWrite(words, at); i++) found.push(words[i]);
      count++;
    }
    return count === 0 ? undefined : { words: Int32Array.from(found), count };
  }

  #open(record: Int32Array): Opened {
    const body = this.#reader.open(record);
    const head = Head.decode(body);
    const count = body.word();
    const words = body.word();
    body.align();
    const at = body.skip(words);
    return { head, count, words: body.views.i32.slice(at, at + words) };
  }
}

function partitionsIn(words: Int32Array): number[] {
  const found = new Set<number>();
  for (let at = 0; at < words.length; at = nextWrite(words, at)) found.add(partitionAt(words, at));
  return [...found];
}

/** To ask for something by name is no word of its coordinator. */
function withoutLow({ coordinator, sequence }: TransactionId): Name {
  return Object.assign(new Name(), { coordinator, sequence, low: 0 });
}
