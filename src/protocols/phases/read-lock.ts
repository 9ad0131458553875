/**
 * Execute for one who will write: rows by key, locked in the message that reads them (FaSST §5: "read
 * and lock keys in a single round trip"). Only nodes send it: a client that vanished would leave its
 * locks. What can be locked so is a row that is there, has a fixed size and no indexes, and lies in
 * its bucket: later it is overwritten in its place, and nothing can be in the way. Other rows are
 * read as part of the transaction at that node, and written with LOCK.
 *
 *   message  name, round, keys: table, partition and key of each
 *   reply    OK, LOCKED or OVER; with OK: epoch as in LOCK, whether anything was read and not locked, and for each
 *            key: whether it is locked, the words of its row, and the row from an even word on
 */

import type { Epoch } from "../../engine/epoch.ts";
import { isSignal } from "../../engine/signals.ts";
import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { MAX_ACCESSES } from "../../runtime/limits.ts";
import { decodeRead } from "../../tables/served/requests.ts";
import { READ_LOCK } from "../kinds.ts";
import { Message, OK } from "../message.ts";
import type { Name } from "../names.ts";
import type { Participant, Prepared } from "../participant.ts";
import { appendRows, encodeKeys, type KeyToRead, type Take, takeRow } from "./read.ts";
import type { ServingThread } from "./table.ts";

export class ReadLock extends Message {
  readonly kind = READ_LOCK;
  outcome = OK;
  epoch: Epoch = 0;
  /** Something there was read and is not locked: it must be validated. */
  hasReads = false;
  /** For each key, whether its row is locked. */
  locked: boolean[] = [];
  readonly #name: Name;
  readonly #round: number;
  readonly #keys: readonly KeyToRead[];
  readonly #take: Take;

  constructor(to: NodeId, name: Name, round: number, keys: readonly KeyToRead[], take: Take) {
    super(to);
    this.#name = name;
    this.#round = round;
    this.#keys = keys;
    this.#take = take;
  }

  encode(out: Writer): void {
    this.#name.encode(out);
    out.word(this.#round);
    encodeKeys(out, this.#keys);
  }

  protected decode(reply: Reader): void {
    this.outcome = reply.word();
    if (this.outcome !== OK) return;
    this.epoch = reply.wide();
    this.hasReads = reply.word() !== 0;
    this.locked = this.#keys.map(() => reply.word() !== 0);
    for (let i = 0; i < this.#keys.length; i++) takeRow(reply, i, this.#take);
  }
}

/** At the primary. */
export function serveReadLock({ participant }: ServingThread, incoming: Incoming): void {
  const { body } = incoming;
  const name = participant.name.decode(body);
  const round = body.word();
  const prepared = participant.begin(incoming, name, round);
  if (prepared === undefined) return;
  const { tx } = prepared;
  const { rows } = participant;
  rows.clear();
  const locked: boolean[] = [];
  try {
    readKeys(participant, prepared, body, rows, locked);
    if (!participant.prepare(prepared)) {
      participant.conflict(incoming, name, prepared);
      return;
    }
  } catch (error) {
    if (!isSignal(error)) {
      participant.drop(name, prepared);
      throw error;
    }
    participant.conflict(incoming, name, prepared);
    return;
  }
  const out = incoming.reply();
  const start = out.at;
  out.word(OK);
  out.wide(tx.bound);
  out.word(tx.set.count > tx.set.writes ? 1 : 0);
  for (const each of locked) out.word(each ? 1 : 0);
  appendRows(out, rows);
  participant.answered(prepared, round, out, start);
}

function readKeys(
  participant: Participant,
  { tx }: Prepared,
  body: Reader,
  rows: Writer,
  locked: boolean[],
): void {
  for (let left = body.count(MAX_ACCESSES); left > 0; left--) {
    const { table: id, partition, key } = decodeRead(body);
    const table = participant.tables.byId(id);
    participant.checkPrimary(partition);
    locked.push(table.placeToWrite(tx, key) !== undefined);
    table.read(tx, key, rows);
  }
}
