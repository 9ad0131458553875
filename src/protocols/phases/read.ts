/**
 * Execute, by message (FaSST §5, phase 1): rows by key. All keys of one message are read as one local
 * read-only transaction, so that a transaction that reads with a single message needs no
 * validation.
 *
 *   message  keys, and for each: table, partition, key
 *   reply    OK or LOCKED; with OK: epoch, dependencies, and for each key the words of its row, and
 *            the row from an even word on; 0 words: absent
 *
 * READ_AT is the same from a snapshot of the cluster (snapshot.ts). Before the keys it has the name of the snapshot,
 * and whether the rows are to be written. Then the reply is LOCKED if one was changed after the snapshot, and only
 * then are there dependencies: what is only read from a snapshot need not be validated.
 */

import type { AccessSet } from "../../engine/access-set.ts";
import {
  ENTRY_WORDS,
  KIND,
  READ as READ_ENTRY,
  REGION_ID,
  VERSION_HIGH,
  VERSION_LOW,
  WORD,
  WRITE,
} from "../../engine/access-set.ts";
import type { Epoch } from "../../engine/epoch.ts";
import { isSignal } from "../../engine/signals.ts";
import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_ACCESSES } from "../../runtime/limits.ts";
import { decodeRead, encodeRead, type ReadRequest } from "../../tables/served/requests.ts";
import { READ, READ_AT } from "../kinds.ts";
import { LOCKED, Message, OK } from "../message.ts";
import type { Participant } from "../participant.ts";
import { DEPENDENCY_WORDS, type Part } from "../writes.ts";
import type { ServingThread } from "./table.ts";

export type KeyToRead = ReadRequest;

/** What is told of a row that was read; absent if there are no words. */
export type Take = (index: number, reply: Reader, words: number) => void;

/** A snapshot to read from. */
export interface AtSnapshot {
  readonly name: string;
  /** Whether what is read is to be written, if nobody has changed it since. */
  readonly isForWrite?: boolean;
}

export class Read extends Message {
  readonly kind: number;
  outcome = OK;
  epoch: Epoch = 0;
  readonly #snapshot: AtSnapshot | undefined;
  readonly #keys: readonly KeyToRead[];
  readonly #take: Take;
  readonly #part: Part;

  /** Dependencies go to `part`, rows to `take`. */
  constructor(
    to: NodeId,
    keys: readonly KeyToRead[],
    part: Part,
    take: Take,
    snapshot?: AtSnapshot,
  ) {
    super(to);
    this.kind = snapshot === undefined ? READ : READ_AT;
    this.#snapshot = snapshot;
    this.#keys = keys;
    this.#part = part;
    this.#take = take;
  }

  encode(out: Writer): void {
    if (this.#snapshot !== undefined) {
      out.text(this.#snapshot.name);
      out.word(this.#snapshot.isForWrite === true ? 1 : 0);
    }
    encodeKeys(out, this.#keys);
  }

  protected decode(reply: Reader): void {
    this.outcome = reply.word();
    if (this.outcome !== OK) return;
    this.epoch = reply.wide();
    const count = reply.count(MAX_ACCESSES);
    const { i32 } = reply.views;
    for (let i = 0; i < count; i++) {
      const at = reply.skip(DEPENDENCY_WORDS);
      this.#part.depend(i32[at], i32[at + 1], i32[at + 2], i32[at + 3]);
    }
    for (let i = 0; i < this.#keys.length; i++) takeRow(reply, i, this.#take);
  }
}

export function encodeKeys(out: Writer, keys: readonly KeyToRead[]): void {
  out.word(keys.length);
  for (const key of keys) encodeRead(out, key);
}

export function takeRow(reply: Reader, index: number, take: Take): void {
  const words = reply.count(reply.left);
  reply.align();
  const end = reply.at + words;
  if (end > reply.end) throw new SituError("SITU_PROTOCOL", "a row ends too early");
  take(index, reply, words);
  reply.at = end;
}

/** At the primary. */
export function serveRead({ participant }: ServingThread, incoming: Incoming): void {
  readRows(participant, incoming);
}

/** At the primary, from a snapshot. */
export function serveReadAt({ participant, view }: ServingThread, incoming: Incoming): void {
  const { body } = incoming;
  const name = body.text();
  const isForWrite = body.word() === 1;
  atSnapshot(participant, name, view.current.self, isForWrite, () =>
    readRows(participant, incoming),
  );
}

/** Lets the participant's reader see a snapshot for as long as a message is served. */
export function atSnapshot(
  { snapshots, reader }: Participant,
  name: string,
  self: NodeId,
  isForWrite: boolean,
  serve: () => void,
): void {
  const snapshot = snapshots.find(name, self);
  reader.snapshot = snapshot;
  reader.readsOnly = !isForWrite;
  try {
    serve();
  } catch (error) {
    // What is read from one that is released meanwhile may be anything.
    throw snapshot.isRegistered ? error : snapshot.tooOld();
  } finally {
    reader.snapshot = undefined;
    reader.readsOnly = true;
  }
  if (!snapshot.isRegistered) throw snapshot.tooOld();
}

function readRows(participant: Participant, incoming: Incoming): void {
  const { body } = incoming;
  const { executor, reader: tx, rows } = participant;
  const out = incoming.reply();
  const start = out.at;
  const entered = executor.enter();
  try {
    rows.clear();
    for (let left = body.count(MAX_ACCESSES); left > 0; left--) {
      const { table, partition, key } = decodeRead(body);
      const served = participant.tables.byId(table);
      participant.checkPrimary(partition);
      served.read(tx, key, rows);
    }
    if (executor.commit(tx)) {
      out.word(OK);
      out.wide(executor.epochs.current());
      appendDependencies(tx.set, out);
      appendRows(out, rows);
      return;
    }
  } catch (error) {
    if (!isSignal(error)) throw error;
  } finally {
    tx.clear();
    executor.leave(entered);
  }
  out.at = start;
  out.word(LOCKED);
}

/** The rows lie at even words of their own buffer: they must here, too. */
export function appendRows(out: Writer, rows: Writer): void {
  const { i32 } = rows.views;
  for (let at = 0; at < rows.at; ) {
    const words = i32[at];
    out.word(words);
    out.align();
    out.words(i32, at + 2, words);
    at += 2 + words;
  }
}

/** What was read and is not written, as dependencies: how many, and each. */
export function appendDependencies(set: AccessSet, out: Writer): void {
  const { words, end } = set;
  const at = out.at;
  out.word(0);
  let count = 0;
  for (let entry = 0; entry < end; entry += ENTRY_WORDS) {
    if ((words[entry + KIND] & (READ_ENTRY | WRITE)) !== READ_ENTRY) continue;
    out.word(words[entry + REGION_ID]);
    out.word(words[entry + WORD]);
    out.word(words[entry + VERSION_HIGH]);
    out.word(words[entry + VERSION_LOW]);
    count++;
  }
  out.views.i32[at] = count;
}
