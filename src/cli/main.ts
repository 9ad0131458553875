#!/usr/bin/env node
/**
 * The command line. This file and what it imports know the commands by their options and words;
 * what they do is in a bundle of its own (work/command-work.ts), which is loaded when one is run: help, a
 * version and a wrong flag need no engine.
 */

import { pathToFileURL } from "node:url";
import { didYouMean } from "../runtime/nearest.ts";
import { threadScript } from "../runtime/thread-script.ts";
import { version } from "../runtime/version.ts";
import { COMMAND_NAMES, type CommandName, SHOWN_NAMES } from "./commands.ts";
import {
  EXIT_INTERRUPTED,
  EXIT_OK,
  failureOf,
  Interrupted,
  tellFailure,
  UsageError,
} from "./failures.ts";
import { commandHelp, generalHelp, helpAsJson } from "./help.ts";
import { TRUE } from "./option-kinds.ts";
import { readFlags, readOptions } from "./read-options.ts";
import { Screen } from "./screen.ts";
import type { Work } from "./work/command-work.ts";

const HELP = ["help", "--help", "-h"];
const VERSION = ["version", "--version", "-v", "-V"];

/** How errors are told, as far as it is known by then. */
const teller = { who: "situ", isJson: false };

async function main(args: readonly string[]): Promise<number> {
  const stopping = listenForSignals();
  const [name, ...rest] = joined(args);
  teller.isJson = args.includes("--json") || TRUE.includes(process.env.SITU_JSON ?? "");
  const screen = new Screen(teller.isJson);
  try {
    const words = joined(rest.filter((word) => word !== "--json"));
    if (name === undefined || name === "--json" || HELP.includes(name)) return help(screen, words);
    if (VERSION.includes(name)) return tellVersion(screen);
    const command = commandOf(name);
    teller.who = `situ ${command}`;
    return await run(command, rest, stopping);
  } catch (error) {
    const failure = failureOf(error, stopping);
    tellFailure(teller.who, error, failure, teller.isJson);
    return failure.exitCode;
  }
}

/** Some commands have a name of two words. */
function joined(words: readonly string[]): readonly string[] {
  const [first, second, ...rest] = words;
  const both = `${first} ${second}`;
  return COMMAND_NAMES.some((name) => name === both) ? [both, ...rest] : words;
}

function commandOf(name: string): CommandName {
  const found = COMMAND_NAMES.find((each) => each === name);
  if (found !== undefined) return found;
  const what = name.startsWith("-") ? "flag" : "command";
  const hint = didYouMean(name, [...SHOWN_NAMES, "help", "--version"], "; see situ help");
  throw new UsageError(`unknown ${what} ${name}${hint}`);
}

function help(screen: Screen, [name]: readonly string[]): number {
  const command = name === undefined || name === "help" ? undefined : commandOf(name);
  screen.line(command === undefined ? generalHelp() : commandHelp(command));
  screen.json(helpAsJson(command === undefined ? SHOWN_NAMES : [command]));
  return EXIT_OK;
}

function tellVersion(screen: Screen): number {
  screen.line(version());
  screen.json({ situ: version(), node: process.version });
  return EXIT_OK;
}

async function run(
  name: CommandName,
  args: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const flags = readFlags(name, args);
  if (flags.wantsHelp) return help(new Screen(flags.given.has("json")), [name]);
  const around = { environment: process.env, folder: process.cwd() };
  const { values, origins, warnings } = readOptions(name, flags, around);
  teller.isJson = values.json === true;
  const screen = new Screen(teller.isJson);
  for (const warning of warnings) screen.note(`situ ${name}: warning: ${warning}`);
  // Not for those that are started from here.
  delete process.env.SITU_PASSWORD;
  const file = pathToFileURL(threadScript("situ-commands.js")).href;
  const { WORK } = (await import(file)) as { readonly WORK: Work };
  const work = WORK[name] as (values: object, context: object) => Promise<number | undefined>;
  return (await work(values, { screen, signal, origins })) ?? EXIT_OK;
}

/** From the start: whoever hears that a command runs may tell it to stop at once. */
function listenForSignals(): AbortSignal {
  const stopping = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (stopping.signal.aborted) process.exit(EXIT_INTERRUPTED);
      stopping.abort(new Interrupted(signal));
    });
  }
  return stopping.signal;
}

// Whoever reads the results may have seen enough, as `head` has.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(EXIT_OK);
  throw error;
});

process.exitCode = await main(process.argv.slice(2));
