/** The command line of the demo. */

import { parseArgs } from "node:util";
import { FAMILY } from "./bank.ts";

export const usage = `Several processes move money between the accounts of one store; one of them is killed half-way.

  --seconds <n>    how long the tellers work (4)
  --tellers <n>    processes, 2 to 32 (4)
  --accounts <n>   a multiple of ${FAMILY} (10000)
  --json           the result as one JSON object on the last line
  --help           this text`;

export interface Options {
  readonly seconds: number;
  readonly tellers: number;
  readonly accounts: number;
  readonly json: boolean;
  readonly help: boolean;
}

/** Throws an error that says what is wrong with the arguments. */
export function readOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      seconds: { type: "string", default: "4" },
      tellers: { type: "string", default: "4" },
      accounts: { type: "string", default: "10000" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const seconds = number("--seconds", values.seconds, 0.5, 3600);
  const tellers = whole("--tellers", values.tellers, 2, 32);
  const accounts = whole("--accounts", values.accounts, FAMILY, 1_000_000);
  if (accounts % FAMILY !== 0) throw new Error(`--accounts is a multiple of ${FAMILY}`);
  return { seconds, tellers, accounts, json: values.json, help: values.help };
}

function number(option: string, text: string, least: number, most: number): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (value >= least && value <= most) return value;
  throw new Error(`${option} is a number from ${least} to ${most}, not "${text}"`);
}

function whole(option: string, text: string, least: number, most: number): number {
  const value = number(option, text, least, most);
  if (Number.isInteger(value)) return value;
  throw new Error(`${option} is a whole number, not "${text}"`);
}
