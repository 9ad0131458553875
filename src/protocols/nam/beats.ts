/**
 * Compute servers watch each other (NAM-DB §6.2). Each adds to a word of its own, beside the vector, every now and then; who
 * looks and finds a word as it was the last few times takes its owner for dead and settles what it has left (settle.ts).
 * To be wrong about that is safe: settling claims the threads first, so the one that was only slow is refused from
 * then on, and finds out what became of its transaction by claiming them back.
 */

import type { Routine } from "../message.ts";
import { type ComputeThread, type NamDirectory, vectorCopies } from "./compute-thread.ts";
import type { VectorSlot } from "./header.ts";
import { TIMESTAMPS, VECTOR_AT } from "./segments.ts";
import { ReadVerb, WriteVerb } from "./verbs.ts";

export function slotsOf({ pairs, pairsPerSlot }: NamDirectory): number {
  return Math.ceil(pairs / pairsPerSlot);
}

/** Where the word of a slot is; all of them are at the server where the vector is read. */
export function beatAt(directory: NamDirectory, slot: VectorSlot): number {
  return VECTOR_AT + slotsOf(directory) + slot;
}

/** Says that the thread's slot is alive. `count` is another one each time. */
export function* beat(thread: ComputeThread, count: number): Routine<void> {
  const { directory, slot } = thread;
  const [server] = vectorCopies(directory);
  const words = new Int32Array([count]);
  yield* thread.sendHarmless([
    new WriteVerb(thread, server, TIMESTAMPS, beatAt(directory, slot), words),
  ]);
}

/** Whether a slot's word is what it was: it is 0 once somebody has settled the slot. */
export function* stillAt(
  thread: ComputeThread,
  slot: VectorSlot,
  last: number | undefined,
): Routine<boolean> {
  const { directory } = thread;
  const [server] = vectorCopies(directory);
  const verb = new ReadVerb(thread, server, TIMESTAMPS, beatAt(directory, slot), 1);
  yield* thread.sendHarmless([verb]);
  return verb.words[0] === last;
}

export class Watcher {
  readonly #misses: number;
  readonly #last: { beat: number; times: number }[] = [];

  /** A slot is taken for dead when its word was the same so many times. */
  constructor(misses: number) {
    this.#misses = misses;
  }

  /** The word of a slot as it was seen last. */
  beatOf(slot: VectorSlot): number | undefined {
    return this.#last[slot]?.beat;
  }

  /** Begins to count anew. */
  forget(slot: VectorSlot): void {
    delete this.#last[slot];
  }

  /** Slots that are taken for dead. A word that never moved is of a slot that nobody has used. */
  *look(thread: ComputeThread): Routine<VectorSlot[]> {
    const { directory } = thread;
    const [server] = vectorCopies(directory);
    const verb = new ReadVerb(thread, server, TIMESTAMPS, beatAt(directory, 0), slotsOf(directory));
    yield* thread.sendHarmless([verb]);
    const dead: VectorSlot[] = [];
    verb.words.forEach((found, slot) => {
      const last = this.#last[slot];
      if (last === undefined || last.beat !== found) {
        this.#last[slot] = { beat: found, times: 0 };
      } else if (found !== 0 && ++last.times === this.#misses) dead.push(slot);
    });
    return dead;
  }
}
