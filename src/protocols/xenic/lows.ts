/**
 * Telling those who have logged transactions that they are over, so that their hosts apply the records (§4.2, step 7). Every message
 * says it on its way: below its coordinator's low all transactions are over. Who hears nothing else is told by LOW until it
 * has answered, for others may wait behind its records. The answer says whether its log is long; until it is not, this
 * coordinator begins nothing new.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { XENIC_LOW_US } from "../../runtime/limits.ts";
import { XENIC_LOG_LENGTH, XENIC_LOW } from "../kinds.ts";
import { Name, type Sequences } from "../names.ts";
import { type Answer, FOR_EVER } from "./asking.ts";
import { BUSY, type Status, XenicMessage } from "./message.ts";
import type { AnyNic } from "./nic.ts";
import { type NicRoutine, start } from "./routine.ts";

export class Lows {
  readonly #nic: AnyNic;
  readonly #sequences: Sequences;
  /** The last transaction that each node has in its log, of those that are being told. */
  readonly #owed = new Map<NodeId, number>();
  /** Whose logs are long. */
  readonly #pressed = new Set<NodeId>();

  constructor(nic: AnyNic, sequences: Sequences) {
    this.#nic = nic;
    this.#sequences = sequences;
  }

  get isPressed(): boolean {
    return this.#pressed.size > 0;
  }

  /** With another configuration all logs are empty, and nobody is being told any more. */
  clear(): void {
    this.#owed.clear();
    this.#pressed.clear();
  }

  /** A transaction was logged at all who keep these shards. */
  owe({ sequence }: Name, shards: readonly number[]): void {
    const { placement, self } = this.#nic;
    for (const shard of shards) {
      const backups = placement.backupsOf(shard);
      const keepers = backups.includes(self) ? [placement.primaryOf(shard)] : [];
      for (const to of [...backups, ...keepers]) {
        const isTold = this.#owed.has(to);
        this.#owed.set(to, Math.max(sequence, this.#owed.get(to) ?? 0));
        if (!isTold) start(this.#tell(to), () => this.#owed.delete(to));
      }
    }
  }

  noteLength(from: NodeId, status: Status): void {
    if (status === BUSY) this.#pressed.add(from);
    else this.#pressed.delete(from);
  }

  /** Until it knows of all that it has logged, and its log is not long. */
  *#tell(to: NodeId): NicRoutine<void> {
    const { asking, ports } = this.#nic;
    for (;;) {
      yield (resume) => void ports.after(XENIC_LOW_US, resume);
      const name = new Name();
      name.coordinator = this.#sequences.coordinator;
      // No transaction's: each node is asked for itself.
      name.sequence = -1 - to;
      name.low = this.#sequences.low;
      const message = new XenicMessage(XENIC_LOW, name);
      const isAnswer = (answer: Answer): boolean => {
        if (answer.message.kind !== XENIC_LOG_LENGTH) return false;
        this.noteLength(to, answer.message.status);
        return true;
      };
      yield* asking.until(name.sequence, [{ to, message }], isAnswer, FOR_EVER);
      if (name.low > (this.#owed.get(to) ?? 0) && !this.#pressed.has(to)) return;
    }
  }
}
