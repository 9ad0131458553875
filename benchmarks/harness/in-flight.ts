// Contestants that have a number of operations under way at any time: throughput and not latency.
// They take turns within each round, as in rounds.ts; the difference is that a turn does not begin
// and end with nothing under way: counting starts when all are, and ends while all still are.
import { setTimeout as sleep } from "node:timers/promises";
import type { Progress } from "./progress.ts";
import type { RoundsPlan, Timing } from "./rounds.ts";

export interface InFlightContestant {
  readonly name: string;
  /** One operation, from its first request to its last answer. */
  one(): Promise<unknown>;
}

export interface InFlightPlan extends RoundsPlan {
  readonly inFlight: number;
  /** Before the first round of each: servers, too, compile what they find to be hot. */
  readonly warmUpMs: number;
}

/** Part of a round that goes by unmeasured. */
const settling = 0.2;

/** Nanoseconds per operation: a second, divided by the operations that ended in it. */
export async function measureInFlight(
  contestants: readonly InFlightContestant[],
  { inFlight, warmUpMs, rounds, roundMs }: InFlightPlan,
  progress: Progress,
): Promise<Timing[]> {
  const all = contestants.map((contestant) => ({ contestant, nanoseconds: [] as number[] }));
  for (const { contestant } of all) {
    progress.show(`warming up: ${contestant.name}`);
    await turn(contestant, inFlight, warmUpMs);
  }
  for (let round = 0; round < rounds; round++) {
    for (let index = 0; index < all.length; index++) {
      // Another one starts each round: nobody always runs after the same neighbour.
      const { contestant, nanoseconds } = all[(index + round) % all.length];
      progress.show(`round ${round + 1} of ${rounds}: ${contestant.name}`);
      globalThis.gc?.();
      nanoseconds.push(await turn(contestant, inFlight, roundMs));
    }
  }
  return all.map(({ contestant, nanoseconds }) => ({ name: contestant.name, nanoseconds }));
}

async function turn(
  { name, one }: InFlightContestant,
  inFlight: number,
  roundMs: number,
): Promise<number> {
  let isOver = false;
  let ended = 0;
  const workers = Array.from({ length: inFlight }, async () => {
    while (!isOver) {
      await one();
      ended++;
    }
  });
  const failure = Promise.all(workers).then(() => {});
  const wait = async (ms: number): Promise<void> => {
    await Promise.race([sleep(ms), failure]);
  };
  try {
    await wait(roundMs * settling);
    const startMs = performance.now();
    const before = ended;
    await wait(roundMs);
    const elapsedMs = performance.now() - startMs;
    const operations = ended - before;
    if (operations === 0) throw new Error(`${name}: nothing ended within ${roundMs} ms`);
    return (elapsedMs * 1e6) / operations;
  } finally {
    isOver = true;
    await failure;
  }
}
