#!/usr/bin/env node
/** The command line: one file per command in this folder. */

import { SituError } from "../runtime/errors.ts";
import { NODE_HELP, runNode } from "./node.ts";

const COMMANDS: Readonly<Record<string, (values: readonly string[]) => Promise<void>>> = {
  node: runNode,
};

const HELP = `Usage: situ <command>

${NODE_HELP}`;

/** A wrong command line, as opposed to something that went wrong. */
const EXIT_USAGE = 2;

async function main(values: readonly string[]): Promise<void> {
  const [name, ...rest] = values;
  if (name === undefined || name === "--help" || name === "help") {
    console.log(HELP);
    return;
  }
  if (!Object.hasOwn(COMMANDS, name)) {
    console.error(`situ: there is no command ${name}\n\n${HELP}`);
    process.exitCode = EXIT_USAGE;
    return;
  }
  try {
    await COMMANDS[name](rest);
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (!(error instanceof SituError) && !code?.startsWith("ERR_PARSE_ARGS")) throw error;
    console.error(`situ ${name}: ${message} (${code})`);
    process.exitCode = error instanceof SituError ? 1 : EXIT_USAGE;
  }
}

await main(process.argv.slice(2));
