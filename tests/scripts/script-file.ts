/**
 * Golden scripts: a scenario that a person can read, and the trace of what happened, which a person
 * has read. In a file, comments (#) and commands come first, then `---`, then the expected trace.
 * SITU_UPDATE_SCRIPTS=1 writes the trace anew; look at the difference before you commit it.
 */

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { expect } from "vitest";

const SEPARATOR = "---\n";

export interface Script {
  readonly commands: readonly string[];
  /** What shall come out; undefined if nobody has run it yet. */
  readonly expected: string | undefined;
}

export function parseScript(text: string): Script {
  const at = text.startsWith(SEPARATOR) ? 0 : text.indexOf(`\n${SEPARATOR}`) + 1;
  const hasTrace = at > 0 || text.startsWith(SEPARATOR);
  const scenario = hasTrace ? text.slice(0, at) : text;
  const lines = scenario.split("\n").map((line) => line.trim());
  return {
    commands: lines.filter((line) => line !== "" && !line.startsWith("#")),
    expected: hasTrace ? text.slice(at + SEPARATOR.length) : undefined,
  };
}

/** The script with another trace. */
export function withTrace(text: string, trace: string): string {
  const { expected } = parseScript(text);
  const scenario = expected === undefined ? text : text.slice(0, -(expected.length + 4));
  return `${scenario.trimEnd()}\n\n${SEPARATOR}${trace}`;
}

export function scriptsIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".script"))
    .sort();
}

/** Runs the script in a file; `run` returns the trace. */
export async function checkScript(
  path: string,
  run: (commands: readonly string[]) => string | Promise<string>,
): Promise<void> {
  const text = readFileSync(path, "utf8");
  const { commands, expected } = parseScript(text);
  const trace = await run(commands);
  if (process.env.SITU_UPDATE_SCRIPTS !== undefined) {
    writeFileSync(path, withTrace(text, trace));
    return;
  }
  expect(trace, "SITU_UPDATE_SCRIPTS=1 writes the trace anew").toBe(expected);
}
