/**
 * Truncate: tells backups how transactions of a coordinator have ended: which are committed at all their
 * primaries, and which are aborted. They then apply or drop their records. No caller waits for it: a
 * coordinator collects what is committed and sends one message for many.
 *
 *   message  coordinator, its low, sequences that are committed, sequences that are aborted
 *   reply    nothing, once no record of them is left
 */

import type { Clock, Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { assert } from "../../runtime/assert.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_NODES, TRUNCATE_BATCH, TRUNCATE_MS } from "../../runtime/limits.ts";
import { Told } from "../backup-records.ts";
import { endWhenKept, replyWhenKept } from "../disk.ts";
import type { Driver } from "../driver.ts";
import { TRUNCATE } from "../kinds.ts";
import { Message, type Routine, type Scope } from "../message.ts";
import { COORDINATORS_PER_NODE, type Name, type Sequences } from "../names.ts";
import type { ServingThread } from "./table.ts";

export class Truncate extends Message {
  readonly kind = TRUNCATE;
  override readonly isInsistent = true;
  readonly #coordinator: number;
  readonly #low: number;
  readonly #committed: readonly number[];
  readonly #aborted: readonly number[];

  constructor(
    to: NodeId,
    coordinator: number,
    low: number,
    committed: readonly number[],
    aborted: readonly number[] = [],
  ) {
    super(to);
    this.#coordinator = coordinator;
    this.#low = low;
    this.#committed = committed;
    this.#aborted = aborted;
  }

  encode(out: Writer): void {
    out.word(this.#coordinator);
    out.wide(this.#low);
    for (const sequences of [this.#committed, this.#aborted]) {
      out.word(sequences.length);
      for (const sequence of sequences) out.wide(sequence);
    }
  }

  protected decode(_reply: Reader): void {}
}

/** A message on its way. */
interface Telling {
  readonly message: Truncate;
  hasLeft: boolean;
  /** What it tells is told by another one. */
  isTaken: boolean;
}

/** The coordinator's side: what has been committed, and which backups do not know it yet. */
export class Truncations {
  readonly #driver: Driver;
  readonly #sequences: Sequences;
  readonly #clock: Clock;
  readonly #over: (sequence: number) => void;
  readonly #scope: Scope | undefined;
  readonly #telling = new Set<Telling>();
  #waiting = new Map<NodeId, number[]>();
  /** How many backups of a transaction still have to be told. */
  readonly #untold = new Map<number, number>();
  #isTimed = false;
  #collected = 0;

  /** `over` is told of each that no backup has a record of any more. */
  constructor(
    driver: Driver,
    sequences: Sequences,
    over: (sequence: number) => void,
    scope?: Scope,
  ) {
    this.#driver = driver;
    this.#scope = scope;
    this.#sequences = sequences;
    this.#over = over;
    this.#clock = driver.endpoint.clock;
  }

  /** A transaction has been committed everywhere; these are its backups. */
  add({ sequence }: Name, backups: Iterable<NodeId>): void {
    let count = 0;
    for (const backup of backups) {
      const list = this.#waiting.get(backup);
      if (list === undefined) this.#waiting.set(backup, [sequence]);
      else list.push(sequence);
      count++;
    }
    if (count === 0) {
      this.#over(sequence);
      return;
    }
    this.#untold.set(sequence, count);
    if (++this.#collected >= TRUNCATE_BATCH) this.flush();
    else this.#flushSoon();
  }

  #flushSoon(): void {
    if (this.#isTimed) return;
    this.#isTimed = true;
    this.#clock.after(TRUNCATE_MS, () => {
      this.#isTimed = false;
      this.flush();
    });
  }

  /** Transactions that some backup has not been told of. */
  get pending(): number {
    return this.#untold.size;
  }

  flush(): void {
    if (this.#waiting.size === 0) return;
    const waiting = this.#waiting;
    this.#waiting = new Map();
    this.#collected = 0;
    for (const [backup, sequences] of waiting) {
      this.#driver.detach(this.#tell(backup, sequences));
    }
  }

  *#tell(backup: NodeId, sequences: readonly number[]): Routine<void> {
    const { coordinator, low } = this.#sequences;
    const message = new Truncate(backup, coordinator, low, sequences);
    message.scope = this.#scope;
    const telling: Telling = { message, hasLeft: false, isTaken: false };
    this.#telling.add(telling);
    yield [message];
    this.#telling.delete(telling);
    if (telling.isTaken) {
      this.#waitAgain(backup, sequences);
      return;
    }
    // This end is being closed, or the backup has another configuration; what it has logged stays there.
    if (message.error !== undefined && !telling.hasLeft) return;
    this.#told(sequences);
  }

  /**
   * There is a new configuration. Recovery ends those that are `stopped`, and changes nothing while it asks; nobody
   * else may then either. Nodes that have left need not be told.
   */
  adopt(stopped: ReadonlySet<number>, nodes: readonly NodeId[]): void {
    for (const sequence of stopped) this.#untold.delete(sequence);
    for (const telling of [...this.#telling]) {
      const hasLeft = !nodes.includes(telling.message.to);
      Object.assign(telling, { hasLeft, isTaken: !hasLeft });
      // It is not sent again: another one is.
      telling.message.scope = undefined;
      telling.message.failed(interrupted());
    }
    for (const [backup, sequences] of [...this.#waiting]) {
      this.#waiting.delete(backup);
      if (nodes.includes(backup)) this.#waitAgain(backup, sequences);
      else this.#told(sequences);
    }
  }

  #waitAgain(backup: NodeId, sequences: readonly number[]): void {
    const left = sequences.filter((sequence) => this.#untold.has(sequence));
    if (left.length === 0) return;
    const list = this.#waiting.get(backup);
    if (list === undefined) this.#waiting.set(backup, left);
    else list.push(...left);
    this.#flushSoon();
  }

  #told(sequences: readonly number[]): void {
    for (const sequence of sequences) {
      const untold = this.#untold.get(sequence);
      if (untold === undefined) continue;
      const left = untold - 1;
      this.#untold.set(sequence, left);
      if (left > 0) continue;
      this.#untold.delete(sequence);
      this.#over(sequence);
    }
  }
}

function interrupted(): SituError {
  return new SituError("SITU_STALE_CONFIGURATION", "the configuration has changed");
}

/** At a backup. */
export function serveTruncate({ backup, disk }: ServingThread, incoming: Incoming): void {
  assert(backup !== undefined, "records are applied by the thread that keeps them");
  const { body } = incoming;
  const { name } = backup;
  name.coordinator = body.count(MAX_NODES * COORDINATORS_PER_NODE);
  const low = body.wide();
  if (!Number.isSafeInteger(low)) throw new SituError("SITU_PROTOCOL", "a low is a number");
  name.low = 0;
  const told = new Told();
  for (let left = body.count(body.left); left > 0; left--) {
    name.sequence = body.wide();
    backup.commit(name, told);
  }
  for (let left = body.count(body.left); left > 0; left--) {
    name.sequence = body.wide();
    backup.abort(name, told);
  }
  name.low = low;
  backup.noteLow(name);
  backup.apply();
  if (told.left === 0) replyWhenKept(disk, incoming);
  else {
    const ticket = incoming.defer();
    told.done = () => endWhenKept(disk, ticket);
  }
}
