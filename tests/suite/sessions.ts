// Sessions without an engine: what the loops do with them is all that the tests look at.
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { DONE, type Outcome, REFUSED, type Session } from "../../workloads/workload.ts";

/** How the transaction with this number (from 0) behaves. */
export type Behaviour = (number: number) => Outcome | Promise<Outcome>;

/** Counts what is in flight, and the most that ever was. */
export class CountingSession implements Session {
  readonly drawn = 0;
  begun = 0;
  ended = 0;
  inFlight = 0;
  mostInFlight = 0;
  readonly #behaviour: Behaviour;

  constructor(behaviour: Behaviour) {
    this.#behaviour = behaviour;
  }

  next(): Outcome | Promise<Outcome> {
    const result = this.#behaviour(this.begun++);
    if (typeof result === "number") {
      this.ended++;
      return result;
    }
    this.inFlight++;
    this.mostInFlight = Math.max(this.mostInFlight, this.inFlight);
    return result.finally(() => {
      this.inFlight--;
      this.ended++;
    });
  }

  tally(): Readonly<Record<string, number>> {
    return { ended: this.ended };
  }
}

export const atOnce: Behaviour = () => DONE;

export async function afterTurns(turns: number, outcome: Outcome = DONE): Promise<Outcome> {
  for (let turn = 0; turn < turns; turn++) await nextTurn();
  return outcome;
}

export async function afterMs(ms: number): Promise<Outcome> {
  await sleep(ms);
  return DONE;
}

/** Every third one is refused. */
export function outcomeOf(number: number): Outcome {
  return number % 3 === 0 ? REFUSED : DONE;
}

/** How many of the first `count` are refused by `outcomeOf`. */
export function refusedOf(count: number): number {
  return Math.ceil(count / 3);
}

/** Blocks the thread, as a long garbage collection does. */
export function block(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs) {
    // Nothing else runs meanwhile.
  }
}
