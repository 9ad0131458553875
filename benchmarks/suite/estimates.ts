// What a run is expected to take: a guess that the progress bar corrects as it goes.
import type { EngineName } from "../engines/engine.ts";
import { type GroupPlan, openingsOf } from "./plan.ts";

export interface RoundsPlan {
  readonly rounds: number;
  readonly roundMs: number;
  readonly warmUpMs: number;
  readonly seed: number;
}

/** For each row. */
const loadMicroseconds: Readonly<Record<EngineName, number>> = {
  situ: 6,
  cluster: 200,
  lmdb: 8,
  sqlite: 8,
  redis: 15,
  postgres: 25,
};
const startMs = 1_000;
export const turnMs = 50;

export function loadMs(engine: EngineName, size: number): number {
  return startMs + (size * loadMicroseconds[engine]) / 1_000;
}

export function checkMs(size: number): number {
  return size / 200;
}

export function expectedMs(group: GroupPlan, plan: RoundsPlan): number {
  const openings = group.engines.flatMap((engine) =>
    openingsOf(engine, group).map((opening) => loadMs(engine, group.size) + turnsMs(opening, plan)),
  );
  return openings.reduce((sum, ms) => sum + ms, 0);
}

/** Of one engine, after it was loaded. */
export function turnsMs(
  { cells, size }: GroupPlan,
  { rounds, roundMs, warmUpMs }: RoundsPlan,
): number {
  return cells.length * (warmUpMs + turnMs + rounds * (roundMs + turnMs)) + checkMs(size);
}
