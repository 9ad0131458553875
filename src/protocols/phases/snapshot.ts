/**
 * Snapshots of the cluster: messages that take, hold and release one (served-snapshots.ts). Rows are read from
 * it with READ_AT and SCAN_AT, which are READ and SCAN with the name of a snapshot before them (read.ts, scan.ts).
 *
 *   BEGIN_SNAPSHOT  name, the least epoch, milliseconds that it may be kept
 *   reply           the epoch at which this node has registered it
 *
 *   CUT_SNAPSHOT    name, its epoch. Also tells that the client is still there
 *   reply           1 once it can be read, 0 if that takes longer
 *
 *   END_SNAPSHOT    name
 *   reply           nothing
 */

import { type Epoch, epochFrom } from "../../engine/epoch.ts";
import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_NAME_BYTES, MAX_TIMEOUT_MS } from "../../runtime/limits.ts";
import { BEGIN_SNAPSHOT, CUT_SNAPSHOT, END_SNAPSHOT } from "../kinds.ts";
import { Message } from "../message.ts";
import type { ServingThread } from "./table.ts";

export class BeginSnapshot extends Message {
  readonly kind = BEGIN_SNAPSHOT;
  /** Where it is registered. */
  epoch: Epoch = 0;
  readonly #name: string;
  readonly #atLeast: Epoch;
  readonly #lifeMs: number;

  constructor(to: NodeId, name: string, atLeast: Epoch, lifeMs: number) {
    super(to);
    this.#name = name;
    this.#atLeast = atLeast;
    this.#lifeMs = lifeMs;
  }

  encode(out: Writer): void {
    out.text(this.#name);
    out.wide(this.#atLeast);
    out.wide(this.#lifeMs);
  }

  protected decode(reply: Reader): void {
    this.epoch = epochFrom(reply.wide());
  }
}

export class CutSnapshot extends Message {
  readonly kind = CUT_SNAPSHOT;
  isSettled = false;
  readonly #name: string;
  readonly #epoch: Epoch;

  constructor(to: NodeId, name: string, epoch: Epoch) {
    super(to);
    this.#name = name;
    this.#epoch = epoch;
  }

  encode(out: Writer): void {
    out.text(this.#name);
    out.wide(this.#epoch);
  }

  protected decode(reply: Reader): void {
    this.isSettled = reply.word() === 1;
  }
}

export class EndSnapshot extends Message {
  readonly kind = END_SNAPSHOT;
  readonly #name: string;

  constructor(to: NodeId, name: string) {
    super(to);
    this.#name = name;
  }

  encode(out: Writer): void {
    out.text(this.#name);
  }

  protected decode(_reply: Reader): void {}
}

/** At every node. */
export function serveBeginSnapshot({ participant }: ServingThread, incoming: Incoming): void {
  const { body } = incoming;
  const name = body.text();
  const atLeast = epochFrom(body.wide());
  const lifeMs = body.wide();
  if (!(lifeMs > 0 && lifeMs <= MAX_TIMEOUT_MS) || name.length > MAX_NAME_BYTES) {
    throw new SituError(
      "SITU_PROTOCOL",
      `no snapshot has such a name, or is kept for ${lifeMs} ms`,
    );
  }
  // What was committed before must be here, in an epoch of this node.
  participant.checkWhole();
  participant.checkSettled();
  const epoch = participant.snapshots.begin(name, incoming.from, atLeast, lifeMs);
  incoming.reply().wide(epoch);
}

export function serveCutSnapshot({ participant, view }: ServingThread, incoming: Incoming): void {
  const { body } = incoming;
  const name = body.text();
  participant.snapshots.cut(name, epochFrom(body.wide()), incoming, view.current.self);
}

export function serveEndSnapshot({ participant }: ServingThread, incoming: Incoming): void {
  participant.snapshots.end(incoming.body.text());
  incoming.reply();
}
