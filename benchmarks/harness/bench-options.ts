// The command line that every benchmark shares.
import { parseArgs } from "node:util";

export interface BenchOptions {
  readonly json: boolean;
  readonly quick: boolean;
  readonly rounds: number;
  readonly roundMs: number;
  readonly seed: number;
  /** A built checkout of an earlier version, to measure this one against. */
  readonly before?: string;
}

export const optionsUsage = `  --json         print the figures as one JSON object on the last line
  --quick        fewer rounds and rows: to see that it runs, not to quote
  --rounds <n>   measuring rounds (7, quick 3)
  --seed <n>     seed of the random keys (42)
  --before <dir> failover: a built checkout of another version to compare commits with`;

const optionTypes = {
  json: { type: "boolean", default: false },
  quick: { type: "boolean", default: false },
  rounds: { type: "string" },
  seed: { type: "string", default: "42" },
  before: { type: "string" },
} as const;

/** Throws a TypeError that says what is wrong with the arguments. */
export function parseBenchArguments(args: readonly string[]): {
  readonly names: readonly string[];
  readonly options: BenchOptions;
} {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: optionTypes,
    allowPositionals: true,
  });
  const { json, quick, before } = values;
  const rounds = positiveInteger("--rounds", values.rounds ?? (quick ? "3" : "7"));
  const seed = positiveInteger("--seed", values.seed);
  const roundMs = quick ? 250 : 500;
  const options = {
    json,
    quick,
    rounds,
    roundMs,
    seed,
    ...(before === undefined ? {} : { before }),
  };
  return { names: positionals, options };
}

function positiveInteger(option: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new TypeError(`${option} wants a positive whole number, not "${text}"`);
  }
  return value;
}
