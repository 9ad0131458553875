/**
 * Commit at the primary, once all backups have the transaction in their logs: install what is
 * locked, and unlock. Where the rows were locked as they were read (rpc), this message brings the
 * new ones.
 *
 *   message  name, the largest epoch of all participants, writes
 *   reply    nothing
 */

import { type Epoch, epochFrom } from "../../engine/epoch.ts";
import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import { Reader, Writer } from "../../fabric/wire.ts";
import { assert } from "../../runtime/assert.ts";
import { SituError } from "../../runtime/errors.ts";
import { COMMIT_RETRY_MS } from "../../runtime/limits.ts";
import { PUT } from "../../tables/served/requests.ts";
import { COMMIT } from "../kinds.ts";
import { Message } from "../message.ts";
import { Name } from "../names.ts";
import { maintainTables, type Participant, type Prepared } from "../participant.ts";
import { encodeWrites, writesIn } from "../writes.ts";
import type { ServingThread } from "./table.ts";

const NOTHING = new Int32Array(0);

export class Commit extends Message {
  readonly kind = COMMIT;
  override readonly isInsistent = true;
  readonly #name: Name;
  readonly #epoch: Epoch;
  readonly #writes: Int32Array;
  readonly #writeCount: number;

  constructor(to: NodeId, name: Name, epoch: Epoch, writes: Int32Array = NOTHING, writeCount = 0) {
    super(to);
    this.#name = name;
    this.#epoch = epoch;
    this.#writes = writes;
    this.#writeCount = writeCount;
  }

  encode(out: Writer): void {
    this.#name.encode(out);
    out.wide(this.#epoch);
    encodeWrites(out, this.#writes, this.#writeCount);
  }

  protected decode(_reply: Reader): void {}
}

/** At the primary. */
export function serveCommit({ participant, view }: ServingThread, incoming: Incoming): void {
  const { body } = incoming;
  const { executor } = participant;
  const name = participant.name.decode(body);
  // It becomes this node's.
  const epoch = epochFrom(body.wide());
  const prepared = participant.underWay.find(name);
  if (prepared === undefined) {
    if (participant.underWay.isOver(name)) {
      incoming.reply();
      return;
    }
    throw new SituError(
      "SITU_UNKNOWN_OUTCOME",
      `node ${view.current.self} is to commit a transaction that it has not locked: was it restarted?`,
    );
  }
  executor.epochs.raiseTo(epoch);
  if (tryCommit(participant, prepared, body)) {
    finish(participant, name, prepared);
    incoming.reply();
  } else {
    later(participant, incoming, prepared);
  }
}

/** False if the journal is full: the log must catch up first. */
function tryCommit(participant: Participant, prepared: Prepared, body: Reader): boolean {
  const from = body.at;
  const isDone = overwrite(participant, prepared, body);
  body.at = from;
  assert(isDone, "what travels with COMMIT is locked in its place");
  return participant.executor.committer.commitPrepared(prepared.tx);
}

/** Overwrites rows that are locked in their place. False if one of them is not. */
function overwrite({ tables }: Participant, { tx, places }: Prepared, body: Reader): boolean {
  for (const request of writesIn(body)) {
    const served = tables.byId(request.table);
    if (request.code !== PUT || !served.overwrite(tx, places, request)) return false;
  }
  return true;
}

function finish(participant: Participant, name: Name, prepared: Prepared): void {
  maintainTables(prepared.tables);
  participant.finish(name, prepared);
}

/** Nothing can be taken back any more: tries until it is done. */
function later(participant: Participant, incoming: Incoming, prepared: Prepared): void {
  const name = new Name();
  Object.assign(name, participant.name);
  const copy = new Writer();
  // At the same even and odd words as in the message.
  copy.words(
    incoming.body.views.i32,
    incoming.body.at & ~1,
    incoming.body.end - (incoming.body.at & ~1),
  );
  const body = new Reader(copy.views).reset(copy.views, incoming.body.at & 1, copy.at);
  const ticket = incoming.defer();
  const again = (): void => {
    if (participant.underWay.find(name) !== prepared) ticket.reply(() => {});
    else if (tryCommit(participant, prepared, body)) {
      finish(participant, name, prepared);
      ticket.reply(() => {});
    } else participant.clock.after(COMMIT_RETRY_MS, again);
  };
  participant.clock.after(COMMIT_RETRY_MS, again);
}
