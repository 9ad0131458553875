// The bars of the resp bench and how its measurements become figures.
import { type Bar, counted, type Figure, missingFigure, timesMore } from "../harness/figures.ts";
import type { Command } from "./generator.ts";
import type { BytesPerKey } from "./memory.ts";

/** Requests per second of both sides, one entry per round. */
export interface Race {
  readonly name: string;
  readonly bar: Bar;
  readonly situ: number[];
  readonly redis: number[];
}

export interface Setting {
  readonly name: string;
  readonly command: Command;
  readonly pipeline: number;
  /** Threads of the gateway, and load generators. */
  readonly threads: number;
  readonly bar: Bar;
}

const commands: readonly Command[] = ["get", "set"];

export const settings: readonly Setting[] = [
  { pipeline: 1, threads: 1, atLeast: { get: 1, set: 1 } },
  { pipeline: 64, threads: 1, atLeast: { get: 1.2, set: 1 } },
  { pipeline: 1, threads: 2, atLeast: { get: 1, set: 1 } },
  { pipeline: 64, threads: 2, atLeast: { get: 1.7, set: 1.5 } },
].flatMap(({ atLeast, ...setting }) =>
  commands.map((command) => ({
    ...setting,
    command,
    name: nameOf(command, setting),
    bar: { atLeast: atLeast[command] },
  })),
);

function nameOf(command: Command, { pipeline, threads }: { pipeline: number; threads: number }) {
  const piped = pipeline === 1 ? "" : ` -P ${pipeline}`;
  return `${command}${piped}${threads === 1 ? "" : `, ${threads} threads`}`;
}

export const transfersBar: Bar = { atLeast: 1.3 };
export const memoryBar: Bar = { atMost: 1.5 };

export function raceFigure({ name, bar, situ, redis }: Race): Figure {
  const base = { name: "redis-server", values: redis };
  return timesMore(`${name} vs redis`, bar, { name: "situ serve", values: situ }, base);
}

export function memoryFigure({ situ, redis }: BytesPerKey): Figure {
  return counted("memory per key vs redis", memoryBar, situ / redis, "times");
}

export function allMissing(missing: string): Figure[] {
  const names = [...settings.map(({ name, bar }) => ({ name, bar }))];
  names.push({ name: "transfers", bar: transfersBar }, { name: "memory per key", bar: memoryBar });
  return names.map(({ name, bar }) => missingFigure(`${name} vs redis`, bar, missing));
}
