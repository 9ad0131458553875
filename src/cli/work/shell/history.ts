/**
 * What was typed, for the next time: a file that only its owner reads, and that does not grow for
 * ever.
 */

import {
  appendFileSync,
  chmodSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export const HISTORY_LINES = 1_000;
/** A line that is longer is not kept: most likely it was pasted. */
const MOST_CHARACTERS = 4_096;

export class History {
  readonly #file: string | undefined;

  /** Without a file it remembers nothing. */
  constructor(file: string | undefined = historyFile()) {
    this.#file = file;
  }

  /** The newest first, as readline wants them. */
  load(): string[] {
    if (this.#file === undefined) return [];
    try {
      // It may have been made by somebody less careful.
      if ((statSync(this.#file).mode & 0o077) !== 0) chmodSync(this.#file, 0o600);
      const lines = readFileSync(this.#file, "utf8")
        .split("\n")
        .filter((line) => line !== "");
      if (lines.length > 2 * HISTORY_LINES) this.#trim(this.#file, lines);
      return lines.slice(-HISTORY_LINES).reverse();
    } catch {
      return [];
    }
  }

  add(line: string): void {
    const text = line.replaceAll("\n", " ").trim();
    if (this.#file === undefined || text === "" || text.length > MOST_CHARACTERS) return;
    try {
      appendFileSync(this.#file, `${text}\n`, { mode: 0o600 });
    } catch {
      // A home that cannot be written to is no reason not to work.
    }
  }

  #trim(file: string, lines: readonly string[]): void {
    const text = `${lines.slice(-HISTORY_LINES).join("\n")}\n`;
    writeFileSync(`${file}.new`, text, { mode: 0o600 });
    chmodSync(`${file}.new`, 0o600);
    renameSync(`${file}.new`, file);
  }
}

function historyFile(): string | undefined {
  const given = process.env.SITU_HISTORY;
  if (given !== undefined) return given === "" ? undefined : given;
  return join(homedir(), ".situ_history");
}
