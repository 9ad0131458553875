/**
 * Errors of work that can wait and that no caller asked for: growing a table after a commit, sweeping.
 * They are not the failure of the transaction that came before. A store that is full, a time-out or a
 * stack that is used up is passed over: another round will come, and whoever needs the work done is
 * told. Anything else is damage or a bug, and must not vanish: it becomes a warning of the process.
 */

import { AssertionError } from "./assert.ts";
import { SituError } from "./errors.ts";

/** Warnings that were given, so that each comes once. */
const told = new Set<string>();
const MAX_TOLD = 64;

/** For `catch`: throws broken assertions again, and nothing else. */
export function passOver(error: unknown, what: string): void {
  if (error instanceof AssertionError) throw error;
  if (!(error instanceof Error) || canWait(error)) return;
  const text = `${what} failed: ${error.message}`;
  if (told.has(text) || told.size >= MAX_TOLD) return;
  told.add(text);
  const code = error instanceof SituError ? error.code : "SITU_BACKGROUND";
  process.emitWarning(text, {
    code,
    ...(error.stack === undefined ? {} : { detail: error.stack }),
  });
}

function canWait(error: Error): boolean {
  if (error instanceof RangeError) return true;
  return error instanceof SituError && error.code !== "SITU_CORRUPT";
}
