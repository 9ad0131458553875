/**
 * Execute, by verb (FaRM §3.6): finding rows in the memory of other nodes, with consistent reads of
 * objects and no program of theirs. The stores know how to look (stores/remote/); here their steps
 * become batches: lookups go on side by side, one round trip for each step of all.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { ReadObject } from "../../fabric/verbs.ts";
import type { SituError } from "../../runtime/errors.ts";
import type { Answer, Reading, Wanted } from "../../stores/remote/remote.ts";
import type { Exchange, Routine, Waiting } from "../message.ts";

class VerbRead extends ReadObject implements Exchange {
  readonly to: NodeId;
  readonly isInsistent = false;
  error: SituError | undefined;
  waiting: Waiting | undefined;
  attempts = 0;

  constructor(to: NodeId, { regionId, word, dataWords }: Wanted) {
    super(regionId, word, dataWords, (verb, error) => {
      const own = verb as VerbRead;
      if (own.waiting === undefined) return;
      own.error = error;
      own.waiting.ended(own);
    });
    this.to = to;
  }
}

/** A lookup at one node. */
export interface Lookup<T> {
  readonly node: NodeId;
  readonly reading: Reading<T>;
}

/** Carries lookups out side by side; their results are in their order. */
export function* lookupAll<T>(lookups: readonly Lookup<T>[]): Routine<T[]> {
  const results = new Array<T>(lookups.length);
  const answers = new Array<readonly Answer[]>(lookups.length).fill([]);
  let running = lookups.map((_, index) => index);
  for (;;) {
    const batch: VerbRead[] = [];
    const next: { readonly index: number; readonly verbs: readonly VerbRead[] }[] = [];
    for (const index of running) {
      const { node, reading } = lookups[index];
      const step = reading.next(answers[index]);
      if (step.done) {
        results[index] = step.value;
      } else {
        const verbs = step.value.map((wanted) => new VerbRead(node, wanted));
        batch.push(...verbs);
        next.push({ index, verbs });
      }
    }
    if (batch.length === 0) return results;
    yield batch;
    for (const { error } of batch) if (error !== undefined) throw error;
    for (const { index, verbs } of next) answers[index] = verbs;
    running = next.map(({ index }) => index);
  }
}
