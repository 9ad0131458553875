// Contestants that take turns with a number of operations under way, as in harness/in-flight.ts, and what processor
// time each operation has cost: that of this process and of the servers that work for it.
//
// They are warmed up by a number of operations, not by a time. Each node of a cluster compiles for itself, and until it
// has seen some thousand transactions, compiling takes more than all else: a transfer costs 1.5 ms in the first
// seconds and 0.3 ms after 20,000 of them. On a busy machine any fixed time ends before that for some.
import { setTimeout as sleep } from "node:timers/promises";
import type { Measured } from "../harness/figures.ts";
import type { InFlightContestant } from "../harness/in-flight.ts";
import type { Progress } from "../harness/progress.ts";
import type { RoundsPlan } from "../harness/rounds.ts";

export interface TurnContestant extends InFlightContestant {
  /** Processor time of its servers, so far. */
  cpuMs(): number;
}

/** Nanoseconds per operation of each round, and the processor time of each. */
export interface Turns extends Measured {
  readonly cpuMicroseconds: readonly number[];
}

interface Turn {
  readonly nanoseconds: number;
  readonly cpuMicroseconds: number;
}

export interface TurnsPlan extends RoundsPlan {
  readonly inFlight: number;
  /** Operations of each before the first round. */
  readonly warmUp: number;
}

export async function takeTurns(
  contestants: readonly TurnContestant[],
  { inFlight, warmUp, rounds, roundMs }: TurnsPlan,
  progress: Progress,
): Promise<Turns[]> {
  const all = contestants.map((contestant) => ({ contestant, turns: [] as Turn[] }));
  for (const { contestant } of all) {
    progress.show(`warming up: ${contestant.name}`);
    let left = warmUp;
    const workers = Array.from({ length: inFlight }, async () => {
      while (left-- > 0) await contestant.one();
    });
    await Promise.all(workers);
  }
  for (let round = 0; round < rounds; round++) {
    for (let index = 0; index < all.length; index++) {
      // Another one starts each round: nobody always runs after the same neighbour.
      const { contestant, turns } = all[(index + round) % all.length];
      progress.show(`round ${round + 1} of ${rounds}: ${contestant.name}`);
      globalThis.gc?.();
      turns.push(await turn(contestant, inFlight, roundMs));
    }
  }
  return all.map(({ contestant, turns }) => ({
    name: contestant.name,
    values: turns.map(({ nanoseconds }) => nanoseconds),
    cpuMicroseconds: turns.map(({ cpuMicroseconds }) => cpuMicroseconds),
  }));
}

async function turn(contestant: TurnContestant, inFlight: number, ms: number): Promise<Turn> {
  let isOver = false;
  let ended = 0;
  const startCpu = process.cpuUsage();
  const startCpuMs = contestant.cpuMs();
  const startMs = performance.now();
  const workers = Array.from({ length: inFlight }, async () => {
    while (!isOver) {
      await contestant.one();
      ended++;
    }
  });
  const all = Promise.all(workers);
  try {
    await Promise.race([sleep(ms), all]);
  } finally {
    isOver = true;
    await all;
  }
  // To the end of the last one: what was begun is paid for, and counted.
  const elapsedMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(startCpu);
  const cpuMicroseconds = user + system + (contestant.cpuMs() - startCpuMs) * 1e3;
  if (ended === 0) throw new Error(`${contestant.name}: nothing ended within ${ms} ms`);
  return {
    nanoseconds: (elapsedMs * 1e6) / ended,
    cpuMicroseconds: cpuMicroseconds / ended,
  };
}
