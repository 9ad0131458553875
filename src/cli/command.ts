/** What a command is: its options and its words. What it does is loaded when it is run (work/). */

import { flag, type Options, path } from "./option-kinds.ts";

export interface Command<O extends Options = Options> {
  /** One line, for the list of commands. */
  readonly summary: string;
  /** What follows `situ <name>` in the shortest useful call. */
  readonly synopsis: string;
  /** More to know, as lines. */
  readonly about: readonly string[];
  readonly options: O;
  /** Lines to type, and what they do. */
  readonly examples: readonly (readonly [line: string, what: string])[];
  /** The option that a word without a flag is for. */
  readonly argument?: string;
  /** Not for people: started by another command. */
  readonly isHidden?: boolean;
}

/** What every command takes. */
export const COMMON = {
  json: flag("prints only JSON on stdout, and errors as JSON on stderr"),
  config: path("FILE", "the configuration file (situ.config.json in the working folder)"),
};

export function command<O extends Options>(given: Command<O>): Command<O> {
  return given;
}
